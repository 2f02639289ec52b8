// Random numbers of a device: its stream, through the host's generators.
#include <catena/cuda/random.hpp>
#include <catena/random.hpp>

#include <random>

namespace catena::cuda {

Array RandomGenerator::gen_uniform(const Shape& shape, Dtype dtype) const {
    return random::uniform(shape, 0, 1, dtype, device_);
}

Array RandomGenerator::gen_normal(const Shape& shape, Dtype dtype) const {
    return random::normal(shape, 0, 1, dtype, device_);
}

RandomGenerator get_generator(const DeviceLike& device) {
    return RandomGenerator(get_gpu("get_generator", device));
}

void seed(std::optional<std::uint64_t> s, const DeviceLike& device) {
    if (!s) {
        std::random_device draw;
        s = std::uint64_t{draw()} << 32 | draw();
    }
    catena::seed(*s, get_gpu("seed", device));
}

}  // namespace catena::cuda
