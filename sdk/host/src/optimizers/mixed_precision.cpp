// The scope of products in half precision, and the adaptive scale of losses.
#include "../support.hpp"

#include <catena/mixed_precision.hpp>
#include <catena/operators.hpp>

#include <cmath>

namespace catena {
namespace {

Products products_in(Dtype dtype) {
    switch (dtype) {
        case Dtype::float32: return Products::float32;
        case Dtype::bfloat16: return Products::bfloat16;
        case Dtype::float16: return Products::float16;
        default:
            fail<InvalidError>("[autocast] dtype: expected bfloat16, float16 or float32, got {}",
                               name(dtype));
    }
}

}  // namespace

autocast::autocast(Dtype dtype) : using_config(&Config::products, products_in(dtype)) {}

LossScale::LossScale(double value, std::int64_t patience) : value_(value), patience_(patience) {
    if (!(value > 0) || std::isinf(value))
        fail<InvalidError>("[LossScale] value: expected a positive number, got {}", value);
    if (patience < 1)
        fail<InvalidError>("[LossScale] patience: expected at least 1, got {}", patience);
}

Variable LossScale::operator()(const Variable& loss) const { return loss * value_; }

bool LossScale::update(Optimizer& optimizer) {
    constexpr double least = 0x1p-100, most = 0x1p100;  // so that it stays a float32
    if (!std::isfinite(optimizer.compute_grads_norm())) {
        value_ = std::max(value_ / 2, least);
        good_ = 0;
        return false;
    }
    optimizer.scale_grads(1 / value_);
    optimizer.update();
    if (++good_ == patience_) {
        value_ = std::min(value_ * 2, most);
        good_ = 0;
    }
    return true;
}

void LossScale::visit(Visitor& visitor) { visitor("value", value_)("good", good_); }

}  // namespace catena
