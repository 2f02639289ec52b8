// The GPUs, and helpers that the tests share.
#pragma once

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <catena/core.hpp>

#include <numeric>
#include <string>
#include <vector>

#include "emulator/control.h"  // the emulator counts memory to the byte

using namespace catena;

inline int gpus() {
    int n = 0;
    REQUIRE(cudaGetDeviceCount(&n) == cudaSuccess);
    return n;
}
inline Device gpu(int ordinal = 0) { return Device::get("cuda:" + std::to_string(ordinal)); }
// Returns the second GPU, or the first if there is only one.
inline Device second() { return gpu(gpus() > 1 ? 1 : 0); }

inline Array ramp(std::int64_t n, float first = 0) {
    std::vector<float> values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), first);
    return Array::from(values, {n});
}

template <class E = Error, class Body>
std::string failure_of(const Body& body) {
    try {
        body();
    } catch (const E& error) {
        return error.what();
    }
    return "none";
}
inline bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}
