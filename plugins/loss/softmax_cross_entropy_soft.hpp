// Cross entropy of a softmax against the probabilities of the classes, by log-sum-exp.
#pragma once

#include "labels.hpp"

namespace catena::plugins {

// The targets q of a loss -sum of q[c] log p[c]: smoothed probabilities times the class weights.
template <class T>
struct SoftTargets {
    SoftTargets(const auto& call, std::int64_t classes)
        : weight{call.template x<T>(2).data},
          sharp(static_cast<T>(1 - call.template attr<"label_smoothing">())),
          each(static_cast<T>(call.template attr<"label_smoothing">() /
                              static_cast<double>(classes))) {}
    CATENA_FN T operator()(T t, std::int64_t c) const { return (sharp * t + each) * weight[c]; }
    CATENA_FN T slope(std::int64_t c) const { return sharp * weight[c]; }  // dq / dt

    ClassWeights<T> weight;
    T sharp, each;
};
// Returns q * loss; 0 if q is 0, even if the probability of the class is 0.
template <class T>
CATENA_FN T part_of(T q, T loss) {
    return q == T(0) ? T(0) : q * loss;
}

struct SoftmaxCrossEntropySoft {
    static constexpr auto about =
        describe("catena.softmax_cross_entropy_soft",
                 "loss = mean of -sum of t * log softmax(x), for probabilities t\n\n"
                 "The sum is over the classes, the mean over the other axes, also if there are "
                 "class weights. t need not sum to 1. Label smoothing s replaces t by "
                 "(1 - s) t + s / classes.",
                 in(Port("x", "scores (N, classes, ...)"),
                    Port("t", "probabilities of the classes, in x's shape"), class_weight),
                 out(Port("loss", "(), or (N, ...) if it is not reduced"),
                     Port("sums", "max x, and sum of e^(x - max x), of each row: (2, N, ...)")
                         .of("S")
                         .hidden()),
                 reduce, label_smoothing)
            .example("x=(3,4) t=(3,4)[0,1]")
            .example("x=(2,3,2) t=(2,3,2)[0,1] class_weight=(3)[0.5,2]")
            .example("x=(3,4) t=(3,4)[0,1] class_weight=(4)[0.5,2] reduce=\"no\"")
            .example("x=(2,3,2) t=(2,3,2)[0,1] label_smoothing=0.25 reduce=\"sum\"");
    using types = Rows<Row<float, float>, Row<double, double>>;
    static constexpr auto retain_x = ports(0, 1, 2);
    static constexpr auto retain_y = ports(1);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        s.check_least_ndim(0, 2);
        s.check(x[1] >= 1, "x.shape[1]", "at least 1 class", x[1]);
        s.check_shape(1, x);
        s.check_shape(2, {x[1]});
        std::int64_t shape[CATENA_MAX_NDIM] = {2, x[0]};
        std::copy(x.begin() + 2, x.end(), shape + 2);
        const Shape sums(shape, x.size());
        s.y(0, s.template attr<"reduce">() == "no" ? sums.subspan(1) : Shape());
        s.y(1, sums, s.wide(0));
    }
    // gx = (softmax(x) * sum of q - q) * gy / rows, composed of functions. The maximum is a
    // constant: it does not change the log-softmax.
    static void gradient(const auto& g) {
        const Shape x = g.x_shape(0);
        std::int64_t begin[] = {0}, end[] = {1};
        std::int64_t shape[CATENA_MAX_NDIM];
        std::ranges::copy(x, shape);
        shape[1] = 1;
        const Shape kept(shape, x.size());
        const Var most =
            call<"catena.get_item">({g.y(1)}, {set("begin", Ints(begin)), set("end", Ints(end))});
        const Var d = g.x(0) - reshape(cast(most, g.x_meta(0).dtype), kept);
        const Var e = math::exp(d);
        const Var z = sum(e, {1}, true);
        Var slope = 1 - g.template attr<"label_smoothing">();
        Var q = g.x(1) * slope + g.template attr<"label_smoothing">() / static_cast<double>(x[1]);
        if (g.has(2)) {
            for (std::int64_t& extent : shape) extent = 1;
            shape[1] = x[1];
            const Var weight = reshape(g.x(2), kept);
            q = q * weight;
            slope = slope * weight;
        }
        Var gy = g.gy(0);
        const std::string_view how = g.template attr<"reduce">();
        if (how == "mean") gy = gy * (1 / static_cast<double>(rows_of(x)));
        if (how == "no") {
            std::ranges::copy(x, shape);
            shape[1] = 1;
            gy = reshape(gy, kept);
        }
        if (g.wants(0)) g.gx(0, (e / z * sum(q, {1}, true) - q) * gy);
        if (g.wants(1)) g.gx(1, (math::log(z) - d) * slope * gy);
    }

    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes =
                static_cast<std::uint64_t>(rows_of(call.template x<T>(0).shape)) * sizeof(double);
    }
    template <class T, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const T* const t = call.template x<T>(1).data;
        const Axis axis(x.shape, 1);
        const SoftTargets<T> q(call, axis.length);
        double* const losses = call.template scratch<double>();
        T* const largest = call.template y<T>(1).data;
        T* const sums = largest + axis.count();
        const bool add = call.adds(1);
        const std::int64_t step = axis.inner;
        const std::int64_t classes = axis.length;
        for_each_strip(
            call, axis, [&](std::int64_t first, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                const T* const row = x.data + p;
                const T* const target = t + p;
                T most[64];
                T sum[64];
                if (step == 1) {
                    most[0] = max_of(row, classes);
                    sum[0] = sum_exp(row, classes, most[0]);
                } else {
                    max_and_sum_exp(row, classes, step, width, most, sum);
                }
                for (std::int64_t j = 0; j < width; ++j) {
                    store(largest[first + j], add, most[j]);
                    store(sums[first + j], add, sum[j]);
                    const T log = math::log(sum[j]);
                    losses[first + j] = static_cast<double>(
                        step == 1
                            ? loss_of(row, target, 1, classes, most[j], log, q)
                            : strided_loss_of(row + j, target + j, step, classes, most[j], log, q));
                }
            });
        store_losses<T>(call, losses, axis.count(), divisor(call, axis));
    }
    template <class T, class>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const T* const t = call.template x<T>(1).data;
        const Axis axis(x.shape, 1);
        const SoftTargets<T> q(call, axis.length);
        const T* const largest = call.template y<T>(1).data;
        const T* const sums = largest + axis.count();
        T* const gx = call.template gx<T>(0).data;
        T* const gt = call.template gx<T>(1).data;
        const LossGradient<T> gy(call);
        const T by = static_cast<T>(divisor(call, axis));
        const bool add = call.adds(0), add_t = call.adds(1);
        const std::int64_t step = axis.inner;
        const std::int64_t classes = axis.length;
        for_each_strip(call, axis,
                       [&](std::int64_t first, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                           for (std::int64_t j = 0; j < width; ++j) {
                               const std::int64_t at = p + j;
                               const Line<T> line = {x.data + at,
                                                     t + at,
                                                     largest[first + j],
                                                     sums[first + j],
                                                     gy[first + j] / by,
                                                     gx == nullptr ? gx : gx + at,
                                                     gt == nullptr ? gt : gt + at};
                               if (step == 1) differentiate(line, 1, classes, q, add, add_t);
                               else strided_differentiate(line, step, classes, q, add, add_t);
                           }
                       });
    }

