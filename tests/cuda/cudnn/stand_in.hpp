// Reads what the cuDNN stand-in counted.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cstdlib>

#include "cudnn/cudnn.hpp"

// Engines of the stand-in, numbered as in vendor/cudnn/engines.cpp.
enum : long { plain = 0, tensor_core = 10, atomics = 12, wide = 14, lean = 15 };

inline CudnnCounts counted() {
    static auto* const counts = [] {
        void* const dl = dlopen(std::getenv("CATENA_CUDNN_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
        REQUIRE(dl != nullptr);
        return reinterpret_cast<decltype(&catena_cudnn_counts)>(dlsym(dl, "catena_cudnn_counts"));
    }();
    return counts();
}
