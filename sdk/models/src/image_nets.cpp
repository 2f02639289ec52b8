// Classifier, the nets for small images and for photographs, and their names.
#include <catena/fail.hpp>
#include <catena/function_forms.hpp>
#include <catena/models/image_nets.hpp>

#include <fmt/ranges.h>

#include <cmath>
#include <numbers>

namespace catena::models {
namespace F = functions;

namespace {

// A convolution, or a max pooling, which covers all.
struct Windows {
    std::int64_t k, stride = 1, pad = 0;
    bool pools = false;
};

// least: from which on nothing gets too small, for the error's text.
std::int64_t side_after(const char* net, std::int64_t image, std::int64_t least,
                        std::initializer_list<Windows> layers) {
    std::int64_t side = image;
    for (const auto& [k, stride, pad, pools] : layers) {
        side = pools && side < k ? 0 : get_conv_outsize(side, k, stride, pad, pools);
        if (side < 1)
            fail<ShapeError>("[{}] image: expected sides of {} or more, got {}", net, least, image);
    }
    return side;
}

std::int64_t last_side(std::int64_t image) {
    return side_after("Cnn", image, 15, {{5}, {2, 2, 0, true}, {5}, {2, 2, 0, true}});
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

// ---- nets for photographs

namespace {

Variable pool(const Variable& h) { return F::max_pooling_2d(h, {3}, {2}); }

constexpr Windows pooling{3, 2, 0, true};

// The side after the first convolution and three poolings of NIN and AlexNetBN.
std::int64_t last_side(const char* net, std::int64_t image) {
    return side_after(net, image, 55, {{11, 4}, pooling, pooling, pooling});
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
      bn1(scale.channels(96), 0.9, 1e-5),
      conv2(scale.channels(96), scale.channels(256), 5, 1, 2),
      bn2(scale.channels(256), 0.9, 1e-5),
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

// The number of output channels of such a module, each part rounded.
std::int64_t channels(const links::Inception& module) {
    const auto out = [](const links::Convolution2D& conv) { return conv.W.shape()[0]; };
    return out(module.conv1) + out(module.conv3) + out(module.conv5) + out(module.projp);
}

// The classifiers in the middle look at means of 5x5 windows, or of all where that is less.
std::int64_t window(std::int64_t side) { return std::min<std::int64_t>(5, side); }

std::int64_t middle_side(std::int64_t image) {
    const std::int64_t side =
        side_after("GoogLeNet", image, 47, {{7, 2, 3}, pooling, pooling, pooling});
    (void)side_after("GoogLeNet", image, 47, {{7, 2, 3}, pooling, pooling, pooling, pooling});
    return get_conv_outsize(side, window(side), 3, 0);
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

constexpr double norm_eps = 1e-6;

const VisionTransformer::Sizes& checked(const VisionTransformer::Sizes& sizes) {
    if (sizes.patch < 1 || sizes.patch > sizes.image || sizes.units < 1 || sizes.layers < 1)
        fail<ShapeError>(
            "[VisionTransformer] patch, units, layers: expected at least 1, and a patch of at most "
            "{}, "
            "got {}, {}, {}",
            sizes.image, sizes.patch, sizes.units, sizes.layers);
    if (!(sizes.dropout >= 0 && sizes.dropout < 1))
        fail<InvalidError>("[VisionTransformer] dropout: expected 0 or more, below 1, got {}",
                           sizes.dropout);
    return sizes;
}

VisionTransformer::Sizes scaled(const Scale& scale) {
    const auto heads = std::max<std::int64_t>(std::llround(6 * scale.width), 1);
    return {.image = scale.image,
            .patch = std::max<std::int64_t>(scale.image / 14, 1),
            .units = 64 * heads,
            .heads = heads};
}

}  // namespace

VisionTransformer::VisionTransformer(std::int64_t classes, Scale scale)
    : VisionTransformer(classes, scaled(scale)) {}

VisionTransformer::VisionTransformer(std::int64_t classes, const Sizes& sizes)
    : Classifier({3, sizes.image, sizes.image}, classes),
      patches(3, checked(sizes).units, sizes.patch, sizes.patch),
      norm(sizes.units, norm_eps),
      head(sizes.units, classes),
      dropout_(sizes.dropout) {
    const std::int64_t side = sizes.image / sizes.patch;
    token = as_parameter(Array::zeros({1, 1, sizes.units}));
    position = as_parameter(initializers::Normal(0.02)({1 + side * side, sizes.units}));
    for (std::int64_t i = 0; i < sizes.layers; ++i)
        blocks.emplace_back(sizes.units, TransformerBlock::Options{.heads = sizes.heads,
                                                                   .eps = norm_eps,
                                                                   .dropout = sizes.dropout,
                                                                   .depth = sizes.layers,
                                                                   .attention = {}});
}

Variable VisionTransformer::operator()(const Variable& x) const {
    const Variable h = patches(as_images(x));
    const std::int64_t n = h.shape()[0], units = h.shape()[1];
    const Variable rows =
        F::transpose(F::reshape(h, {n, units, h.shape()[2] * h.shape()[3]}), {0, 2, 1});
    Variable y = F::concat({F::broadcast_to(token, {n, 1, units}), rows}, 1) + position;
    if (dropout_ > 0) y = F::dropout(y, dropout_);
    for (const TransformerBlock& block : blocks) y = block(y);
    return head(norm(F::get_item(y, {slice(), 0})));
}

void VisionTransformer::visit(Visitor& visitor) {
    visitor("patches", patches)("token", token)("position", position);
    for (std::size_t i = 0; i < blocks.size(); ++i) visitor(fmt::format("block{}", i), blocks[i]);
    visitor("norm", norm)("head", head);
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

constexpr Entry entries[] = {{"nin", make<NIN>},
                             {"alexnet-bn", make<AlexNetBN>},
                             {"googlenet", make<GoogLeNet>},
                             {"vit", make<VisionTransformer>}};

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
    fail<InvalidError>("[make_image_net] name: expected {}, got '{}'",
                       fmt::join(image_net_names(), ", "), name);
}

}  // namespace catena::models
