// catena::cuda: what programs on GPUs need besides functions on arrays. It also links and runs
// without a GPU: functions that need one throw DeviceError with the reason.
#pragma once

#include <catena/cuda/array.hpp>
#include <catena/cuda/cudnn.hpp>
#include <catena/cuda/device.hpp>
#include <catena/cuda/ipc.hpp>
#include <catena/cuda/stream.hpp>
#include <catena/elementwise.hpp>
#include <catena/reduction.hpp>
