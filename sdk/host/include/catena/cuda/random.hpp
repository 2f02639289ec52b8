// cuda: random numbers of a GPU.
#pragma once

#include <catena/cuda/device.hpp>

namespace catena::cuda {

// A handle to a device's random stream, which dropout and initializers also use; see
// catena::seed(). Thread-safe.
class RandomGenerator {
public:
    explicit RandomGenerator(Device device) : device_(device) {}

    Device device() const { return device_; }
    RandomState state() const { return random_state(device_); }
    void set_state(RandomState state) const { set_random_state(device_, state); }

    // New arrays of a floating dtype on the device: from [0, 1), and from N(0, 1). They are
    // computed on the host, and are bit-identical for devices with the same number in their
    // backend.
    Array gen_uniform(const Shape& shape, Dtype dtype = Dtype::float32) const;
    Array gen_normal(const Shape& shape, Dtype dtype = Dtype::float32) const;

private:
    Device device_;
};

// Throws the errors of get_gpu().
RandomGenerator get_generator(const DeviceLike& device = {});
// Restarts the stream of one GPU: with a seed as catena::seed(s) does for all devices, without one
// from a random number of the system. The initial seed is catena::initial_seed(), that is
// $CATENA_SEED. Throws the errors of get_gpu().
void seed(std::optional<std::uint64_t> s = {}, const DeviceLike& device = {});

}  // namespace catena::cuda
