// cuda: the random numbers of a GPU.
#pragma once

#include <catena/cuda/device.hpp>

#include <cstdint>
#include <optional>

namespace catena::cuda {

// A handle to a device's stream of random numbers, the one that dropout and initializers draw from
// there; see catena::seed(). For any thread.
class RandomGenerator {
public:
    explicit RandomGenerator(Device device) : device_(device) {}

    Device device() const { return device_; }
    RandomState state() const { return random_state(device_); }
    void set_state(RandomState state) const { set_random_state(device_, state); }

    // New arrays on the device, of a floating dtype: from [0, 1), and from N(0, 1). They are computed
    // on the host, with the same bits for every device of the same number in its backend.
    Array gen_uniform(const Shape& shape, Dtype dtype = Dtype::float32) const;
    Array gen_normal(const Shape& shape, Dtype dtype = Dtype::float32) const;

private:
    Device device_;
};

// Throws as get_gpu().
RandomGenerator get_generator(const DeviceLike& device = {});
// Restarts a GPU's stream, and no other: with a seed as catena::seed(s) does for all devices, without
// one from a number that the system draws. At the start of a process they are as catena::initial_seed()
// says, that is $CATENA_SEED. Throws as get_gpu().
void seed(std::optional<std::uint64_t> s = {}, const DeviceLike& device = {});

}  // namespace catena::cuda
