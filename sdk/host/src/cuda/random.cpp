// Random numbers of a device: its stream, through the host's generators.
#include <catena/core/error.hpp>
#include <catena/cuda/random.hpp>
#include <catena/random.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <span>

namespace catena::cuda {
namespace {

// Draws of 64 bits, so many, fill the array in pieces: next(generator, piece).
template <class Next>
Array generate(const char* what, Device device, const Shape& shape, Dtype dtype, std::int64_t draws,
               const Next& next) {
    if (!is_floating(dtype)) {
        throw DtypeError(
            fmt::format("[{}] dtype: expected a floating one, got {}", what, name(dtype)));
    }
    const Array y = Array::empty(shape, dtype, host());
    const auto [seed, offset] = reserve_random(device, static_cast<std::uint64_t>(draws + 1) / 2);
    Generator generator(seed, offset);
    const catena_dl_tensor& memory = y.body()->tensor.dl;
    auto* to = static_cast<std::byte*>(memory.data) + memory.byte_offset;
    double piece[512];  // an even number: the normal distribution makes two of two
    for (std::int64_t left = y.size(), n = 0; left > 0; left -= n) {
        n = std::min<std::int64_t>(left, std::ssize(piece));
        next(generator, std::span(piece, static_cast<std::size_t>(n)));
        convert(Dtype::float64, piece, dtype, to, n);
        to += n * item_size(dtype);
    }
    return y.to(device);
}

}  // namespace

Array RandomGenerator::gen_uniform(const Shape& shape, Dtype dtype) const {
    return generate("gen_uniform", device_, shape, dtype, shape.size(),
                    [](Generator& generator, std::span<double> values) {
                        for (double& value : values) value = generator.uniform();
                    });
}

Array RandomGenerator::gen_normal(const Shape& shape, Dtype dtype) const {
    return generate("gen_normal", device_, shape, dtype, shape.size() + 1,
                    [](Generator& generator, std::span<double> values) {
                        generator.normal(values);
                        for (double& value : values) value += 0.0;  // no -0
                    });
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
