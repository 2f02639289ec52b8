// Labels: class indices for scores of shape (N, classes, ...); labels may be ignored.
#pragma once

#include <cstdint>
#include <limits>

#include <catena/plugin/rows.hpp>

#include "reductions.hpp"

namespace catena::plugins {

// A value of ignore_label for functions that ignore none.
inline constexpr std::int64_t none_ignored = std::numeric_limits<std::int32_t>::min();
inline constexpr Attribute ignore_label =
    attr("ignore_label", -1, "rows with this label are ignored");
inline constexpr Attribute reduce =
    attr("reduce", "mean", "mean or sum of the labels' losses, or no: all of them, in t's shape")
        .one_of(reductions);
inline constexpr Attribute normalize =
    attr("normalize", true,
         "mean: divide by the sum of the weights of the labels that are not ignored; false: by N");
inline constexpr Attribute label_smoothing =
    attr("label_smoothing", 0.0, "the share of a target that is spread evenly over all classes")
        .range(0, 1);
inline constexpr Port class_weight =
    Port("class_weight", "a weight for each class (classes,); default: 1")
        .optional()
        .not_differentiable();
using LabelTypes = Rows<Row<float, std::int32_t>, Row<float, std::int64_t>,
                        Row<double, std::int32_t>, Row<double, std::int64_t>>;

// A loss and the statistics that backward needs, which stay float32 for half precision.
using LossTypes = Rows<Row<float, std::int32_t, float>, Row<float, std::int64_t, float>,
                       Row<double, std::int32_t, double>, Row<double, std::int64_t, double>>;

// Labels of 4 or 8 bytes each; the same code reads both.
struct Labels {
    template <class I>
    Labels(const auto& call, Tensor<const I> t)
        : data(t.data),
          ignored(static_cast<I>(call.template attr<"ignore_label">())),
          wide(sizeof(I) == 8) {}
    CATENA_FN std::int64_t operator[](std::int64_t i) const {
        return wide != 0 ? static_cast<const std::int64_t*>(data)[i]
                         : std::int64_t{static_cast<const std::int32_t*>(data)[i]};
    }
    const void* data;
    std::int64_t ignored;
    std::int64_t wide;
};

// Checks that t has the shape of x without axis 1. classes: the name of that axis in errors.
inline void check_labels(const auto& s, const char* classes) {
    const Shape x = s.x(0);
    s.check_least_ndim(0, 2);
    s.check(x[1] >= 1, classes, "at least 1 class", x[1]);
    std::int64_t shape[CATENA_MAX_NDIM];
    shape[0] = x[0];
    std::copy(x.begin() + 2, x.end(), shape + 1);
    s.check_shape(1, Shape(shape, x.size() - 1));
}

// Returns how many labels are not ignored. Throws CATENA_E_VALUE for the first one out of range.
template <class I>
std::int64_t count_labels(const auto& call, Tensor<const I> t, std::int64_t classes,
                          std::int64_t ignored) {
    std::int64_t count = 0;
    bool right = true;
    const std::int64_t n = t.size();
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t label = t[i];
        const bool counts = label != ignored;
        count += counts;
        right = right && (!counts || (label >= 0 && label < classes));
    }
    if (right) [[likely]]
        return count;
    std::int64_t i = 0;
    while (t[i] == ignored || (t[i] >= 0 && t[i] < classes)) ++i;
    call.fail(CATENA_E_VALUE, text_of_element("t", i, t.shape).c_str(),
              "a label from 0 to " + std::to_string(classes - 1) +
                  (ignored == none_ignored ? "" : ", or " + std::to_string(ignored) + " to ignore"),
              t[i]);
}

// Checks x, t and class_weight, and sets the shape of the loss.
inline void infer_loss(const auto& s) {
    check_labels(s, "x.shape[1]");
    s.check_shape(2, {s.x(0)[1]});
    s.y(0, s.template attr<"reduce">() == "no" ? s.x(1) : Shape());
}
// The class weights, as call.x<T>(2) has them.
template <class T>
struct ClassWeights {
    CATENA_FN T operator[](std::int64_t c) const { return data == nullptr ? T(1) : data[c]; }
    T sum(std::int64_t classes) const {
        return data == nullptr ? static_cast<T>(classes) : static_cast<T>(sum_of(data, classes));
    }
    const T* data;
};

// Returns the divisor of the sum of the losses; 1 instead of 0, in which case all losses are 0.
// Throws for a label out of range.
template <class I, class T>
double divisor(const auto& call, Tensor<const I> t, std::int64_t classes, ClassWeights<T> weights) {
    const std::int64_t ignored = call.template attr<"ignore_label">();
    auto sum = static_cast<double>(count_labels(call, t, classes, ignored));
    if (call.template attr<"reduce">() != "mean") return 1;
    if (!call.template attr<"normalize">()) {
        sum = static_cast<double>(t.dim(0));
    } else if (weights.data != nullptr) {
        sum = 0;
        for (std::int64_t i = 0; i < t.size(); ++i)
            if (t[i] != ignored) sum += static_cast<double>(weights[t[i]]);
    }
    return sum == 0 ? 1 : sum;
}
// Stores the n losses, or their sum divided by `by`.
template <class T>
CATENA_KERNEL void store_losses(const auto& call, const double* losses, std::int64_t n, double by) {
    T* const y = call.template y<T>(0).data;
    const bool add = call.adds(0);
    if (call.template attr<"reduce">() != "no")
        return store(*y, add, static_cast<T>(sum_of<double>(losses, n) / by));
    for (std::int64_t i = 0; i < n; ++i) store(y[i], add, static_cast<T>(losses[i]));
}
// The gradient of the loss of one label, before its division by the divisor.
template <class T>
struct LossGradient {
    explicit LossGradient(const auto& call)
        : gy(call.template gy<T>(0).data), each(call.template attr<"reduce">() == "no") {}
    CATENA_FN T operator[](std::int64_t i) const { return gy[each ? i : 0]; }
    const T* gy;
    bool each;
};

// Requests scratch memory for a loss per label; backward needs none.
inline void plan_losses(const auto& call, catena_plan& plan) {
    if (call.raw().phase == CATENA_PHASE_FORWARD)
        plan.scratch_bytes = static_cast<std::uint64_t>(size_of(*call.raw().x[1])) * sizeof(double);
}
// The gradient of each label's loss, to be broadcast over x: gy divided by the divisor, which is
// the first element of the retained output `norms`.
inline Var gradient_of_losses(const auto& g, std::size_t norms) {
    const std::string_view how = g.template attr<"reduce">();
    if (how == "sum") return g.gy(0);
    if (how == "mean") {
        const std::int64_t first[] = {0}, last[] = {1};
        const Var by = call<"catena.get_item">({g.y(norms)},
                                               {set("begin", Ints(first)), set("end", Ints(last))});
        return g.gy(0) * cast(1.0 / by, g.x_meta(0).dtype);
    }
    std::int64_t shape[CATENA_MAX_NDIM];
    std::ranges::copy(g.x_shape(0), shape);
    shape[1] = 1;
    return reshape(g.gy(0), Shape(shape, g.x_shape(0).size()));
}

}  // namespace catena::plugins
