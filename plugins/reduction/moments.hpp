// Mean and variance.
#pragma once

#include "fold.hpp"

namespace catena::plugins {

struct Mean {
    static constexpr auto about = reduction(
        "catena.mean", "y = the mean of x along axes, summed in float64; NaN without elements",
        out("y"));
    static constexpr bool folds = true;

    static void infer(const auto& s) { s.y(0, infer_kept(s).shape(s.template attr<"keepdims">())); }
    static void gradient(const auto& g) {
        const Kept kept(g.x_shape(0), g.template attr<"axis">());
        const double n = static_cast<double>(kept.n_reduced());
        g.gx(0, broadcast_to(reshape(g.gy(0), kept.shape()) * (1 / n), g.x_shape(0)));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const Kept kept(x.shape, call.template attr<"axis">());
        fold<State<T>>(call, x, kept, Finish{static_cast<double>(kept.n_reduced())},
                       Into<T>{call.template y<T>(0).data, call.adds(0)}, Into<None>{});
    }

    template <class T>
    using State = Summed<Computed<T>>;
    struct Finish {
        CATENA_FN Two<double> operator()(const Summed<double>& t) const {
            return {t.first / n, {}};
        }
        double n;
    };
};

struct Variance {
    static constexpr auto about =
        reduction("catena.var",
                  "y = the sum of squared differences from the mean of x along axes, divided by "
                  "the number n of elements minus ddof\n\n"
                  "As in NumPy, y is NaN for n = ddof.",
                  out("y", Port("mean").of("S").hidden()),
                  attr("ddof", 0,
                       "0 for the variance of x, 1 for an unbiased estimate of a "
                       "population's"));
    using types = Rows<Row<float, float>, Row<double, double>>;
    static constexpr auto retain_x = ports(0);
    static constexpr auto retain_y = ports(1);
    static constexpr bool folds = true;

    static void infer(const auto& s) {
        const Kept kept = infer_kept(s);
        s.y(0, kept.shape(s.template attr<"keepdims">()));
        s.y(1, kept.shape(), s.wide(0));
    }
    static void gradient(const auto& g) {
        const Kept kept(g.x_shape(0), g.template attr<"axis">());
        const Var mean = call<"catena.mean">({g.x(0)}, {g.same("axis"), set("keepdims", true)});
        const Var gy = reshape(g.gy(0), kept.shape());
        g.gx(0, (g.x(0) - mean) * (gy * (2 / degrees(g, kept))));
    }

    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const Kept kept(x.shape, call.template attr<"axis">());
        fold<State<T>>(call, x, kept, Finish{degrees(call, kept)},
                       Into<T>{call.template y<T>(0).data, call.adds(0)},
                       Into<S>{call.template y<S>(1).data, call.adds(1)});
    }
    template <class T, class S>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const Kept kept(x.shape, call.template attr<"axis">());
        spread(call, x, kept, call.template gy<T>(0).data, call.template y<S>(1).data,
               static_cast<const S*>(nullptr), Slope{2 / degrees(call, kept)},
               call.template gx<T>(0).data, call.adds(0));
    }

    template <class T>
    using State = Moments<Computed<T>>;
    struct Finish {
        CATENA_FN Two<double, double> operator()(const MomentsTotal& t) const {
            return {t.second / degrees, t.first};
        }
        double degrees;
    };
    struct Slope {
        template <class C>
        CATENA_FN C operator()(C x, C gy, C mean, C) const {
            return (x - mean) * (gy * static_cast<C>(factor));
        }
        double factor;
    };

private:
    // n - ddof, but at least 0.
    static double degrees(const auto& call, const Kept& kept) {
        return static_cast<double>(
            std::max<std::int64_t>(kept.n_reduced() - call.template attr<"ddof">(), 0));
    }
};

CATENA_FUNCTIONS(Mean, Variance);

}  // namespace catena::plugins
