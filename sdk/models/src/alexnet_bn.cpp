// AlexNetBN: five convolutions and three layers.
#include "side.hpp"

#include <catena/functions.hpp>
#include <catena/models/alexnet_bn.hpp>

namespace catena::models {
namespace F = functions;

namespace {

std::int64_t last_side(std::int64_t image) {
    Side side("AlexNetBN", image, 55);
    return side.convolution(11, 4).max_pooling(3, 2).max_pooling(3, 2).max_pooling(3, 2);
}

}  // namespace

AlexNetBN::AlexNetBN(std::int64_t classes, Scale scale)
    : Classifier({3, scale.image, scale.image}, classes),
      conv1(3, scale.channels(96), 11, 4),
      bn1(scale.channels(96)),
      conv2(scale.channels(96), scale.channels(256), 5, 1, 2),
      bn2(scale.channels(256)),
      conv3(scale.channels(256), scale.channels(384), 3, 1, 1),
      conv4(scale.channels(384), scale.channels(384), 3, 1, 1),
      conv5(scale.channels(384), scale.channels(256), 3, 1, 1),
      fc6(scale.channels(256) * last_side(scale.image) * last_side(scale.image),
          scale.channels(4096)),
      fc7(scale.channels(4096), scale.channels(4096)),
      fc8(scale.channels(4096), classes) {}

Variable AlexNetBN::operator()(const Variable& x) const {
    const auto pool = [](const Variable& h) { return F::max_pooling_2d(h, {3}, {2}); };
    Variable h = pool(F::relu(bn1(conv1(as_images(x)))));
    h = pool(F::relu(bn2(conv2(h))));
    h = F::relu(conv4(F::relu(conv3(h))));
    h = pool(F::relu(conv5(h)));
    h = F::dropout(F::relu(fc6(h)), 0.5);
    h = F::dropout(F::relu(fc7(h)), 0.5);
    return fc8(h);
}

void AlexNetBN::visit(Visitor& visitor) {
    visitor("conv1", conv1)("bn1", bn1)("conv2", conv2)("bn2", bn2);
    visitor("conv3", conv3)("conv4", conv4)("conv5", conv5);
    visitor("fc6", fc6)("fc7", fc7)("fc8", fc8);
}

}  // namespace catena::models
