// Cnn: two convolutions, two layers.
#include "side.hpp"

#include <catena/functions.hpp>
#include <catena/models/cnn.hpp>

namespace catena::models {
namespace F = functions;

namespace {

std::int64_t last_side(std::int64_t image) {
    Side side("Cnn", image, 15);
    return side.convolution(5).max_pooling(2, 2).convolution(5).max_pooling(2, 2);
}

}  // namespace

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

}  // namespace catena::models
