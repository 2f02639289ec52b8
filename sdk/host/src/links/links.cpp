// Links: initialize parameters and call functions. Constructors look up the functions, so that a missing
// plugin is reported before any work.
#include "../support.hpp"

#include <catena/checkpoint.hpp>
#include <catena/core/config.hpp>
#include <catena/functions.hpp>
#include <catena/links.hpp>
#include <catena/operators.hpp>

namespace catena::links {
namespace {

void require_positive(const char* link, std::int64_t in_size, std::int64_t out_size) {
    if (in_size < 1 || out_size < 1)
        fail<ShapeError>("[{}] sizes: expected positive numbers, got {} and {}", link, in_size,
                         out_size);
}

// Checks the arguments first, so that messages use the names of the link's arguments.
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

// Sets average = share * average + (1 - share) * scale * value, in place.
void blend(const Array& average, const Array& value, double share, double scale = 1) {
    thread_local constinit ThreadFunction update("catena.running_update", {"share", "scale"});
    const bool wide = item_size(average.dtype()) >= item_size(Dtype::float32);
    const Array inputs[] = {average, value.astype(wide ? average.dtype() : Dtype::float32)};
    update({share, scale}).forward(inputs);
}

template <class Got>
void require_positive_size(const char* link, std::int64_t size, const Got& got) {
    if (size >= 1) return;
    fail<ShapeError>("[{}] size: expected a positive number, got {}", link, got);
}
// The shape of gamma: a number or a shape.
Shape shape_of(const char* link, const Ints& size) {
    const auto list = size.view();
    if (list.empty()) fail<ShapeError>("[{}] size: expected at least one axis, got ()", link);
    if (list.size() == 1) require_positive_size(link, list[0], list[0]);
    const Shape shape(list);
    require_positive_size(link, shape.size(), to_string(shape));
    return shape;
}
catena::Parameter parameter(const Initial& initial, const Initial& otherwise, const Shape& shape,
                            Dtype dtype = Dtype::float32) {
    return as_parameter(initial.otherwise(otherwise)(shape, dtype));
}

}  // namespace

Linear::Linear(std::int64_t in_size, std::int64_t out_size, bool nobias, const Initial& initialW,
               const Initial& initial_bias) {
    require_positive("Linear", in_size, out_size);
    (void)plain<"catena.linear">();
    W = parameter(initialW, initializers::LeCunNormal(), {out_size, in_size});
    if (!nobias) b = parameter(initial_bias, 0, {out_size});
}
Variable Linear::operator()(const Variable& x) const {
    return plain<"catena.linear">().first({&x, &W, &b});
}
Variable Linear::operator()(const Variable& x, std::int64_t n_batch_axes) const {
    thread_local constinit ThreadFunction linear("catena.linear", {"n_batch_axes"});
    return linear({n_batch_axes}).first({&x, &W, &b});
}

MLP::MLP(const std::vector<std::int64_t>& sizes, const Step& activation, double dropout) {
    if (sizes.size() < 2)
        fail<ShapeError>("[MLP] sizes: expected at least 2, got {}", sizes.size());
    if (!(dropout >= 0 && dropout < 1))
        fail<InvalidError>("[MLP] dropout: expected 0 or more, below 1, got {}", dropout);
    for (std::size_t i = 1; i < sizes.size(); ++i) {
        append(Linear(sizes[i - 1], sizes[i]));
        if (i + 1 == sizes.size()) break;
        extend(deep_copy(Sequential{activation}));
        if (dropout > 0)
            append([dropout](const Variable& x) { return functions::dropout(x, dropout); });
    }
}
MLP::Step MLP::relu() { return functions::relu; }

Convolution2D::Convolution2D(std::int64_t in_channels, std::int64_t out_channels, Pair ksize,
                             Pair stride, Pair pad, bool nobias, const Initial& initialW,
                             const Initial& initial_bias)
    : function_(convolution({in_channels, out_channels}, ksize, stride, pad)) {
    W = parameter(initialW, initializers::LeCunNormal(),
                  {out_channels, in_channels, ksize.y, ksize.x});
    if (!nobias) b = parameter(initial_bias, 0, {out_channels});
}
Variable Convolution2D::operator()(const Variable& x) const {
    return function_.first({&x, &W, &b});
}

EmbedID::EmbedID(std::int64_t in_size, std::int64_t out_size, const Initial& initialW,
                 std::optional<std::int64_t> ignored)
    : ignore_label(ignored) {
    require_positive("EmbedID", in_size, out_size);
    (void)plain<"catena.embed_id">();
    W = parameter(initialW, initializers::Normal(1), {in_size, out_size});
}
Variable EmbedID::operator()(const Variable& x) const {
    if (ignore_label) return functions::embed_id(x, W, *ignore_label);
    return plain<"catena.embed_id">().first({&x, &W});
}

PReLU::PReLU(const Shape& shape, const Initial& init) {
    (void)plain<"catena.prelu">();
    W = parameter(init, 0.25, shape);
}
Variable PReLU::operator()(const Variable& x) const {
    return plain<"catena.prelu">().first({&x, &W});
}

Swish::Swish(const Shape& beta_shape, const Initial& beta_init) {
    (void)plain<"catena.sigmoid">();
    beta = parameter(beta_init, 1, beta_shape);
}
Variable Swish::operator()(const Variable& x) const { return functions::swish(x, beta); }

Maxout::Maxout(std::int64_t in_size, std::int64_t out_size, std::int64_t pool_size,
               const Initial& initialW, const Initial& initial_bias)
    : linear(in_size, out_size * pool_size, !initial_bias, initialW, initial_bias),
      pool_size_(pool_size) {
    if (pool_size < 1)
        fail<ShapeError>("[Maxout] pool_size: expected a positive number, got {}", pool_size);
    (void)plain<"catena.max">();
}
Variable Maxout::operator()(const Variable& x) const {
    return functions::maxout(linear(x), pool_size_);
}

LayerNormalization::LayerNormalization(const Ints& size, double epsilon,
                                       const Initial& initial_gamma, const Initial& initial_beta)
    : eps(epsilon) {
    const Shape shape = shape_of("LayerNormalization", size);
    (void)with<"catena.layer_normalization", "eps">(eps);
    gamma = parameter(initial_gamma, 1, shape);
    beta = parameter(initial_beta, 0, shape);
}
Variable LayerNormalization::operator()(const Variable& x) const {
    return with<"catena.layer_normalization", "eps">(eps).first({&x, &gamma, &beta});
}

RMSNormalization::RMSNormalization(const Ints& size, double epsilon, const Initial& initial_gamma)
    : eps(epsilon) {
    const Shape shape = shape_of("RMSNormalization", size);
    (void)with<"catena.rms_normalization", "eps">(eps);
    gamma = parameter(initial_gamma, 1, shape);
}
Variable RMSNormalization::operator()(const Variable& x) const {
    return with<"catena.rms_normalization", "eps">(eps).first({&x, &gamma});
}

GroupNormalization::GroupNormalization(std::int64_t number, std::int64_t size, double epsilon,
                                       const Initial& initial_gamma, const Initial& initial_beta)
    : groups(number), eps(epsilon) {
    require_positive_size("GroupNormalization", size, size);
    if (groups < 1 || size % groups != 0)
        fail<ShapeError>("[GroupNormalization] groups: expected a divisor of size {}, got {}", size,
                         groups);
    (void)functions::handles::group_normalization(groups, eps);
    gamma = parameter(initial_gamma, 1, {size});
    beta = parameter(initial_beta, 0, {size});
}
Variable GroupNormalization::operator()(const Variable& x) const {
    return functions::group_normalization(x, groups, gamma, beta, eps);
}

BinaryHierarchicalSoftmax::BinaryHierarchicalSoftmax(std::int64_t in_size, const WordTree& tree,
                                                     Dtype dtype)
    : tree_(tree.to_json()), function_("catena.binary_hierarchical_softmax", {{"tree", tree_}}) {
    if (in_size < 1)
        fail<ShapeError>("[BinaryHierarchicalSoftmax] in_size: expected a positive number, got {}",
                         in_size);
    W = as_parameter(initializers::Uniform(1)({tree.inner_nodes(), in_size}, dtype));
    // Calls the function without rows, which computes nothing but throws if the tree repeats a word.
    const Variable none(Array::zeros({0, in_size}, dtype));
    (*this)(none, Variable(Array::zeros({0}, Dtype::int64)));
}
Variable BinaryHierarchicalSoftmax::operator()(const Variable& x, const Variable& t) const {
    return function_.first({&x, &t, &W});
}
// Chainer's files have no tree. Its codes have the opposite sign, so W is negated.
void BinaryHierarchicalSoftmax::visit(Visitor& visitor) {
    visitor("W", W).require_or_convert("tree", tree_, "W",
                                       [](const Array& theirs) { return -theirs; });
}

Inception::Inception(std::int64_t in_channels, std::int64_t out1, std::int64_t channels3,
                     std::int64_t out3, std::int64_t channels5, std::int64_t out5,
                     std::int64_t proj_pool, const Initial& conv_init, const Initial& bias_init)
    : conv1(in_channels, out1, 1, 1, 0, false, conv_init, bias_init),
      conv3(channels3, out3, 3, 1, 1, false, conv_init, bias_init),
      conv5(channels5, out5, 5, 1, 2, false, conv_init, bias_init),
      proj3(in_channels, channels3, 1, 1, 0, false, conv_init, bias_init),
      proj5(in_channels, channels5, 1, 1, 0, false, conv_init, bias_init),
      projp(in_channels, proj_pool, 1, 1, 0, false, conv_init, bias_init),
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

BatchNormalization::BatchNormalization(const Ints& size, double share_kept, double epsilon,
                                       Dtype dtype, bool use_gamma, bool use_beta,
                                       const Initial& initial_gamma, const Initial& initial_beta,
                                       const std::vector<std::int64_t>& axis,
                                       const Initial& initial_avg_mean,
                                       const Initial& initial_avg_var)
    : decay(share_kept), eps(epsilon), size_(shape_of("BatchNormalization", size)), axis_(axis) {
    const Shape channels{size_.size()};
    if (!(decay >= 0 && decay <= 1))
        fail<InvalidError>("[BatchNormalization] decay: expected 0 to 1, got {}", decay);
    (void)with<"catena.batch_normalization", "eps">(eps);
    if (use_gamma) gamma = parameter(initial_gamma, 1, channels, dtype);
    if (use_beta) beta = parameter(initial_beta, 0, channels, dtype);
    avg_mean = initial_avg_mean.otherwise(0)(channels, dtype);
    avg_var = initial_avg_var.otherwise(1)(channels, dtype);
}

Variable BatchNormalization::operator()(const Variable& x) const {
    return (*this)(x, !config().train);
}

Variable BatchNormalization::operator()(const Variable& x, bool test) const {
    return call(x, test ? std::nullopt : std::optional(decay)).y;
}

Variable BatchNormalization::operator()(const Variable& x, bool test, bool finetune) {
    if (test || !finetune) return std::as_const(*this)(x, test);
    const Normalized result = call(x, 1 - 1 / static_cast<double>(N + 1));
    if (result.count > 0) ++N;
    return result.y;
}

// With axis: the first of them, then the axes of size, then the others, as without it.
BatchNormalization::Normalized BatchNormalization::call(const Variable& x,
                                                        std::optional<double> share) const {
    if (axis_.empty()) return call_by_channel(x, share);
    std::vector<std::int64_t> order, others, back(static_cast<std::size_t>(x.ndim()));
    for (std::int64_t i = 0; i < x.ndim(); ++i) {
        const bool reduced =
            std::ranges::any_of(axis_, [&](std::int64_t a) { return a == i || a + x.ndim() == i; });
        if (reduced && order.empty()) order.push_back(i);
        else if (reduced) others.push_back(i);
    }
    if (order.size() + others.size() != axis_.size() ||
        axis_.size() + static_cast<std::size_t>(size_.ndim()) != back.size())
        fail<ShapeError>("[BatchNormalization] axis: expected {} different axes of x {}, got ({})",
                         x.ndim() - size_.ndim(), to_string(x.shape()), fmt::join(axis_, ", "));
    for (std::int64_t i = 0; i < x.ndim(); ++i)
        if (i != order[0] && std::ranges::count(others, i) == 0) order.push_back(i);
    order.insert(order.end(), others.begin(), others.end());
    for (std::size_t i = 0; i < back.size(); ++i)
        back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    Normalized result = call_by_channel(functions::transpose(x, order), share);
    result.y = functions::transpose(result.y, back);
    return result;
}

BatchNormalization::Normalized BatchNormalization::call_by_channel(
    const Variable& x, std::optional<double> share) const {
    if (size_.ndim() == 1) return normalize(x, share);
    thread_local constinit ThreadFunction reshape("catena.reshape", {"shape"});
    const Shape shape = x.shape();
    const int rest = 1 + size_.ndim();
    if (shape.ndim() < rest || !std::equal(size_.begin(), size_.end(), shape.begin() + 1))
        fail<ShapeError>("[BatchNormalization] x: expected (N, {}, ...), got {}",
                         fmt::join(size_.begin(), size_.end(), ", "), to_string(shape));
    Shape channels{shape[0], size_.size(), 1};
    for (int i = rest; i < shape.ndim(); ++i) channels[2] *= shape[i];
    Normalized result = normalize(reshape({Ints(channels)}).first({&x}), share);
    result.y = reshape({Ints(shape)}).first({&result.y});
    return result;
}

BatchNormalization::Normalized BatchNormalization::normalize(const Variable& x,
                                                             std::optional<double> share) const {
    const auto constant = [&](const catena::Parameter& given, double value) {
        if (given) return Variable(given);
        const Variable made(Array::full(avg_mean.shape(), value, avg_mean.dtype(), x.device()),
                            x.is_volatile());
        made.set_requires_grad(false);
        return made;
    };
    const Variable scale = constant(gamma, 1), shift = constant(beta, 0);
    if (!share) {
        const Dtype dtype = x.dtype() == Dtype::float64 ? Dtype::float64 : Dtype::float32;
        const Variable mean(avg_mean.astype(dtype), x.is_volatile());
        const Variable var(avg_var.astype(dtype), x.is_volatile());
        mean.set_requires_grad(false);
        var.set_requires_grad(false);
        return {with<"catena.fixed_batch_normalization", "eps">(eps).first(
                    {&x, &scale, &shift, &mean, &var}),
                {},
                {},
                0};
    }
    Normalized result;
    if (normalize_minibatch) {
        result = normalize_minibatch(x, scale, shift, eps);
    } else {
        const Variable* const inputs[] = {&x, &scale, &shift};
        auto y = with<"catena.batch_normalization", "eps">(eps)(inputs);
        result = {y[0], y[1].data(), y[2].data(), x.size() / size_.size()};
    }
    if (const std::int64_t m = result.count; m > 0 && !in_recomputation()) {
        blend(avg_mean, result.mean, *share);
        const double unbiased =
            static_cast<double>(m) / static_cast<double>(std::max<std::int64_t>(m - 1, 1));
        blend(avg_var, result.var, *share, unbiased);
    }
    return result;
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
