// Cross entropy of a softmax against labels, by log-sum-exp. The largest score and the sum of
// e^(score - largest) are stored separately: if scores are large, a rounded log-sum-exp would lose
// the small differences that determine the gradient.
#pragma once

#include "labels.hpp"

namespace catena::plugins {

// The targets q of a loss -sum of q[c] log p[c]: (1 - smoothing) weight[label] at the label, and
// smoothing / classes * weight[c] at each class.
template <class T>
struct SmoothTargets {
    SmoothTargets(const auto& call, std::int64_t classes)
        : weight{call.template x<T>(2).data},
          sharp(static_cast<T>(1 - call.template attr<"label_smoothing">())),
          each(static_cast<T>(call.template attr<"label_smoothing">() /
                              static_cast<double>(classes))) {}
    // The target of class c is everywhere(c), plus at(c) if c is the label. rest() is the sum of
    // everywhere().
    CATENA_FN T at(std::int64_t label) const { return sharp * weight[label]; }
    CATENA_FN T everywhere(std::int64_t c) const { return each * weight[c]; }
    T rest(std::int64_t classes) const { return each == T(0) ? T(0) : each * weight.sum(classes); }

    ClassWeights<T> weight;
    T sharp, each;
};

struct SoftmaxCrossEntropy {
    static constexpr auto about =
        describe("catena.softmax_cross_entropy",
                 "loss = mean of -log softmax(x)[t]\n\n"
                 "A label's loss is weighted by class_weight[t]. The mean is the sum of the losses "
                 "divided by the sum of these weights, so by default by the number of labels that "
                 "are not ignored; it is 0 if that is 0. Label smoothing s replaces the target of "
                 "a label by 1 - s at the label plus s / classes at every class; the target of "
                 "each class is then multiplied by its class weight.",
                 in(Port("x", "scores (N, classes, ...)"),
                    Port("t", "labels (N, ...)").of("I").not_differentiable(), class_weight),
                 out(Port("loss", "(), or (N, ...) if it is not reduced"),
                     Port("sums", "max x, and sum of e^(x - max x), for each label: (2, N, ...)")
                         .of("S")
                         .hidden(),
                     Port("norms",
                          "the divisor of the sum of the losses, and s / classes times the sum of "
                          "the class weights (2,)")
                         .of("S")
                         .hidden()),
                 ignore_label, reduce, label_smoothing, normalize)
            .example("x=(3,4) t=(3)[0,3]")
            .example("x=(2,3,2) t=(2,2)[0,2]")
            .example("x=(4,2) t=(4) ignore_label=0")
            .example("x=(3,4) t=(3)[0,3] class_weight=(4)[0.5,2] label_smoothing=0.25")
            .example("x=(2,3,2) t=(2,2)[0,2] class_weight=(3)[0.5,2] reduce=\"no\"")
            .example("x=(2,3,2) t=(2,2)[0,2] label_smoothing=0.25 reduce=\"sum\"")
            .example("x=(2,3,2) t=(2,2)[0,2] normalize=false");
    using types = LossTypes;
    static constexpr auto retain_x = ports(0, 1, 2);
    static constexpr auto retain_y = ports(1, 2);

    static void infer(const auto& s) {
        infer_loss(s);
        const Shape t = s.x(1);
        std::int64_t shape[CATENA_MAX_NDIM] = {2};
        std::ranges::copy(t, shape + 1);
        s.y(1, Shape(shape, t.size() + 1), s.wide(0));
        s.y(2, {2}, s.wide(0));
    }
    // gx = (softmax(x) * sum of q - q) * gy / divisor, composed of functions.
    static void gradient(const auto& g) {
        const auto attrs = {g.same("ignore_label"), g.same("label_smoothing")};
        const Var q = g.has(2) ? call<"catena.label_targets">({g.x(0), g.x(1), g.x(2)}, attrs)
                               : call<"catena.label_targets">({g.x(0), g.x(1)}, attrs);
        const Var all = sum(q, {1}, true);
        const Var x = math::where(all, g.x(0), 0.0);  // the scores of an ignored label may be NaN
        const Var p = call<"catena.softmax">({x}, {set("axis", std::int64_t{1})});
        g.gx(0, (p * all - q) * gradient_of_losses(g, 2));
    }

