// Samples of distributions.
#include <catena/functions/noise.hpp>

namespace catena::functions {

Array uniform(const Shape& shape, double low, double high, Dtype dtype, Device device) {
    return random_uniform(shape, low, high, dtype, device);
}
Array normal(const Shape& shape, double mean, double stddev, Dtype dtype, Device device) {
    return random_normal(shape, mean, stddev, dtype, device);
}

}  // namespace catena::functions
