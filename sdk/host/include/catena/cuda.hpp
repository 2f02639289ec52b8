// cuda: what programs do with GPUs beyond calling functions on arrays there. Links, and is harmless,
// where there is no GPU: what needs one throws DeviceError that says why there is none.
#pragma once

#include <catena/cuda/array.hpp>
#include <catena/cuda/cudnn.hpp>
#include <catena/cuda/device.hpp>
#include <catena/cuda/ipc.hpp>
#include <catena/cuda/kernels.hpp>
#include <catena/cuda/memory.hpp>
#include <catena/cuda/random.hpp>
#include <catena/cuda/stream.hpp>