    template <class T, class, class>
    static void plan(const auto& call, catena_plan& plan) {  // forward: a loss for each label
        plan_losses(call, plan);
    }
    template <class T, class I, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const Axis axis(x.shape, 1);
        const SmoothTargets<T> q(call, axis.length);
        const double by = divisor(call, t, axis.length, q.weight);
        const auto norms = call.template y<T>(2);
        store(norms[0], call.adds(2), static_cast<T>(by));
        store(norms[1], call.adds(2), q.rest(axis.length));
        double* const losses = call.template scratch<double>();
        compute_losses(call, axis, x.data, Labels(call, t), q, call.template y<T>(1).data, losses);
        store_losses<T>(call, losses, t.size(), by);
    }
    template <class T, class I, class>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const auto gx = call.template gx<T>(0);
        if (!gx) return;
        const Axis axis(x.shape, 1);
        const SmoothTargets<T> q(call, axis.length);
        count_labels(call, t, axis.length, call.template attr<"ignore_label">());
        compute_gradient(call, axis, x.data, Labels(call, t), q, call.template y<T>(1).data,
                         call.template y<T>(2).data, gx.data);
    }

private:
    // These do not depend on the type of the labels, so they are compiled once for all.
    template <class T>
    CATENA_KERNEL static void compute_losses(const auto& call, const Axis& axis, const T* x,
                                             const Labels& t, const SmoothTargets<T>& q, T* largest,
                                             double* losses) {
        T* const sums = largest + axis.count();
        const bool add = call.adds(1);
        const std::int64_t step = axis.inner;
        const std::int64_t classes = axis.length;
        for_each_strip(
            call, axis, [&](std::int64_t first, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                const T* const row = x + p;
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
                    T loss = 0;
                    if (label != t.ignored) {
                        loss = q.at(label) * (log + (most[j] - row[label * step + j]));
                        if (q.each != T(0))
                            loss += q.each *
                                    sum_of_all(row + j, step, classes, most[j], log, q.weight.data);
                    }
                    losses[first + j] = static_cast<double>(loss);
                }
            });
    }
    // The sum of -log p of all classes, times their weights.
    template <class T>
    CATENA_KERNEL static T sum_of_all(const T* x, std::int64_t step, std::int64_t classes, T most,
                                      T log, const T* weight) {
        const auto loss = [=](std::int64_t i) CATENA_LAMBDA { return log + (most - x[i]); };
        if (step != 1)
            return sum_lanes<T>(classes, [=](std::int64_t i) CATENA_LAMBDA {
                return loss(i * step) * (weight == nullptr ? T(1) : weight[i]);
            });
        if (weight == nullptr) return sum_lanes<T>(classes, loss);
        return sum_lanes<T>(classes,
                            [=](std::int64_t i) CATENA_LAMBDA { return loss(i) * weight[i]; });
    }

    template <class T>
    CATENA_KERNEL static void compute_gradient(const auto& call, const Axis& axis, const T* x,
                                               const Labels& t, const SmoothTargets<T>& q,
                                               const T* largest, const T* norms, T* gx) {
        const T* const sums = largest + axis.count();
        const T by = norms[0], rest = norms[1];
        const LossGradient<T> gy(call);
        const bool add = call.adds(0);
        const std::int64_t step = axis.inner;
        const std::int64_t classes = axis.length;
        for_each_strip(
            call, axis, [&](std::int64_t first, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                const T* const row = x + p;
                T* const out = gx + p;
                // The gradient of each label's loss; 0 if it is ignored, even if scores are NaN.
                T scale[64];
                T weight[64];
                T at[64];
                for (std::int64_t j = 0; j < width; ++j) {
                    const std::int64_t label = t[first + j];
                    scale[j] = label == t.ignored ? T(0) : gy[first + j] / by;
                    at[j] = scale[j] == T(0) ? T(0) : q.at(label);
                    weight[j] =
                        scale[j] == T(0) ? T(0) : scale[j] * (at[j] + rest) / sums[first + j];
                    at[j] *= scale[j];
                }
                if (step == 1) {
                    if (scale[0] == T(0)) {
                        if (!add) std::fill_n(out, classes, T(0));
                        return;
                    }
                    scaled_exp(row, classes, largest[first], weight[0], out, add);
                    if (q.each != T(0)) subtract(q, scale[0], classes, out);
                    out[t[first]] -= at[0];
                    return;
                }
                for (std::int64_t i = 0; i < classes; ++i) {
                    T* const to = out + i * step;
                    const T each = q.everywhere(i);
                    if (!add) std::fill_n(to, width, T(0));
                    CATENA_LOOP
                    for (std::int64_t j = 0; j < width; ++j)
                        to[j] += probability(row[i * step + j] - largest[first + j], weight[j]) -
                                 scale[j] * each;
                }
                for (std::int64_t j = 0; j < width; ++j)
                    if (scale[j] != T(0)) out[t[first + j] * step + j] -= at[j];
            });
    }
    // Subtracts the smoothed part of the targets from the gradient of every class.
    template <class T>
    CATENA_KERNEL static void subtract(const SmoothTargets<T>& q, T scale, std::int64_t classes,
                                       T* out) {
        const T* const weight = q.weight.data;
        const T each = scale * q.each;
        if (weight == nullptr) {
            CATENA_LOOP
            for (std::int64_t i = 0; i < classes; ++i) out[i] -= each;
        } else {
            CATENA_LOOP
            for (std::int64_t i = 0; i < classes; ++i) out[i] -= each * weight[i];
        }
    }
    // Returns weight * e^x; 0 if the weight is 0 (ignored label), even if x is inf or NaN.
    template <class T>
    CATENA_FN static T probability(T x, T weight) {
        const T p = math::exp(x) * weight;
        return weight == T(0) ? T(0) : p;
    }
};

