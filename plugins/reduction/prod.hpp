// Products of elements, and whether any or all of them are not 0.
#pragma once

#include "fold.hpp"

namespace catena::plugins {

struct Prod {
    static constexpr auto about =
        describe("catena.prod",
                 "y = the product of x along axes; 1 without elements\n\n"
                 "Gradients of any order are right for elements that are 0, too. Products of "
                 "integers and bool are int64, as in NumPy.",
                 in("x"), out(Port("y").of("U")), axis_attr, keepdims_attr)
            .since(2)
            .example("x=(2,3)")
            .example("x=(2,3,4)[0.5,1.5] axis=1")
            .example("x=(2,3,2) axis=[0,-1] keepdims=true")
            .example("x=()");
    using types = Totals;
    static constexpr unsigned widened = 0b11;
    static constexpr auto retain_x = ports(0);
    static constexpr bool folds = true;

    static void infer(const auto& s) {
        s.y(0, infer_kept(s).shape(s.template attr<"keepdims">()), total_dtype(s.dtype(0)));
    }
    // The products of the elements before and after an element, with the reduced axes last and
    // merged.
    static void gradient(const auto& g) {
        const Shape shape = g.x_shape(0);
        const Kept kept(shape, g.template attr<"axis">());
        std::int64_t order[CATENA_MAX_NDIM];
        std::int64_t back[CATENA_MAX_NDIM];
        std::int64_t moved[CATENA_MAX_NDIM];
        std::size_t n = 0;
        for (const bool reduced : {false, true})
            for (std::size_t d = 0; d < shape.size(); ++d) {
                if (kept.reduced(d) != reduced) continue;
                order[n] = static_cast<std::int64_t>(d);
                back[d] = static_cast<std::int64_t>(n);
                moved[n++] = shape[d];
            }
        const Var x =
            reshape(transpose(g.x(0), Ints(order, n)), {size_of(kept.shape()), kept.n_reduced()});
        static constexpr std::int64_t last = 1;
        const auto others = [&](bool reverse) {
            return call<"catena.cumprod">({x}, {set("axis", Ints(&last, 1)), set("exclusive", true),
                                                set("reverse", reverse)});
        };
        const Var gx = others(false) * others(true) * reshape(g.gy(0), {size_of(kept.shape()), 1});
        g.gx(0, transpose(reshape(gx, Ints(moved, n)), Ints(back, n)));
    }

    template <class T, class Y>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        fold<State<T>>(call, x, Kept(x.shape, call.template attr<"axis">()), First(),
                       Into<Y>{call.template y<Y>(0).data, call.adds(0)}, Into<None>{});
    }

    template <class T>
    using State = Product<Factor<T>>;
    struct First {
        CATENA_FN auto operator()(const auto& t) const { return t; }
    };
};

template <bool any>
struct TruthAlong {
    using types = Rows<Row<float, bool>, Row<double, bool>, Row<std::int32_t, bool>,
                       Row<std::int64_t, bool>, Row<bool, bool>>;
    using isas = IsaList<Isa::baseline>;
    static constexpr bool folds = true;

    static void infer(const auto& s) {
        s.y(0, infer_kept(s).shape(s.template attr<"keepdims">()), dtype_of<bool>());
    }
    template <class T, class B>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        fold<State<T>>(call, x, Kept(x.shape, call.template attr<"axis">()), Prod::First(),
                       Into<B>{call.template y<B>(0).data, false}, Into<None>{});
    }
    template <class T>
    using State = Truth<Computed<T>, any>;
};

constexpr auto truth_along(const char* name, const char* doc) {
    return describe(name, doc, in("x"), out(Port("y").of("B")), axis_attr, keepdims_attr)
        .not_differentiable()
        .example("x=(2,3)[0,1]")
        .example("x=(2,3,4)[0,1] axis=1")
        .example("x=(2,3,4)[0,0] axis=[0,-1] keepdims=true")
        .example("x=()");
}
struct Any : TruthAlong<true> {
    static constexpr auto about =
        truth_along("catena.any",
                    "y = whether any element of x along axes is not 0, as bool\n\n"
                    "NaN is not 0. Without elements y is false.");
};
struct All : TruthAlong<false> {
    static constexpr auto about =
        truth_along("catena.all",
                    "y = whether no element of x along axes is 0, as bool\n\n"
                    "NaN is not 0. Without elements y is true.");
};

CATENA_FUNCTIONS(Prod, Any, All);

}  // namespace catena::plugins
