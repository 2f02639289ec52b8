// GoogLeNet: the way through it, and the classifiers beside it.
#include "side.hpp"

#include <catena/core/config.hpp>
#include <catena/functions.hpp>
#include <catena/models/googlenet.hpp>
#include <catena/operators.hpp>

#include <algorithm>

namespace catena::models {
namespace F = functions;

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

Variable pool(const Variable& h) { return F::max_pooling_2d(h, {3}, {2}); }

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

}  // namespace catena::models
