// Initializers: widths of the distributions, and the arrays filled with them.
#include <catena/fail.hpp>
#include <catena/initializers.hpp>
#include <catena/random.hpp>

#include <algorithm>
#include <cmath>

namespace catena::initializers {

Array Random::operator()(const Shape& shape, Dtype dtype) const {
    if (!is_floating(dtype))
        fail<DtypeError>("[initializers] dtype: expected a floating one, got {}", name(dtype));
    if (!std::isfinite(scale_))
        fail<InvalidError>("[initializers] scale: expected a finite number, got {}", scale_);
    double scale = scale_;
    if (fan_ != Fan::none) {  // of a weight (out, in, kernel...)
        if (shape.ndim() < 2)
            fail<ShapeError>("[initializers] shape: expected (out, in, ...), got {}",
                             to_string(shape));
        std::int64_t kernel = 1;
        for (int i = 2; i < shape.ndim(); ++i) kernel *= shape[i];
        std::int64_t fan = std::max<std::int64_t>(shape[1] * kernel, 1);
        if (fan_ == Fan::in_and_out) fan += std::max<std::int64_t>(shape[0] * kernel, 1);
        scale *= std::sqrt(gain_ / static_cast<double>(fan));
    }
    return kind_ == Kind::normal ? random::normal(shape, 0, scale, dtype)
                                 : random::uniform(shape, -scale, scale, dtype);
}

}  // namespace catena::initializers
