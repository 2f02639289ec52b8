// The bodies of catena::testing, for one file of a program: inline.hpp says when.
#pragma once

#ifndef CATENA_TESTING_SEPARATE
#error "catena/testing/separate.hpp: expected CATENA_TESTING_SEPARATE in all files of the program"
#endif

#include "catena/testing/check_run.hpp"
#include "catena/testing/world_calls.hpp"
#include "catena/testing/world_gradient.hpp"
#include "catena/testing/world_host.hpp"
#include "catena/testing/world_plugins.hpp"
