// Initializers: widths of the distributions, and the arrays filled with them.
#include <catena/core/error.hpp>
#include <catena/initializers.hpp>
#include <catena/random.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace catena::initializers {

Fans fans_of(const Shape& shape) {
    if (shape.ndim() < 2) {
        throw ShapeError(
            fmt::format("[initializers] shape: expected (out, in, ...), got {}", to_string(shape)));
    }
    std::int64_t kernel = 1;
    for (int i = 2; i < shape.ndim(); ++i) kernel *= shape[i];
    return {std::max<std::int64_t>(shape[1] * kernel, 1),
            std::max<std::int64_t>(shape[0] * kernel, 1)};
}

Array Constant::operator()(const Shape& shape, Dtype dtype) const {
    return Array::full(shape, value_, dtype);
}

Array Random::operator()(const Shape& shape, Dtype dtype) const {
    if (!is_floating(dtype)) {
        throw DtypeError(
            fmt::format("[initializers] dtype: expected a floating one, got {}", name(dtype)));
    }
    if (!std::isfinite(scale_)) {
        throw InvalidError(
            fmt::format("[initializers] scale: expected a finite number, got {}", scale_));
    }
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    const double scale = scale_ * width(shape);
    if (kind_ == Kind::normal) fill_normal(values, 0, scale);
    else fill_uniform(values, -scale, scale);
    return Array::from(values, shape).astype(dtype);
}

double LeCunNormal::width(const Shape& shape) const {
    return std::sqrt(1.0 / static_cast<double>(fans_of(shape).in));
}

double GlorotNormal::width(const Shape& shape) const {
    const Fans fans = fans_of(shape);
    return std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
}

double GlorotUniform::width(const Shape& shape) const {
    const Fans fans = fans_of(shape);
    return std::sqrt(6.0 / static_cast<double>(fans.in + fans.out));
}

double HeNormal::width(const Shape& shape) const {
    return std::sqrt(2.0 / static_cast<double>(fans_of(shape).in));
}

}  // namespace catena::initializers
