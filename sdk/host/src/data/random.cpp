// Random numbers by Philox, normal ones by the Box-Muller transform with correctly rounded
// operations only; and initializers.
#include "../support.hpp"

#include <catena/abi/philox.h>
#include <catena/initializers.hpp>
#include <catena/random.hpp>

#include <cmath>

namespace catena {
namespace {

// Reserves blocks for n draws of 64 bits in the stream of the current device.
Generator reserve(std::size_t n) {
    const RandomState state = reserve_random(Device::current(), (n + 1) / 2);
    return Generator(state.seed, state.offset);
}

// Returns log(x), 0 < x <= 1: x = m 2^e, sqrt(1/2) <= m < sqrt(2), log m = 2 atanh((m-1)/(m+1)).
double log_of(double x) noexcept {
    int e = 0;
    double m = std::frexp(x, &e);
    if (m < 0.70710678118654752) {
        m *= 2;
        --e;
    }
    const double s = (m - 1) / (m + 1);
    const double s2 = s * s;
    double sum = 0;
    for (int k = 21; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
    return 2 * s * sum + e * 0.69314718055994531;
}

// Returns cos(a) for even k, sin(a) / a for odd k: the series up to 1 / k!, for a in [-pi/4, pi/4].
double series(double a, int k) noexcept {
    double sum = 1;
    for (; k >= 2; k -= 2) sum = 1 - sum * a * a / (k * (k - 1));
    return sum;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter) noexcept {
    std::array<std::uint32_t, 4> block{};
    catena_philox(key, counter, 0, block.data());
    return block;
}

std::uint64_t Generator::operator()() noexcept {
    has_spare_ = !has_spare_;
    if (!has_spare_) return spare_;
    const auto block = philox(key_, counter_++);
    spare_ = std::uint64_t{block[3]} << 32 | block[2];
    return std::uint64_t{block[1]} << 32 | block[0];
}

std::uint64_t Generator::below(std::uint64_t bound) noexcept {
    const std::uint64_t surplus = (0 - bound) % bound;  // 2^64 mod bound: the least accepted draw
    std::uint64_t draw = 0;
    do draw = (*this)();
    while (draw < surplus);
    return draw % bound;
}

void fill_uniform(std::span<double> values, double low, double high) {
    Generator generator = reserve(values.size());
    for (double& value : values) value = low + (high - low) * generator.uniform();
}

void Generator::normal(std::span<double> values) noexcept {
    for (std::size_t i = 0; i < values.size(); i += 2) {
        const double radius = std::sqrt(-2 * log_of(1 - uniform()));
        // The first two bits of a draw select a quadrant, the next 53 bits the angle a in it.
        const std::uint64_t draw = (*this)();
        const double a =
            (static_cast<double>((draw << 2) >> 11) * 0x1p-53 - 0.5) * 1.5707963267948966;
        double x = series(a, 16);
        double y = series(a, 17) * a;
        for (std::uint64_t turns = draw >> 62; turns > 0; --turns) {
            const double before = x;
            x = -y;
            y = before;
        }
        values[i] = radius * x;
        if (i + 1 < values.size()) values[i + 1] = radius * y;
    }
}

void fill_normal(std::span<double> values, double mean, double stddev) {
    reserve(values.size() + 1).normal(values);
    for (double& value : values) value = mean + stddev * value;
}

namespace random {
namespace {

// Returns an array that next(generator, piece) fills piece by piece, with `draws` 64-bit draws.
template <class Next>
Array generate(const char* what, Device device, const Shape& shape, Dtype dtype, std::int64_t draws,
               const Next& next) {
    if (!is_floating(dtype))
        fail<DtypeError>("[{}] dtype: expected a floating one, got {}", what, name(dtype));
    if (!device) device = Device::current();
    const using_device host{Device()};
    const Array y = Array::empty(shape, dtype);
    const auto [seed, offset] = reserve_random(device, static_cast<std::uint64_t>(draws + 1) / 2);
    Generator generator(seed, offset);
    std::byte* to = address_of(y);
    double piece[512];  // even, because normal() makes pairs of values
    for (std::int64_t left = y.size(), n = 0; left > 0; left -= n) {
        n = std::min<std::int64_t>(left, std::ssize(piece));
        next(generator, std::span(piece, static_cast<std::size_t>(n)));
        convert(Dtype::float64, piece, dtype, to, n);
        to += n * item_size(dtype);
    }
    return y.to(device);
}

}  // namespace

Array uniform(const Shape& shape, double low, double high, Dtype dtype, Device device) {
    return generate("uniform", device, shape, dtype, shape.size(),
                    [=](Generator& generator, std::span<double> values) {
                        for (double& value : values)
                            value = low + (high - low) * generator.uniform();
                    });
}

Array normal(const Shape& shape, double mean, double stddev, Dtype dtype, Device device) {
    return generate("normal", device, shape, dtype, shape.size() + 1,
                    [=](Generator& generator, std::span<double> values) {
                        generator.normal(values);
                        for (double& value : values) value = mean + stddev * value;
                    });
}

}  // namespace random

void RandomStream::visit(Visitor& visitor) {
    RandomState state = random_state(device_);
    const RandomState before = state;
    visitor("seed", state.seed)("offset", state.offset);
    // A visitor that only reads, such as one that saves, must not change the stream.
    if (state.seed != before.seed || state.offset != before.offset)
        set_random_state(device_, state);
}

}  // namespace catena

namespace catena::initializers {

namespace {
thread_local constinit bool makes_zeros = false;
}

no_random_values::no_random_values() noexcept : before_(std::exchange(makes_zeros, true)) {}
no_random_values::~no_random_values() { makes_zeros = before_; }

Array Random::operator()(const Shape& shape, Dtype dtype) const {
    if (!is_floating(dtype))
        fail<DtypeError>("[initializers] dtype: expected a floating one, got {}", name(dtype));
    if (!std::isfinite(scale_))
        fail<InvalidError>("[initializers] scale: expected a finite number, got {}", scale_);
    double scale = scale_;
    if (fan_ != Fan::none) {  // for weights (out, in, kernel...)
        if (shape.ndim() < 2)
            fail<ShapeError>("[initializers] shape: expected (out, in, ...), got {}",
                             to_string(shape));
        std::int64_t kernel = 1;
        for (int i = 2; i < shape.ndim(); ++i) kernel *= shape[i];
        std::int64_t fan = std::max<std::int64_t>(shape[1] * kernel, 1);
        if (fan_ == Fan::in_and_out) fan += std::max<std::int64_t>(shape[0] * kernel, 1);
        scale *= std::sqrt(gain_ / static_cast<double>(fan));
    }
    if (makes_zeros) return Array::zeros(shape, dtype);
    return kind_ == Kind::normal ? random::normal(shape, 0, scale, dtype)
                                 : random::uniform(shape, -scale, scale, dtype);
}

}  // namespace catena::initializers

namespace catena {

Initial::Initial(const Array& values) {
    struct Values : initializers::Initializer {
        explicit Values(const Array& array) : values_(array.copy()) {}
        Array operator()(const Shape& shape, Dtype) const override {
            if (values_.shape() == shape) return values_.copy();
            fail<ShapeError>("[Initial] values: expected {}, the parameter's shape, got {}",
                             to_string(shape), to_string(values_.shape()));
        }

    private:
        Array values_;
    };
    if (values) initializer_ = std::make_shared<Values>(values);
}

}  // namespace catena
