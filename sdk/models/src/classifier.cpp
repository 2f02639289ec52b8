// Classifier: what all of them do alike.
#include <catena/models/classifier.hpp>

#include <catena/core/error.hpp>
#include <catena/functions.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace catena::models {

Classifier::Classifier(Shape image, std::int64_t classes) : image_(image), classes_(classes) {
    if (image_.ndim() != 3 || image_[0] < 1 || image_[1] < 1 || image_[2] < 1) {
        throw ShapeError(fmt::format(
            "[Classifier] image: expected channels, height and width of at least 1, got {}",
            to_string(image_)));
    }
    if (classes_ < 1)
        throw ShapeError(
            fmt::format("[Classifier] classes: expected at least 1, got {}", classes_));
}

Variable Classifier::as_images(const Variable& x) const {
    const Shape shape = x.shape();
    const bool rows = shape.ndim() == 2 && shape[1] == image_.size();
    if (!rows && !(shape.ndim() == 4 && shape[1] == image_[0] && shape[2] == image_[1] &&
                   shape[3] == image_[2])) {
        throw ShapeError(fmt::format("[Classifier] x: expected (N, {}, {}, {}) or (N, {}), got {}",
                                     image_[0], image_[1], image_[2], image_.size(),
                                     to_string(shape)));
    }
    return rows ? functions::reshape(x, {shape[0], image_[0], image_[1], image_[2]}) : x;
}

Classifier::Outcome Classifier::loss(const Variable& x, const Variable& t) {
    const Variable scores = (*this)(x);
    return {functions::softmax_cross_entropy(scores, t), scores};
}

std::int64_t Scale::channels(std::int64_t n) const {
    return std::max<std::int64_t>(1, std::llround(width * static_cast<double>(n)));
}

}  // namespace catena::models
