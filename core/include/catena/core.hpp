// Everything the core offers.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/config.hpp>
#include <catena/core/device.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/core/stream.hpp>
#include <catena/core/variable.hpp>
