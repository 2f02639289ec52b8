// The types that kernels read and write as numbers, for explicit instantiations.
#pragma once

#include <cstdint>

#define CATENA_EACH_TYPE(X)                                                          \
    X(bool)                                                                          \
    X(std::int8_t)                                                                   \
    X(std::int16_t) X(std::int32_t) X(std::int64_t) X(std::uint8_t) X(std::uint16_t) \
        X(std::uint32_t) X(std::uint64_t) X(float) X(double)
