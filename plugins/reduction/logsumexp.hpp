// Logarithm of a sum of exponentials.
#pragma once

#include "fold.hpp"

namespace catena::plugins {

struct LogSumExp {
    static constexpr auto about =
        reduction("catena.logsumexp",
                  "y = log of the sum of e^x along axes\n\n"
                  "It does not overflow. y is -inf without elements or if all are -inf; their "
                  "gradients are 0.",
                  out("y"));
    static constexpr auto retain_x = ports(0);
    static constexpr auto retain_y = ports(0);
    static constexpr bool folds = true;

    static void infer(const auto& s) { s.y(0, infer_kept(s).shape(s.template attr<"keepdims">())); }
    static void gradient(const auto& g) {
        const Kept kept(g.x_shape(0), g.template attr<"axis">());
        const Var y = reshape(g.y(0), kept.shape());
        const Var shift = math::where(y == Var(-std::numeric_limits<double>::infinity()), 0, y);
        g.gx(0, reshape(g.gy(0), kept.shape()) * math::exp(g.x(0) - shift));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        fold<State<T>>(call, x, Kept(x.shape, call.template attr<"axis">()), Finish(),
                       Into<T>{call.template y<T>(0).data, call.adds(0)}, Into<None>{});
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        spread(call, x, Kept(x.shape, call.template attr<"axis">()), call.template gy<T>(0).data,
               call.template y<T>(0).data, static_cast<const T*>(nullptr), Slope(),
               call.template gx<T>(0).data, call.adds(0));
    }

    template <class T>
    using State = ExpSum<Computed<T>>;
    struct Finish {
        CATENA_FN Two<double> operator()(const ExpSum<double>& t) const {
            return {t.first + math::log(t.second), {}};
        }
    };
    struct Slope {
        template <class C>
        CATENA_FN C operator()(C x, C gy, C y, C) const {
            return gy * math::exp(x - (y == -std::numeric_limits<C>::infinity() ? C(0) : y));
        }
    };
};

CATENA_FUNCTIONS(LogSumExp);

}  // namespace catena::plugins