private:
    // The functions of a line are inlined for step 1, and compiled once for other steps, which
    // compilers do not vectorize.
    template <class T>
    CATENA_KERNEL static T loss_of(const T* x, const T* t, std::int64_t step, std::int64_t classes,
                                   T most, T log, const SoftTargets<T>& q) {
        return sum_lanes<T>(classes, [=](std::int64_t c) CATENA_LAMBDA {
            return part_of(q(t[c * step], c), log + (most - x[c * step]));
        });
    }
    template <class T>
    struct Line {
        const T* x;
        const T* t;
        T most, sum, scale;
        T* gx;
        T* gt;
    };
    template <class T>
    CATENA_KERNEL static void differentiate(const Line<T>& line, std::int64_t step,
                                            std::int64_t classes, const SoftTargets<T>& q, bool add,
                                            bool add_t) {
        const auto [x, t, most, sum, scale, gx, gt] = line;
        if (gx != nullptr) {
            const T total = sum_lanes<T>(
                classes, [=](std::int64_t c) CATENA_LAMBDA { return q(t[c * step], c); });
            const T weight = scale * total / sum;
            if (step == 1) {
                scaled_exp(x, classes, most, weight, gx, add);
            } else {
                for (std::int64_t c = 0; c < classes; ++c)
                    store(gx[c * step], add, weight * math::exp(x[c * step] - most));
            }
            const T* const w = q.weight.data;
            if (w == nullptr) {
                CATENA_LOOP
                for (std::int64_t c = 0; c < classes; ++c)
                    gx[c * step] -= scale * (q.sharp * t[c * step] + q.each);
            } else {
                CATENA_LOOP
                for (std::int64_t c = 0; c < classes; ++c)
                    gx[c * step] -= scale * ((q.sharp * t[c * step] + q.each) * w[c]);
            }
        }
        if (gt == nullptr) return;
        const T log = math::log(sum);
        CATENA_LOOP
        for (std::int64_t c = 0; c < classes; ++c)
            store(gt[c * step], add_t, scale * q.slope(c) * (log + (most - x[c * step])));
    }
    template <class T, class... A>
    [[gnu::noinline]] static T strided_loss_of(const T* x, A... arguments) {
        return loss_of(x, arguments...);
    }
    template <class T, class... A>
    [[gnu::noinline]] static void strided_differentiate(const Line<T>& line, A... arguments) {
        differentiate(line, arguments...);
    }
    static std::int64_t rows_of(Shape x) { return Axis(x, 1).count(); }
    static double divisor(const auto& call, const Axis& axis) {
        const bool mean = call.template attr<"reduce">() == "mean";
        return mean ? static_cast<double>(std::max<std::int64_t>(axis.count(), 1)) : 1.0;
    }
};

CATENA_FUNCTIONS(SoftmaxCrossEntropySoft);

}  // namespace catena::plugins
