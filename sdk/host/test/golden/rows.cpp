// A row for each function.
#include "golden.hpp"

namespace F = catena::functions;

namespace golden {
namespace {

using catena::Array, catena::Dtype, catena::Variable;
using List = std::vector<std::int64_t>;

Variables outputs(Variables ys) { return ys; }
Variables outputs(const Variable& y) { return {y}; }
Variables outputs(const Array& y) { return {catena::as_variable(y)}; }

// Attributes, which must be there if there is no other value.
double real(const Json& a, const char* name) { return a.at(name).get<double>(); }
std::int64_t whole(const Json& a, const char* name) { return a.at(name).get<std::int64_t>(); }
int number(const Json& a, const char* name) { return a.at(name).get<int>(); }
bool flag(const Json& a, const char* name) { return a.at(name).get<bool>(); }
std::string text(const Json& a, const char* name) { return a.at(name).get<std::string>(); }
List list(const Json& a, const char* name) { return a.at(name).get<List>(); }
int axis(const Json& a) { return number(a, "axis"); }
int axis_or(const Json& a, int otherwise) { return a.value("axis", otherwise); }
List axes(const Json& a) { return a.value("axis", List()); }
bool keepdims(const Json& a) { return a.value("keepdims", false); }
double eps(const Json& a) { return a.value("eps", 1e-5); }
std::string reduce(const Json& a) { return text(a, "reduce"); }

// The index of the attribute `index`, whose arrays are the inputs from `first` on.
std::vector<catena::Index> index_of(const Variables& x, std::size_t first, const Json& a) {
    std::vector<catena::Index> index;
    for (const auto& item : a.at("index")) {
        if (item == "...") index.emplace_back(catena::ellipsis);
        else if (item == "new") index.emplace_back(catena::newaxis);
        else if (item.is_string()) index.emplace_back(x.at(first++));
        else if (item.is_array()) {
            const auto place = [&](std::size_t i) -> std::optional<std::int64_t> {
                if (item[i].is_null()) return {};
                return item[i].get<std::int64_t>();
            };
            index.emplace_back(catena::slice(place(0), place(1), place(2).value_or(1)));
        } else index.emplace_back(item.get<std::int64_t>());
    }
    return index;
}

// The functions draw their noise: it is drawn twice with one seed, and replaced by the given noise.
Variable gaussian(const Variables& x) {
    // Normal noise of which none is small, because a quotient of it would round.
    for (std::uint64_t seed = 1;; ++seed) {
        const Array given = x[2].data();
        catena::seed(seed);
        const Array noise =
            F::normal(given.shape(), 0, 1, Dtype::float32, given.device()).astype(given.dtype());
        if (!F::all(F::abs(noise) > 0.5).item<bool>()) continue;
        catena::seed(seed);
        return (F::gaussian(x[0], x[1]) - x[0]) * (given / noise) + x[0];
    }
}
Variable gumbel_softmax(const Variables& x, const Json& a) {
    const Array& given = x[1].data();
    catena::seed(1);
    const Array u = F::uniform(given.shape(), 0, 1, Dtype::float32, given.device());
    const Array noise = (-F::log(-F::log(u))).astype(given.dtype());
    catena::seed(1);
    return F::gumbel_softmax(x[0] + (given - noise), real(a, "tau"), axis(a));
}
Variable input_or_none(const Variables& x, std::size_t i) {
    return i < x.size() ? x[i] : Variable();
}

}  // namespace

#define ROW(name, ...)                                                                \
    {                                                                                 \
#name, [](const Variables& x, const Json& a) { return outputs(__VA_ARGS__); } \
    }
#define UNARY(name) ROW(name, F::name(x[0]))
#define BINARY(name) ROW(name, F::name(x[0], x[1]))

const std::map<std::string, HostFunction> host_functions = {
    // activations
    BINARY(swish),
    UNARY(relu6),
    UNARY(selu),
    ROW(celu, F::celu(x[0], real(a, "alpha"))),
    ROW(crelu, F::crelu(x[0], axis_or(a, 1))),
    ROW(maxout, F::maxout(x[0], whole(a, "pool_size"), axis_or(a, 1))),
    ROW(glu, F::glu(x[0], axis_or(a, -1))),
    ROW(swiglu_axis, F::swiglu(x[0], axis_or(a, -1))),
    ROW(geglu, F::geglu(x[0], axis_or(a, -1))),
    // forms
    ROW(split_axis, F::split_axis(x[0], list(a, "indices"), axis(a))),
    // indexing
    ROW(get_item, F::get_item(x[0], index_of(x, 1, a))),
    ROW(set_item, F::set_item(x[0], index_of(x, 2, a), x[1])),
    ROW(take, F::take(x[0], x[1], axis(a))),
    ROW(take_along_axis, F::take_along_axis(x[0], x[1], axis(a))),
    ROW(gather, F::gather(x[0], axis(a), x[1])),
    ROW(scatter, F::scatter(x[0], axis(a), x[1], x[2])),
    ROW(scatter_add, F::scatter_add(x[0], axis(a), x[1], x[2])),
    ROW(index_add, F::index_add(x[0], axis(a), x[1], x[2])),
    ROW(put, F::put(x[0], x[1], x[2])),
    BINARY(select_item),
    UNARY(nonzero),
    ROW(permutate, F::permutate(x[0], x[1], axis(a), flag(a, "inv"))),
    // logic
    BINARY(equal),
    BINARY(not_equal),
    BINARY(greater),
    BINARY(greater_equal),
    BINARY(less),
    BINARY(less_equal),
    BINARY(logical_and),
    BINARY(logical_or),
    BINARY(logical_xor),
    BINARY(maximum),
    BINARY(minimum),
    UNARY(logical_not),
    UNARY(isnan),
    UNARY(isinf),
    UNARY(isfinite),
    ROW(where, F::where(x[0], x[1], x[2])),
    ROW(one_hot, F::one_hot(x[0], a.at("depth"), a.at("axis"))),
    ROW(isclose, F::isclose(x[0], x[1], a.value("rtol", 1e-5), a.value("atol", 1e-8),
                            a.value("equal_nan", false))),
    // The following have the dtype and device of their input.
    ROW(arange,
        F::arange(real(a, "start"), real(a, "stop"), real(a, "step"), x[0].dtype(), x[0].device())),
    ROW(arange_integers,
        F::arange(number(a, "start"), number(a, "stop"), number(a, "step"), {}, x[0].device())),
    ROW(linspace, F::linspace(a.at("start"), a.at("stop"), a.at("n"), a.at("endpoint"),
                              x[0].dtype(), x[0].device())),
    ROW(full_like, F::full_like(x[0], a.at("value"))),
    ROW(eye, F::eye(a.at("n"), a.at("m"), a.at("k"), x[0].dtype(), x[0].device())),
    ROW(tri, F::tri(a.at("n"), a.at("m"), a.at("k"), x[0].dtype(), x[0].device())),
    // losses
    ROW(sigmoid_cross_entropy,
        F::sigmoid_cross_entropy(x[0], x[1], flag(a, "normalize"), reduce(a))),
    ROW(huber_loss, F::huber_loss(x[0], x[1], real(a, "delta"), reduce(a))),
    ROW(smooth_l1_loss, F::smooth_l1_loss(x[0], x[1], real(a, "beta"), reduce(a))),
    ROW(l1_loss, F::l1_loss(x[0], x[1], reduce(a))),
    BINARY(absolute_error),
    BINARY(squared_error),
    BINARY(mean_absolute_error),
    ROW(hinge, F::hinge(x[0], x[1], text(a, "norm"), reduce(a))),
    ROW(kl_div, F::kl_div(x[0], x[1], reduce(a), flag(a, "log_target"))),
    ROW(gaussian_kl_divergence, F::gaussian_kl_divergence(x[0], x[1], reduce(a))),
    ROW(bernoulli_nll, F::bernoulli_nll(x[0], x[1], reduce(a))),
    ROW(gaussian_nll, F::gaussian_nll(x[0], x[1], x[2], reduce(a))),
    // noise
    ROW(gaussian, gaussian(x)),
    ROW(gumbel_softmax, gumbel_softmax(x, a)),
    // normalization
    ROW(instance_normalization,
        F::instance_normalization(x[0], input_or_none(x, 1), input_or_none(x, 2), eps(a))),
    ROW(normalize, F::normalize(x[0], eps(a), a.value("axis", List{1}))),
    ROW(weight_standardization, F::weight_standardization(x[0], eps(a))),
    // products
    ROW(einsum, F::einsum(text(a, "subscripts"), x)),
    ROW(tensordot, a.contains("axes")
                       ? F::tensordot(x[0], x[1], number(a, "axes"))
                       : F::tensordot(x[0], x[1], list(a, "axes_a"), list(a, "axes_b"))),
    ROW(batch_matmul, F::batch_matmul(x[0], x[1], flag(a, "transa"), flag(a, "transb"))),
    // reductions
    ROW(std, F::std(x[0], axes(a), keepdims(a), a.value("ddof", std::int64_t{0}))),
    ROW(norm, F::norm(x[0], std::stod(text(a, "ord")), axes(a), keepdims(a))),
    ROW(average, F::average(x[0], axes(a), input_or_none(x, 1), keepdims(a))),
    ROW(sort, F::sort(x[0], axis_or(a, -1), a.value("descending", false))),
    ROW(argsort, F::argsort(x[0], axis_or(a, -1), a.value("descending", false))),
    // shapes
    ROW(concat, F::concat(x, axis(a))),
    ROW(stack, F::stack(x, axis(a))),
    ROW(vstack, F::vstack(x)),
    ROW(hstack, F::hstack(x)),
    ROW(dstack, F::dstack(x)),
    ROW(separate, F::separate(x[0], axis(a))),
    ROW(broadcast, F::broadcast(x)),
    ROW(pad_sequence, a.contains("length")
                          ? F::pad_sequence(x, number(a, "length"), a.at("padding"))
                          : F::pad_sequence(x)),
    ROW(expand_dims, F::expand_dims(x[0], list(a, "axis"))),
    ROW(squeeze, a.contains("axis") ? F::squeeze(x[0], list(a, "axis")) : F::squeeze(x[0])),
    UNARY(flatten),
    ROW(moveaxis, F::moveaxis(x[0], list(a, "source"), list(a, "destination"))),
    ROW(swapaxes, F::swapaxes(x[0], number(a, "axis1"), number(a, "axis2"))),
    ROW(rollaxis, F::rollaxis(x[0], axis(a), number(a, "start"))),
    ROW(flip, F::flip(x[0], list(a, "axis"))),
    UNARY(fliplr),
    UNARY(flipud),
    ROW(roll, a.contains("axis") ? F::roll(x[0], list(a, "shift"), list(a, "axis"))
                                 : F::roll(x[0], list(a, "shift")[0])),
    ROW(tile, F::tile(x[0], list(a, "reps"))),
    ROW(repeat, a.contains("axis") ? F::repeat(x[0], list(a, "repeats"), axis(a))
                                   : F::repeat(x[0], list(a, "repeats"))),
    ROW(pad, F::pad(x[0], list(a, "pad_width"), text(a, "mode"), a.at("value"))),
    ROW(tril, F::tril(x[0], number(a, "k"))),
    ROW(triu, F::triu(x[0], number(a, "k"))),
};

}  // namespace golden
