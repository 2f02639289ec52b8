// NIN: blocks, poolings, and a mean for each class.
#include "side.hpp"

#include <catena/functions.hpp>
#include <catena/models/nin.hpp>

#include <numbers>

namespace catena::models {
namespace F = functions;

namespace {

// Behind a ReLU, half of the values are 0: weights begin larger by the root of 2 (He et al., 2015).
constexpr double wscale = std::numbers::sqrt2;

void require_room(std::int64_t image) {
    Side side("NIN", image, 55);
    side.convolution(11, 4).max_pooling(3, 2).max_pooling(3, 2).max_pooling(3, 2);
}

}  // namespace

NIN::Block::Block(std::int64_t in, std::int64_t mid, std::int64_t out, Pair ksize, Pair stride,
                  Pair pad)
    : conv(in, mid, ksize, stride, pad, wscale),
      a(mid, mid, 1, 1, 0, wscale),
      b(mid, out, 1, 1, 0, wscale) {}

Variable NIN::Block::operator()(const Variable& x) const { return b(F::relu(a(F::relu(conv(x))))); }

NIN::NIN(std::int64_t classes, Scale scale)
    : Classifier({3, scale.image, scale.image}, classes),
      block1(3, scale.channels(96), scale.channels(96), 11, 4, 0),
      block2(scale.channels(96), scale.channels(256), scale.channels(256), 5, 1, 2),
      block3(scale.channels(256), scale.channels(384), scale.channels(384), 3, 1, 1),
      block4(scale.channels(384), scale.channels(1024), classes, 3, 1, 1) {
    require_room(scale.image);
}

Variable NIN::operator()(const Variable& x) const {
    const auto pool = [](const Variable& h) { return F::max_pooling_2d(F::relu(h), {3}, {2}); };
    Variable h = pool(block1(as_images(x)));
    h = pool(block2(h));
    h = pool(block3(h));
    h = block4(F::dropout(h, 0.5));
    h = F::average_pooling_2d(h, {h.shape()[2], h.shape()[3]});
    return F::reshape(h, {h.shape()[0], classes()});
}

void NIN::visit(Visitor& visitor) {
    visitor("block1", block1)("block2", block2)("block3", block3)("block4", block4);
}

}  // namespace catena::models
