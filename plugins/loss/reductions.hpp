// Reductions of losses and norms of vectors, for compositions.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr const char* reductions[] = {"mean", "sum", "no", nullptr};
inline constexpr const char* mean_or_no[] = {"mean", "no", nullptr};

// The attribute of losses of elements.
constexpr Attribute reduce_elements(const char* def, const char* const* choices = reductions) {
    return attr("reduce", def, "mean or sum of the elements' losses, or no: all of them")
        .one_of(choices);
}
// The attribute of losses of rows.
inline constexpr Attribute reduce_rows =
    attr("reduce", "mean", "mean of the rows' losses, or no: all of them").one_of(mean_or_no);

// The loss, reduced in one of the ways of all functions. batchmean: the sum divided by the length of
// the first axis, without a sum that half precision does not hold.
inline Var reduced(const Var& loss, std::string_view how) {
    if (how == "no") return loss;
    if (how == "sum") return sum(loss);
    if (how == "half_squared_sum") return 0.5 * sum(loss * loss);
    if (how == "sum_along_second_axis") return sum(loss, {1});
    if (how == "mean") return mean(loss);
    const Meta meta = loss.meta();
    return mean(loss) * (static_cast<double>(meta.size()) /
                         static_cast<double>(meta.ndim == 0 ? 1 : meta.dim(0)));
}
inline Var reduced(const auto& g, const Var& loss) {
    return reduced(loss, g.template attr<"reduce">());
}

// Throws unless all inputs have the shape of the first one.
inline void check_same_shapes(const auto& g) {
    for (std::size_t i = 1; i < g.n_x(); ++i) g.check_shape(i, g.x_meta(0).shape());
}

inline Var norm(const Var& x, double order, const IntList& axis) {
    return call<"catena.norm">({x}, {set("ord", order), set("axis", Ints(axis))});
}

}  // namespace catena::plugins
