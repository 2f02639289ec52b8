// Maximum and minimum, and their places.
#pragma once

#include "fold.hpp"

namespace catena::plugins {

// Refuses to reduce no elements to one or more results, as NumPy does.
template <class S>
void check_not_empty(const S& s, const Kept& kept) {
    s.check(kept.n_reduced() > 0 || size_of(kept.shape()) == 0, "x", "elements along the axes",
            s.x(0));
}

// The type in which elements of T are compared, and equal ones counted.
template <class T>
using Compared = std::conditional_t<sizeof(T) == 1, std::int32_t, Computed<T>>;

// The number of equal maxima is NaN for NaN, so that the gradient is NaN.
struct ExtremeFinish {
    template <class Total>
    CATENA_FN auto operator()(const Total& t) const {
        using C = decltype(t.first);
        return Two<C, C>{t.first, math::unless_nan(t.first, static_cast<C>(t.second))};
    }
};
struct ExtremeShare {
    template <class C>
    CATENA_FN C operator()(C x, C gy, C y, C count) const {
        const C share = gy / count;
        return x == y ? share : math::unless_nan(share, C(0));
    }
};

template <bool largest>
struct ExtremeAlong {
    using types = Rows<Row<float, float>, Row<double, double>, Row<std::int32_t, std::int32_t>,
                       Row<std::int64_t, std::int64_t>, Row<std::uint8_t, std::int32_t>>;
    static constexpr auto retain_x = ports(0);
    static constexpr auto retain_y = ports(0, 1);
    static constexpr bool folds = true;

    static void infer(const auto& s) {
        const Kept kept = infer_kept(s);
        check_not_empty(s, kept);
        s.y(0, kept.shape(s.template attr<"keepdims">()));
        s.y(1, kept.shape(),
            s.dtype(0).bits == 8 ? dtype_of<std::int32_t>() : s.wide(0));  // a count
    }
    static void gradient(const auto& g) {
        const Kept kept(g.x_shape(0), g.template attr<"axis">());
        const Var is_extreme = g.x(0) == reshape(g.y(0), kept.shape());
        const Var share = reshape(g.gy(0), kept.shape()) / cast(g.y(1), g.x_meta(0).dtype);
        g.gx(0, is_extreme * share);
    }

    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        fold<State<T>>(call, x, Kept(x.shape, call.template attr<"axis">()), ExtremeFinish(),
                       Into<T>{call.template y<T>(0).data, call.adds(0)},
                       Into<S>{call.template y<S>(1).data, call.adds(1)});
    }
    template <class T, class S>
        requires(!std::is_integral_v<T>)
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        spread(call, x, Kept(x.shape, call.template attr<"axis">()), call.template gy<T>(0).data,
               call.template y<T>(0).data, call.template y<S>(1).data, ExtremeShare(),
               call.template gx<T>(0).data, call.adds(0));
    }

    template <class T>
    using State = Extreme<Compared<T>, Place<Compared<T>>, largest, false>;
};

constexpr auto extreme_along(const char* name, const char* doc) {
    return reduction(name, doc, out("y", Port("count").of("S").hidden()));
}
struct Max : ExtremeAlong<true> {
    static constexpr auto about = extreme_along(
        "catena.max",
        "y = the largest element of x along axes\n\n"
        "Equal maxima share the gradient evenly. If an element is NaN, y and the gradients are "
        "NaN. There must be elements along the axes.");
};
struct Min : ExtremeAlong<false> {
    static constexpr auto about = extreme_along(
        "catena.min",
        "y = the smallest element of x along axes\n\n"
        "Equal minima share the gradient evenly. If an element is NaN, y and the gradients are "
        "NaN. There must be elements along the axes.");
};

struct PlaceFinish {
    template <class Total>
    CATENA_FN Two<std::int64_t> operator()(const Total& t) const {
        return {t.second, {}};
    }
};

template <bool largest>
struct PlaceAlong {
    using types =
        Rows<Row<float, std::int64_t>, Row<double, std::int64_t>, Row<std::int32_t, std::int64_t>,
             Row<std::int64_t, std::int64_t>, Row<std::uint8_t, std::int64_t>>;
    static constexpr bool folds = true;

    static void infer(const auto& s) {
        s.check(s.template attr<"axis">().size() <= 1, "axis", "at most one axis",
                s.template attr<"axis">(), CATENA_E_INVALID);
        const Kept kept = infer_kept(s);
        check_not_empty(s, kept);
        s.y(0, kept.shape(s.template attr<"keepdims">()), dtype_of<std::int64_t>());
    }
    template <class T, class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        fold<State<T>>(call, x, Kept(x.shape, call.template attr<"axis">()), PlaceFinish(),
                       Into<I>{call.template y<I>(0).data, false}, Into<None>{});
    }

    template <class T>
    using State = Extreme<Compared<T>, Place<Compared<T>>, largest, true>;
};

constexpr auto place_along(const char* name, const char* doc) {
    return describe(name, doc, in("x"), out(Port("y").of("I")),
                    attr("axis", Ints{},
                         "one axis, negative: from the last; empty: the index in the flattened x"),
                    attr("keepdims", false, "keep the axis with extent 1"))
        .not_differentiable()
        .example("x=(2,3)")
        .example("x=(2,3,4) axis=1")
        .example("x=(2,3) axis=-1 keepdims=true")
        .example("x=()");
}
struct Argmax : PlaceAlong<true> {
    static constexpr auto about =
        place_along("catena.argmax",
                    "y = the index of the largest element of x along an axis, as int64\n\n"
                    "Of equal elements the first counts; NaN is the largest. There must be "
                    "elements along the axis.");
};
struct Argmin : PlaceAlong<false> {
    static constexpr auto about =
        place_along("catena.argmin",
                    "y = the index of the smallest element of x along an axis, as int64\n\n"
                    "Of equal elements the first counts; NaN is the smallest. There must be "
                    "elements along the axis.");
};

CATENA_FUNCTIONS(Max, Min, Argmax, Argmin);

}  // namespace catena::plugins
