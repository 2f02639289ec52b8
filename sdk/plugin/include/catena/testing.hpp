// catena::testing: tests of plugins, which are loaded without the core.
#pragma once

#include "catena/testing/conform.hpp"
#include "catena/testing/world.hpp"
