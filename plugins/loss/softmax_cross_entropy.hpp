// Cross entropy of a softmax against labels, by log-sum-exp. The largest score and the sum of
// e^(score - largest) are stored separately: if scores are large, a rounded log-sum-exp would lose
// the small differences that determine the gradient.
#pragma once

#include "labels.hpp"

namespace catena::plugins {

struct SoftmaxCrossEntropy {
    static constexpr auto about =
        describe("catena.softmax_cross_entropy",
                 "loss = mean of -log softmax(x)[t]\n\n"
                 "The mean is over the labels that are not ignored; it is 0 if all are ignored.",
                 in(Port("x", "scores (N, classes, ...)"),
                    Port("t", "labels (N, ...)").of("I").not_differentiable()),
                 out(Port("loss", "()"),
                     Port("sums", "max x, and sum of e^(x - max x), for each label: (2, N, ...)")
                         .of("S")
                         .hidden()),
                 ignore_label)
            .example("x=(3,4) t=(3)[0,3]")
            .example("x=(2,3,2) t=(2,2)[0,2]")
            .example("x=(4,2) t=(4) ignore_label=0");
    using types = Rows<Row<float, std::int32_t, float>, Row<float, std::int64_t, float>,
                       Row<double, std::int32_t, double>, Row<double, std::int64_t, double>>;
    static constexpr auto retain_x = ports(0, 1);
    static constexpr auto retain_y = ports(1);

    static void infer(const auto& s) {
        check_labels(s, "x.shape[1]");
        s.y(0, {});
        const Shape t = s.x(1);
        std::int64_t shape[CATENA_MAX_NDIM] = {2};
        std::ranges::copy(t, shape + 1);
        s.y(1, Shape(shape, t.size() + 1), s.wide(0));
    }
    // gx = (softmax(x) - one_hot(t)) * weight * gy, composed of functions, so differentiable again.
    static void gradient(const auto& g) {
        const auto [one_hot, weight] =
            call_all<"catena.label_weights", 2>({g.x(0), g.x(1)}, {g.same("ignore_label")});
        const Var p = call<"catena.softmax">({g.x(0)}, {set("axis", std::int64_t{1})});
        g.gx(0, (p - one_hot) * (weight * g.gy(0)));
    }

    template <class T, class, class>
    static void plan(const auto& call, catena_plan& plan) {  // forward: a loss for each label
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes =
                static_cast<std::uint64_t>(size_of(*call.raw().x[1])) * sizeof(double);
    }
    template <class T, class I, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        T* const largest = call.template y<T>(1).data;
        T* const sums = largest + t.size();
        double* const losses = call.template scratch<double>();
        const bool add = call.adds(1);
        const std::int64_t ignored = call.template attr<"ignore_label">();
        const Axis axis(x.shape, 1);
        const std::int64_t step = axis.inner;
        const std::int64_t classes = axis.length;
        const std::int64_t count = count_labels(call, t, classes, ignored);
        for_each_strip(
            call, axis, [&](std::int64_t first, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                const T* const row = x.data + p;
                T most[64];
                T sum[64];
                if (step == 1) {
                    most[0] = max_of(row, classes);
                    sum[0] = sum_exp(row, classes, most[0]);
                } else {
                    max_and_sum_exp(row, classes, step, width, most, sum);
                }
                for (std::int64_t j = 0; j < width; ++j) {
                    const std::int64_t label = t[first + j];
                    const T log = math::log(sum[j]);
                    store(largest[first + j], add, most[j]);
                    store(sums[first + j], add, sum[j]);
                    losses[first + j] =
                        label == ignored
                            ? 0.0
                            : static_cast<double>(log + (most[j] - row[label * step + j]));
                }
            });
        const double total = sum_of<double>(losses, t.size());
        store(call.template y<T>(0)[0], call.adds(0),
              count == 0 ? T(0) : static_cast<T>(total / static_cast<double>(count)));
    }

