// Functions of several results: functions/shapes.hpp.
#include "operands.hpp"

#include <catena/function_forms.hpp>

namespace catena::functions {
namespace {

template <class X>
std::vector<X> separated(const X& x, int axis) {
    expect("separate", "x", x);
    const Shape shape = x.shape();
    const int at = axis_index("separate", axis, shape);
    if (shape[at] == 0) return {};
    std::vector<X> parts = split_axis(x, shape[at], at);
    for (X& part : parts) part = squeeze(part, at);
    return parts;
}

template <class X>
std::vector<X> broadcast_all(std::span<const X> xs) {
    if (xs.empty())
        fail<InvalidError>("[broadcast] xs: expected at least one array, got none");
    expect_each("broadcast", "xs", xs);
    const X& longest = *std::ranges::max_element(xs, {}, [](const X& x) { return x.ndim(); });
    std::vector<std::int64_t> shape(static_cast<std::size_t>(longest.ndim()), 1);
    for (std::size_t i = 0; i < xs.size(); ++i) {
        const Shape before{std::span<const std::int64_t>(shape)};
        if (!broadcast_with(xs[i].shape(), shape))
            fail<ShapeError>("[broadcast] xs[{}].shape: expected broadcastable to {}, got {}", i,
                             to_string(before), to_string(xs[i].shape()));
    }
    std::vector<X> results;
    for (const X& x : xs)
        results.push_back(std::ranges::equal(x.shape(), shape) ? identity(x)
                                                               : broadcast_to(x, shape));
    return results;
}

}  // namespace

std::vector<Variable> separate(const Variable& x, int axis) { return separated(x, axis); }
std::vector<Array> separate(const Array& x, int axis) { return separated(x, axis); }
std::vector<Variable> broadcast(const VariableList& xs) { return broadcast_all(xs.view()); }
std::vector<Array> broadcast(const ArrayList& xs) { return broadcast_all(xs.view()); }

}  // namespace catena::functions