// The targets of the labels, for the gradient; not meant to be called by users.
struct LabelTargets {
    static constexpr auto about =
        describe(
            "catena.label_targets",
            "q = 1 at the labels, or their smoothed targets, times the class weights; 0 if the "
            "label is ignored",
            in("x", Port("t").of("I").not_differentiable(), class_weight), out("q"), ignore_label,
            label_smoothing)
            .not_differentiable()
            .internal()
            .example("x=(3,4) t=(3)[0,3]")
            .example("x=(2,3,2) t=(2,2)[0,2] class_weight=(3) label_smoothing=0.25");
    using types = LabelTypes;
    using isas = IsaList<Isa::baseline>;

    static void infer(const auto& s) {
        check_labels(s, "x.shape[1]");
        s.check_shape(2, {s.x(0)[1]});
        s.y(0, s.x(0));
    }
    template <class T, class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto t = call.template x<I>(1);
        const auto q = call.template y<T>(0);
        const std::int64_t ignored = call.template attr<"ignore_label">();
        const Axis axis(q.shape, 1);
        const SmoothTargets<T> targets(call, axis.length);
        count_labels(call, t, axis.length, ignored);
        if (!call.adds(0)) std::fill_n(q.data, q.size(), T(0));
        for (std::int64_t i = 0; i < t.size(); ++i) {
            if (t[i] == ignored) continue;
            T* const line = q.data + i / axis.inner * axis.length * axis.inner + i % axis.inner;
            if (targets.each != T(0))
                for (std::int64_t c = 0; c < axis.length; ++c)
                    line[c * axis.inner] += targets.everywhere(c);
            line[t[i] * axis.inner] += targets.at(t[i]);
        }
    }
};

CATENA_FUNCTIONS(LabelTargets, SoftmaxCrossEntropy);

}  // namespace catena::plugins
