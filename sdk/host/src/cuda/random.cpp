// Random numbers of a device: its stream, through the host's generators.
#include <catena/core/error.hpp>
#include <catena/cuda/random.hpp>
#include <catena/random.hpp>

#include <fmt/format.h>

#include <random>
#include <vector>

namespace catena::cuda {
namespace {

template <class Fill>
Array generate(const char* what, Device device, const Shape& shape, Dtype dtype, const Fill& fill) {
    if (!is_floating(dtype)) {
        throw DtypeError(
            fmt::format("[{}] dtype: expected a floating one, got {}", what, name(dtype)));
    }
    const catena::using_device scope(device);
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    fill(values);
    return Array::from(values, shape, host()).astype(dtype).to(device);
}

}  // namespace

Array RandomGenerator::gen_uniform(const Shape& shape, Dtype dtype) const {
    return generate("gen_uniform", device_, shape, dtype,
                    [](std::vector<double>& values) { fill_uniform(values, 0, 1); });
}

Array RandomGenerator::gen_normal(const Shape& shape, Dtype dtype) const {
    return generate("gen_normal", device_, shape, dtype,
                    [](std::vector<double>& values) { fill_normal(values, 0, 1); });
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
