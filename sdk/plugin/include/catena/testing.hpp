// Tests of plugins, each loaded alone: catena::testing.
#pragma once

#include "catena/testing/conform.hpp"
#include "catena/testing/world.hpp"