    template <class T, class I, class>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const auto gx = call.template gx<T>(0);
        const auto gy = call.template gy<T>(0);
        const T* const largest = call.template y<T>(1).data;
        const T* const sums = largest + t.size();
        const bool add = call.adds(0);
        const std::int64_t ignored = call.template attr<"ignore_label">();
        if (!gx) return;
        const Axis axis(x.shape, 1);
        const std::int64_t step = axis.inner;
        const std::int64_t classes = axis.length;
        const std::int64_t count = count_labels(call, t, classes, ignored);
        const T scale = count > 0 ? gy[0] / static_cast<T>(count) : T(0);
        for_each_strip(
            call, axis, [&](std::int64_t first, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                const T* const row = x.data + p;
                T* const out = gx.data + p;
                if (step == 1) {
                    if (t[first] == ignored || scale == T(0)) {  // even if scores are inf or NaN
                        if (!add) std::fill_n(out, classes, T(0));
                        return;
                    }
                    scaled_exp(row, classes, largest[first], scale / sums[first], out, add);
                    out[t[first]] -= scale;
                    return;
                }
                T weight[64] = {};
                for (std::int64_t j = 0; j < width; ++j)
                    if (t[first + j] != ignored && scale != T(0))
                        weight[j] = scale / sums[first + j];
                for (std::int64_t i = 0; i < classes; ++i) {
                    T* const to = out + i * step;
                    if (!add) std::fill_n(to, width, T(0));
                    CATENA_LOOP
                    for (std::int64_t j = 0; j < width; ++j)
                        to[j] += probability(row[i * step + j] - largest[first + j], weight[j]);
                }
                for (std::int64_t j = 0; j < width; ++j)
                    if (t[first + j] != ignored) out[t[first + j] * step + j] -= scale;
            });
    }

private:
    // Returns weight * e^x; 0 if the weight is 0 (ignored label), even if x is inf or NaN.
    template <class T>
    CATENA_FN static T probability(T x, T weight) {
        const T p = math::exp(x) * weight;
        return weight == T(0) ? T(0) : p;
    }
};

// The one-hot labels and their weights, for the gradient; not meant to be called by users.
struct LabelWeights {
    static constexpr auto about =
        describe("catena.label_weights",
                 "one_hot = 1 at the labels; weight = 1 / count where the label counts, else 0",
                 in("x", Port("t").of("I").not_differentiable()), out("one_hot", "weight"),
                 ignore_label)
            .not_differentiable()
            .internal()
            .example("x=(3,4) t=(3)[0,3]");
    using types = LabelTypes;
    using isas = IsaList<Isa::baseline>;

    static void infer(const auto& s) {
        check_labels(s, "x.shape[1]");
        s.y(0, s.x(0));
        std::int64_t shape[CATENA_MAX_NDIM];
        std::ranges::copy(s.x(0), shape);
        shape[1] = 1;
        s.y(1, Shape(shape, s.x(0).size()));
    }
    template <class T, class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto t = call.template x<I>(1);
        const auto one_hot = call.template y<T>(0);
        const auto weight = call.template y<T>(1);
        const std::int64_t ignored = call.template attr<"ignore_label">();
        const Axis axis(one_hot.shape, 1);
        const std::int64_t count = count_labels(call, t, axis.length, ignored);
        if (!call.adds(0)) std::fill_n(one_hot.data, one_hot.size(), T(0));
        for (std::int64_t i = 0; i < t.size(); ++i) {
            const bool counts = t[i] != ignored;
            store(weight[i], call.adds(1), counts ? T(1) / static_cast<T>(count) : T(0));
            if (counts)
                one_hot[(i / axis.inner * axis.length + t[i]) * axis.inner + i % axis.inner] +=
                    T(1);
        }
    }
};

CATENA_FUNCTIONS(LabelWeights, SoftmaxCrossEntropy);

}  // namespace catena::plugins
