// A row of a table for each id.
#pragma once

#include "rows_by_id.hpp"

namespace catena::plugins {

struct EmbedId {
    static constexpr auto about =
        describe(
            "catena.embed_id",
            "y = the row of W for each id\n\nAn id that is not a row is an error unless it is in "
            "ignore_label; negative ids do not count from the end. The gradient of W is added to "
            "the rows of the ids; if there is a gradient already, no other row is accessed.",
            in(Port("x", "ids, of any shape").of("I").not_differentiable(),
               Port("W", "(ids, size)")),
            out(Port("y", "x.shape + (size,)")), ignore_label_attribute)
            .example("x=(4) W=(2,3)")
            .example("x=(2,3) W=(3,2)")
            .example("x=() W=(2,3)")
            .example("x=(5) W=(2,2) ignore_label=1");
    using types = IdTypes;
    static constexpr auto retain_x = ports(0);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        s.check(s.x(1).size() == 2, "W.ndim", 2, s.x(1).size());
        s.check(x.size() < CATENA_MAX_NDIM, "x.ndim", "at most 15", x.size());
        std::int64_t shape[CATENA_MAX_NDIM];
        *std::copy(x.begin(), x.end(), shape) = s.x(1)[1];
        s.y(0, Shape(shape, x.size() + 1), s.dtype(1));
    }
    static void gradient(const auto& g) {
        if (g.gy(0).is_constant()) return;
        g.gx(1, call<"catena.embed_id_gradient">(
                    {g.x(0), g.gy(0)}, {set("rows", g.x_shape(1)[0]),
                                        set("ignore_label", g.template attr<"ignore_label">())}));
    }

    template <class I, class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<I>(0);
        const auto w = call.template x<T>(1);
        const Ids<I> ids(call, x, w.dim(0));
        gather_rows(call, ids, x.size(), w.data, w.dim(1), call.template y<T>(0).data,
                    call.adds(0));
    }
    template <class I, class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<I>(0);
        const auto gw = call.template gx<T>(1);
        if (!gw) return;
        const Ids<I> ids(call, x, gw.dim(0));
        scatter_rows(call, ids, x.size(), call.template gy<T>(0).data, gw, call.adds(1));
    }
};

struct EmbedIdGradient {
    static constexpr auto about =
        describe("catena.embed_id_gradient",
                 "y = zeros (rows, size), to which each row of gy is "
                 "added where its id says",
                 in(Port("x", "ids").of("I").not_differentiable(), Port("gy", "x.shape + (size,)")),
                 out(Port("y", "(rows, size)")),
                 required<std::int64_t>("rows", "how many rows y has"), ignore_label_attribute)
            .internal()
            .example("x=(4) gy=(4,3) rows=2")
            .example("x=(2,2) gy=(2,2,3) rows=3 ignore_label=1");
    using types = IdTypes;
    static constexpr auto retain_x = ports(0);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        const Shape gy = s.x(1);
        const std::int64_t rows = s.template attr<"rows">();
        s.check(rows >= 0, "rows", "at least 0", rows, CATENA_E_INVALID);
        if (gy.size() != x.size() + 1 || !std::ranges::equal(x, gy.first(x.size()))) [[unlikely]]
            s.check(false, "gy.shape", text_of(x) + " and one more axis", gy);
        const std::int64_t shape[] = {rows, gy.back()};
        s.y(0, shape, s.dtype(1));
    }
    static void gradient(const auto& g) {
        if (g.gy(0).is_constant()) return;
        g.gx(1, call<"catena.embed_id">({g.x(0), g.gy(0)},
                                        {set("ignore_label", g.template attr<"ignore_label">())}));
    }

    template <class I, class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<I>(0);
        const auto y = call.template y<T>(0);
        const Ids<I> ids(call, x, y.dim(0));
        scatter_rows(call, ids, x.size(), call.template x<T>(1).data, y, call.adds(0));
    }
    template <class I, class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<I>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(1);
        if (!gx) return;
        if (!gy) return call.adds(1) ? void() : void(std::fill_n(gx.data, gx.size(), T(0)));
        const Ids<I> ids(call, x, gy.dim(0));
        gather_rows(call, ids, x.size(), gy.data, gy.dim(1), gx.data, call.adds(1));
    }
};

CATENA_FUNCTIONS(EmbedId, EmbedIdGradient);

}  // namespace catena::plugins
