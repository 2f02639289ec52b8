// Classifier, and the nets for small images.
#include "side.hpp"

#include <catena/fail.hpp>
#include <catena/function_forms.hpp>
#include <catena/models/classifier.hpp>
#include <catena/operators.hpp>

#include <algorithm>

namespace catena::models {
namespace F = functions;

namespace {

std::int64_t last_side(std::int64_t image) {
    Side side("Cnn", image, 15);
    return side.convolution(5).max_pooling(2, 2).convolution(5).max_pooling(2, 2);
}

}  // namespace

Classifier::Classifier(Shape image, std::int64_t classes) : image_(image), classes_(classes) {
    if (image_.ndim() != 3 || image_[0] < 1 || image_[1] < 1 || image_[2] < 1)
        fail<ShapeError>(
            "[Classifier] image: expected channels, height and width of at least 1, got {}",
            to_string(image_));
    if (classes_ < 1)
        fail<ShapeError>("[Classifier] classes: expected at least 1, got {}", classes_);
}

Variable Classifier::as_images(const Variable& x) const {
    const Shape shape = x.shape();
    const bool rows = shape.ndim() == 2 && shape[1] == image_.size();
    if (!rows && !(shape.ndim() == 4 && shape[1] == image_[0] && shape[2] == image_[1] &&
                   shape[3] == image_[2]))
        fail<ShapeError>("[Classifier] x: expected (N, {}, {}, {}) or (N, {}), got {}", image_[0],
                         image_[1], image_[2], image_.size(), to_string(shape));
    return rows ? F::reshape(x, {shape[0], image_[0], image_[1], image_[2]}) : x;
}

Classifier::Outcome Classifier::loss(const Variable& x, const Variable& t) {
    const Variable scores = (*this)(x);
    return {F::softmax_cross_entropy(scores, t), scores};
}

std::int64_t Scale::channels(std::int64_t n) const {
    return std::max<std::int64_t>(1, std::llround(width * static_cast<double>(n)));
}

Mlp::Mlp(Shape image, std::int64_t classes, std::int64_t units, double dropout)
    : Classifier(image, classes),
      l1(image.size(), units),
      l2(units, units),
      l3(units, classes),
      dropout_(dropout) {}

Variable Mlp::operator()(const Variable& x) const {
    const auto hidden = [&](const links::Linear& layer, const Variable& below) {
        const Variable h = F::relu(layer(below));
        return dropout_ > 0 ? F::dropout(h, dropout_) : h;
    };
    return l3(hidden(l2, hidden(l1, x)));
}

Cnn::Cnn(Shape image, std::int64_t classes, std::int64_t units, double dropout)
    : Classifier(image, classes),
      conv1(image[0], 20, 5),
      conv2(20, 50, 5),
      l1(50 * last_side(image[1]) * last_side(image[2]), units),
      l2(units, classes),
      dropout_(dropout) {}

Variable Cnn::operator()(const Variable& x) const {
    const Variable edges = F::max_pooling_2d(F::relu(conv1(as_images(x))), {2});
    const Variable parts = F::max_pooling_2d(F::relu(conv2(edges)), {2});
    const Variable h = F::relu(l1(parts));
    return l2(dropout_ > 0 ? F::dropout(h, dropout_) : h);
}

TwoColumnMlp::Column::Column(std::int64_t in, std::int64_t units, std::int64_t out)
    : l1(in, units),
      l2(units, units),
      l3(units, 2 * units),
      l4(2 * units, units),
      l5(units, units),
      l6(units, out) {}

Variable TwoColumnMlp::Column::below(const Variable& x) const {
    return F::relu(l3(F::relu(l2(F::relu(l1(x))))));
}
Variable TwoColumnMlp::Column::above(const Variable& h) const {
    return F::relu(l6(F::relu(l5(F::relu(l4(h))))));
}

TwoColumnMlp::TwoColumnMlp(Shape image, std::int64_t classes, std::int64_t units,
                           Device first_device, Device second_device)
    : Classifier(image, classes),
      first(image.size(), units, classes),
      second(image.size(), units, classes) {
    // Made on one device and moved: the same numbers wherever they go.
    first.to(first_device);
    second.to(second_device);
}

Variable TwoColumnMlp::operator()(const Variable& x) const {
    const Device here = first.l1.W.device(), there = second.l1.W.device();
    Variable h = first.below(x), other = second.below(F::copy(x, there));
    h = h + F::copy(other, here);
    other = F::copy(h, there);
    return first.above(h) + F::copy(second.above(other), here);
}

}  // namespace catena::models
