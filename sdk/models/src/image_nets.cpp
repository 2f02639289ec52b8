// Nets for photographs, and their names.
#include "side.hpp"

#include <catena/core/config.hpp>
#include <catena/fail.hpp>
#include <catena/functions.hpp>
#include <catena/models/image_nets.hpp>
#include <catena/operators.hpp>

#include <algorithm>
#include <numbers>

namespace catena::models {
namespace F = functions;

namespace {

Variable pool(const Variable& h) { return F::max_pooling_2d(h, {3}, {2}); }

// The side after the first convolution and three poolings of NIN and AlexNetBN.
std::int64_t last_side(const char* net, std::int64_t image) {
    Side side(net, image, 55);
    return side.convolution(11, 4).max_pooling(3, 2).max_pooling(3, 2).max_pooling(3, 2);
}

// Behind a ReLU, half of the values are 0: weights begin larger by the root of 2 (He et al., 2015).
constexpr double wscale = std::numbers::sqrt2;

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
    (void)last_side("NIN", scale.image);
}

Variable NIN::operator()(const Variable& x) const {
    Variable h = pool(F::relu(block1(as_images(x))));
    h = pool(F::relu(block2(h)));
    h = pool(F::relu(block3(h)));
    h = block4(F::dropout(h, 0.5));
    h = F::average_pooling_2d(h, {h.shape()[2], h.shape()[3]});
    return F::reshape(h, {h.shape()[0], classes()});
}

void NIN::visit(Visitor& visitor) {
    visitor("block1", block1)("block2", block2)("block3", block3)("block4", block4);
}

AlexNetBN::AlexNetBN(std::int64_t classes, Scale scale)
    : Classifier({3, scale.image, scale.image}, classes),
      conv1(3, scale.channels(96), 11, 4),
      bn1(scale.channels(96)),
      conv2(scale.channels(96), scale.channels(256), 5, 1, 2),
      bn2(scale.channels(256)),
      conv3(scale.channels(256), scale.channels(384), 3, 1, 1),
      conv4(scale.channels(384), scale.channels(384), 3, 1, 1),
      conv5(scale.channels(384), scale.channels(256), 3, 1, 1),
      fc6(scale.channels(256) * last_side("AlexNetBN", scale.image) *
              last_side("AlexNetBN", scale.image),
          scale.channels(4096)),
      fc7(scale.channels(4096), scale.channels(4096)),
      fc8(scale.channels(4096), classes) {}

Variable AlexNetBN::operator()(const Variable& x) const {
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

namespace {

links::Inception inception(const Scale& s, std::int64_t in, std::int64_t out1, std::int64_t proj3,
                           std::int64_t out3, std::int64_t proj5, std::int64_t out5,
                           std::int64_t proj_pool) {
    const auto c = [&](std::int64_t n) { return s.channels(n); };
    return {in, c(out1), c(proj3), c(out3), c(proj5), c(out5), c(proj_pool)};
}

// What such a module gives: with rounding, not the sum's own multiple.
std::int64_t channels(const links::Inception& module) {
    const auto out = [](const links::Convolution2D& conv) { return conv.W.shape()[0]; };
    return out(module.conv1) + out(module.conv3) + out(module.conv5) + out(module.projp);
}

// The classifiers in the middle look at means of 5x5 windows, or of all where that is less.
std::int64_t window(std::int64_t side) { return std::min<std::int64_t>(5, side); }

std::int64_t middle_side(std::int64_t image) {
    Side side("GoogLeNet", image, 47);
    side.convolution(7, 2, 3).max_pooling(3, 2).max_pooling(3, 2).max_pooling(3, 2);
    Side rest = side;
    rest.max_pooling(3, 2);
    return side.convolution(window(side), 3);
}

}  // namespace

GoogLeNet::Auxiliary::Auxiliary(std::int64_t in, std::int64_t mid, std::int64_t units,
                                std::int64_t side, std::int64_t classes)
    : conv(in, mid, 1), fc1(mid * side * side, units), fc2(units, classes) {}

Variable GoogLeNet::Auxiliary::operator()(const Variable& h) const {
    const std::int64_t k = window(h.shape()[2]);
    return fc2(F::relu(fc1(F::relu(conv(F::average_pooling_2d(h, {k}, {3}))))));
}

GoogLeNet::GoogLeNet(std::int64_t classes, Scale s)
    : Classifier({3, s.image, s.image}, classes),
      conv1(3, s.channels(64), 7, 2, 3),
      conv2_reduce(s.channels(64), s.channels(64), 1),
      conv2(s.channels(64), s.channels(192), 3, 1, 1),
      inc3a(inception(s, s.channels(192), 64, 96, 128, 16, 32, 32)),
      inc3b(inception(s, channels(inc3a), 128, 128, 192, 32, 96, 64)),
      inc4a(inception(s, channels(inc3b), 192, 96, 208, 16, 48, 64)),
      inc4b(inception(s, channels(inc4a), 160, 112, 224, 24, 64, 64)),
      inc4c(inception(s, channels(inc4b), 128, 128, 256, 24, 64, 64)),
      inc4d(inception(s, channels(inc4c), 112, 144, 288, 32, 64, 64)),
      inc4e(inception(s, channels(inc4d), 256, 160, 320, 32, 128, 128)),
      inc5a(inception(s, channels(inc4e), 256, 160, 320, 32, 128, 128)),
      inc5b(inception(s, channels(inc5a), 384, 192, 384, 48, 128, 128)),
      loss1(channels(inc4a), s.channels(128), s.channels(1024), middle_side(s.image), classes),
      loss2(channels(inc4d), s.channels(128), s.channels(1024), middle_side(s.image), classes),
      loss3_fc(channels(inc5b), classes) {}

Variable GoogLeNet::to_4a(const Variable& x) const {
    Variable h = pool(F::relu(conv1(as_images(x))));
    h = F::relu(conv2_reduce(F::local_response_normalization(h, 5)));
    h = F::local_response_normalization(F::relu(conv2(h)), 5);
    return inc4a(pool(inc3b(inc3a(pool(h)))));
}
Variable GoogLeNet::to_4d(const Variable& h) const { return inc4d(inc4c(inc4b(h))); }
Variable GoogLeNet::to_scores(const Variable& h) const {
    const Variable last = inc5b(inc5a(pool(inc4e(h))));
    const Variable means = F::average_pooling_2d(last, {last.shape()[2], last.shape()[3]});
    return loss3_fc(F::dropout(means, 0.4));
}

Variable GoogLeNet::operator()(const Variable& x) const { return to_scores(to_4d(to_4a(x))); }

GoogLeNet::Outcome GoogLeNet::loss(const Variable& x, const Variable& t) {
    if (!config().train) return Classifier::loss(x, t);
    const Variable a = to_4a(x);
    const Variable d = to_4d(a);
    const Variable scores = to_scores(d);
    const Variable first = F::softmax_cross_entropy(loss1(a), t);
    const Variable second = F::softmax_cross_entropy(loss2(d), t);
    return {F::softmax_cross_entropy(scores, t) + (first + second) * 0.3, scores};
}

void GoogLeNet::visit(Visitor& visitor) {
    visitor("conv1", conv1)("conv2_reduce", conv2_reduce)("conv2", conv2);
    visitor("inc3a", inc3a)("inc3b", inc3b);
    visitor("inc4a", inc4a)("inc4b", inc4b)("inc4c", inc4c)("inc4d", inc4d)("inc4e", inc4e);
    visitor("inc5a", inc5a)("inc5b", inc5b);
    visitor("loss1", loss1)("loss2", loss2)("loss3_fc", loss3_fc);
}

namespace {

struct Entry {
    std::string_view name;
    std::unique_ptr<Classifier> (*make)(std::int64_t, const Scale&);
};

template <class Net>
std::unique_ptr<Classifier> make(std::int64_t classes, const Scale& scale) {
    return std::make_unique<Net>(classes, scale);
}

constexpr Entry entries[] = {
    {"nin", make<NIN>}, {"alexnet-bn", make<AlexNetBN>}, {"googlenet", make<GoogLeNet>}};

}  // namespace

std::vector<std::string_view> image_net_names() {
    std::vector<std::string_view> names;
    for (const Entry& entry : entries) names.push_back(entry.name);
    return names;
}

std::unique_ptr<Classifier> make_image_net(std::string_view name, std::int64_t classes,
                                           const Scale& scale) {
    for (const Entry& entry : entries) {
        if (entry.name == name) return entry.make(classes, scale);
    }
    fail<InvalidError>("[make_image_net] name: expected nin, alexnet-bn or googlenet, got '{}'",
                       name);
}

}  // namespace catena::models
