// Links around one function each: initial parameters and the call.
#include <catena/fail.hpp>
#include <catena/initializers.hpp>
#include <catena/links.hpp>
#include <catena/operators.hpp>

namespace catena::links {
namespace {

// The functions are looked up when the first link is made, so that a missing plugin shows before
// any work.
const PluginFunction& linear() {
    static const PluginFunction function("catena.linear");
    return function;
}
const PluginFunction& embed_id() {
    static const PluginFunction function("catena.embed_id");
    return function;
}
const PluginFunction& prelu() {
    static const PluginFunction function("catena.prelu");
    return function;
}

void require_positive(const char* link, std::int64_t in_size, std::int64_t out_size) {
    if (in_size < 1 || out_size < 1)
        fail<ShapeError>("[{}] sizes: expected positive numbers, got {} and {}", link, in_size,
                         out_size);
}

// Checked first, so that messages name the link's arguments.
PluginFunction convolution(Pair channels, Pair ksize, Pair stride, Pair pad) {
    const auto require = [](std::int64_t least, const char* what, const char* expected, Pair got) {
        if (got.y < least || got.x < least)
            fail<ShapeError>("[Convolution2D] {}: expected {}, got {} and {}", what, expected,
                             got.y, got.x);
    };
    require(1, "channels", "positive numbers", channels);
    require(1, "ksize", "positive numbers", ksize);
    require(1, "stride", "positive numbers", stride);
    require(0, "pad", "no negative numbers", pad);
    return PluginFunction("catena.convolution_2d",
                          {{"stride", stride.list()}, {"pad", pad.list()}});
}

}  // namespace

Linear::Linear(std::int64_t in_size, std::int64_t out_size, double wscale, double bias,
               bool nobias) {
    require_positive("Linear", in_size, out_size);
    (void)linear();
    W = as_parameter(initializers::LeCunNormal(wscale)({out_size, in_size}));
    if (!nobias) b = as_parameter(initializers::Constant(bias)({out_size}));
}
Variable Linear::operator()(const Variable& x) const { return linear().first({&x, &W, &b}); }

Convolution2D::Convolution2D(std::int64_t in_channels, std::int64_t out_channels, Pair ksize,
                             Pair stride, Pair pad, double wscale, double bias, bool nobias)
    : function_(convolution({in_channels, out_channels}, ksize, stride, pad)) {
    W = as_parameter(
        initializers::LeCunNormal(wscale)({out_channels, in_channels, ksize.y, ksize.x}));
    if (!nobias) b = as_parameter(initializers::Constant(bias)({out_channels}));
}
Variable Convolution2D::operator()(const Variable& x) const {
    return function_.first({&x, &W, &b});
}

EmbedID::EmbedID(std::int64_t in_size, std::int64_t out_size) {
    require_positive("EmbedID", in_size, out_size);
    (void)embed_id();
    W = as_parameter(initializers::Normal(1)({in_size, out_size}));
}
Variable EmbedID::operator()(const Variable& x) const { return embed_id().first({&x, &W}); }

PReLU::PReLU(const Shape& shape, double init) {
    (void)prelu();
    W = as_parameter(initializers::Constant(init)(shape));
}
Variable PReLU::operator()(const Variable& x) const { return prelu().first({&x, &W}); }

BinaryHierarchicalSoftmax::BinaryHierarchicalSoftmax(std::int64_t in_size, const WordTree& tree)
    : tree_(tree.to_json()), function_("catena.binary_hierarchical_softmax", {{"tree", tree_}}) {
    if (in_size < 1)
        fail<ShapeError>("[BinaryHierarchicalSoftmax] in_size: expected a positive number, got {}",
                         in_size);
    W = as_parameter(initializers::Uniform(1)({tree.inner_nodes(), in_size}));
    // Nothing is computed; a tree with a word that stands twice is refused here.
    const Variable none(Array::zeros({0, in_size}));
    (*this)(none, Variable(Array::zeros({0}, Dtype::int64)));
}
Variable BinaryHierarchicalSoftmax::operator()(const Variable& x, const Variable& t) const {
    return function_.first({&x, &t, &W});
}
// Chainer's files have no tree, and its codes the opposite sign.
void BinaryHierarchicalSoftmax::visit(Visitor& visitor) {
    visitor("W", W).require_or_convert("tree", tree_, "W",
                                       [](const Array& theirs) { return -theirs; });
}

Inception::Inception(std::int64_t in_channels, std::int64_t out1, std::int64_t channels3,
                     std::int64_t out3, std::int64_t channels5, std::int64_t out5,
                     std::int64_t proj_pool)
    : conv1(in_channels, out1, 1),
      conv3(channels3, out3, 3, 1, 1),
      conv5(channels5, out5, 5, 1, 2),
      proj3(in_channels, channels3, 1),
      proj5(in_channels, channels5, 1),
      projp(in_channels, proj_pool, 1),
      relu_("catena.relu"),
      concat_("catena.concat", {{"axis", 1}}),
      pool_("catena.max_pooling_2d", {{"ksize", 3}, {"stride", 1}, {"pad", 1}}) {}

Variable Inception::operator()(const Variable& x) const {
    const auto relu = [&](const Variable& v) { return relu_.first({&v}); };
    const Variable one = conv1(x);
    const Variable three = conv3(relu(proj3(x)));
    const Variable five = conv5(relu(proj5(x)));
    const Variable pool = projp(pool_.first({&x}));
    return relu(concat_.first({&one, &three, &five, &pool}));
}

void Inception::visit(Visitor& visitor) {
    visitor("conv1", conv1)("conv3", conv3)("conv5", conv5);
    visitor("proj3", proj3)("proj5", proj5)("projp", projp);
}

}  // namespace catena::links

namespace catena {

std::int64_t get_conv_outsize(std::int64_t size, std::int64_t k, std::int64_t s, std::int64_t p,
                              bool cover_all) {
    if (size < 0 || k < 1 || s < 1 || p < 0)
        fail<InvalidError>(
            "[get_conv_outsize] sizes: expected size >= 0, k >= 1, s >= 1, p >= 0, got {}, {}, {}, "
            "{}",
            size, k, s, p);
    const std::int64_t room = size + 2 * p - k + (cover_all ? s - 1 : 0);
    return room < 0 ? 0 : room / s + 1;
}

}  // namespace catena
