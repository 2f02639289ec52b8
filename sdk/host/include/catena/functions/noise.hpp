// Random numbers that the device draws, from its stream (see catena::seed): the same for any number
// of threads and, up to rounding, on every device. catena::random::uniform() and normal() draw on
// the host, bit-identical on every machine.
#pragma once

#include <catena/functions.hpp>
#include <catena/operators.hpp>

namespace catena::functions {

// New arrays from U[low, high) and from N(mean, stddev^2), by random_uniform() and random_normal();
// an empty Device means Device::current(). They throw DtypeError unless the dtype is floating.
Array uniform(const Shape& shape, double low = 0, double high = 1, Dtype dtype = Dtype::float32,
              Device device = {});
Array normal(const Shape& shape, double mean = 0, double stddev = 1, Dtype dtype = Dtype::float32,
             Device device = {});

}  // namespace catena::functions
