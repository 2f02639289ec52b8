// Rotary position embedding.
#pragma once

#include <catena/plugin/precision.hpp>

#include <cmath>
#include <numbers>

#include "attention_case.hpp"

namespace catena::plugins {

// A call's pairs of elements. Row `row` of x or y has `pairs` pairs, then `rest` other elements.
struct RotaryCase {
    explicit RotaryCase(const auto& call) {
        const Shape x = shape_of(*call.raw().x[1]);
        length = x[0];
        pairs = x[1];
        interleaved = call.template attr<"interleaved">();
        offset = call.template attr<"offset">();
        heads_last = is_heads_last(call);
        positions = call.template x<std::int64_t>(3).data;
    }
    // Sets the sizes, by the shape of x.
    void size(Shape x) {
        heads = x[heads_last != 0 ? 2 : 1];
        rows = x[heads_last != 0 ? 1 : 2];
        width = x[3];
        count = x[0] * x[1] * x[2];
    }
    // The position of row i of x, one of 0 .. length-1 unless `positions` are wrong.
    CATENA_FN std::int64_t position(std::int64_t i) const {
        const std::int64_t t = heads_last != 0 ? i / heads % rows : i % rows;
        return positions == nullptr ? offset + t : positions[i / (heads * rows) * rows + t];
    }
    // The places of a pair in its row.
    CATENA_FN std::int64_t first(std::int64_t pair) const {
        return interleaved != 0 ? 2 * pair : pair;
    }
    CATENA_FN std::int64_t second(std::int64_t pair) const {
        return interleaved != 0 ? 2 * pair + 1 : pair + pairs;
    }

    std::int64_t length, pairs, interleaved, offset, heads_last;
    const std::int64_t* positions;
    std::int64_t heads = 0, rows = 0, width = 0, count = 0;
};

// y = the pairs of x, rotated by the angles of the tables, or back; or adds that to y.
template <class T>
CATENA_KERNEL void rotate(const auto& call, Tensor<const T> x,
                          const std::type_identity_t<T>* cosines,
                          const std::type_identity_t<T>* sines, Tensor<T> y, bool add, bool back) {
    RotaryCase r(call);
    r.size(x.shape);
    if (r.positions != nullptr)
        for (std::int64_t i = 0; i < x.dim(0) * r.rows; ++i)
            if (r.positions[i] < 0 || r.positions[i] >= r.length)
                call.fail(CATENA_E_VALUE, ("positions[" + std::to_string(i) + "]").c_str(),
                          "0 to " + std::to_string(r.length - 1), r.positions[i]);
    const T sign = back ? T(-1) : T(1);
    call.parallel(r.count, 4 * r.width, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t at = r.position(i) * r.pairs;
            const T *const c = cosines + at, *const s = sines + at,
                           *const from = x.data + i * r.width;
            T* const to = y.data + i * r.width;
            const auto turn = [&](std::int64_t p, std::int64_t one, std::int64_t two)
                                  CATENA_LAMBDA {
                                      const T a = from[one], b = from[two], sine = sign * s[p];
                                      store(to[one], add, a * c[p] - b * sine);
                                      store(to[two], add, b * c[p] + a * sine);
                                  };
            if (r.interleaved != 0) {
                CATENA_LOOP
                for (std::int64_t p = 0; p < r.pairs; ++p) turn(p, 2 * p, 2 * p + 1);
            } else {
                CATENA_LOOP
                for (std::int64_t p = 0; p < r.pairs; ++p) turn(p, p, p + r.pairs);
            }
            CATENA_LOOP
            for (std::int64_t d = 2 * r.pairs; d < r.width; ++d) store(to[d], add, from[d]);
        }
    });
}

struct RotaryEmbedding {
    static constexpr auto about =
        describe(
            "catena.rotary_embedding",
            "y = x with its pairs of elements rotated by angles that depend on positions\n\n"
            "Row p of cos and sin has the cosines and sines for position p, of R / 2 angles for "
            "the first R elements of a row of x; the others do not change. Row t has the position "
            "offset + t, or positions[b, t]. A pair is elements i and i + R / 2 (as in GPT-NeoX "
            "and Llama) or, if interleaved, 2 i and 2 i + 1 (as in RoFormer and GPT-J). (Su and "
            "others, \"RoFormer\", 2021.)",
            in(Port("x", "(B, H, T, D), or (B, T, H, D) if layout=\"BTHD\""),
               Port("cos", "(P, R / 2)").of("S").not_differentiable(),
               Port("sin", "(P, R / 2)").of("S").not_differentiable(),
               Port("positions", "(B, T)").of("L").optional().not_differentiable()),
            // A host needs a dtype for each type variable, also if there are no positions.
            out("y", Port("kind", "of the positions' dtype (0,)").of("L").hidden()),
            attr("interleaved", false, "pairs are adjacent elements"),
            attr("offset", 0, "position of the first row").range(0, 0x1p40),
            attr("inverse", false, "rotates by the negative angles"), attention_layout)
            .example("x=(2,3,4,6) cos=(5,3) sin=(5,3) offset=1")
            .example(
                "x=(2,4,3,5) cos=(6,2) sin=(6,2) interleaved=true layout=\"BTHD\" inverse=true")
            .example("x=(2,3,4,2) cos=(5,1) sin=(5,1) positions=(2,4)[0,4]");
    using types = Rows<Row<float, float, std::int64_t>, Row<double, double, std::int64_t>>;
    static constexpr auto retain_x = ports(1, 2, 3);
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        s.check_ndim(0, 4);
        s.check_ndim(1, 2);
        const Shape x = s.x(0), cos = s.x(1);
        const std::int64_t rows = x[is_heads_last(s) ? 1 : 2];
        s.check(2 * cos[1] <= x[3], "cos.shape[1]", "at most " + std::to_string(x[3] / 2), cos[1]);
        s.check_shape(2, cos);
        s.check_shape(3, {x[0], rows});
        const std::int64_t offset = s.template attr<"offset">();
        if (!s.has(3) && x[0] * x[1] * x[2] > 0)
            s.check(offset + rows <= cos[0], "cos.shape[0]",
                    "at least " + std::to_string(offset + rows), cos[0]);
        s.y(0, x);
        s.y(1, {0}, dtype_of<std::int64_t>());
    }
    static void gradient(const auto& g) {
        const auto turn = [&](std::initializer_list<Var> inputs) {
            return call<"catena.rotary_embedding">(
                inputs, {g.same("interleaved"), g.same("offset"), g.same("layout"),
                         set("inverse", !g.template attr<"inverse">())});
        };
        g.gx(0,
             g.has(3) ? turn({g.gy(0), g.x(1), g.x(2), g.x(3)}) : turn({g.gy(0), g.x(1), g.x(2)}));
    }
    template <class T, class S, class>
    CATENA_KERNEL static void forward(const auto& call) {
        rotate(call, call.template x<T>(0), call.template x<S>(1).data, call.template x<S>(2).data,
               call.template y<T>(0), call.adds(0), call.template attr<"inverse">());
    }
    template <class T, class S, class>
    CATENA_KERNEL static void backward(const auto& call) {
        rotate(call, call.template gy<T>(0), call.template x<S>(1).data, call.template x<S>(2).data,
               call.template gx<T>(0), call.adds(0), !call.template attr<"inverse">());
    }
};

struct RotaryTables {
    static constexpr auto about =
        describe(
            "catena.rotary_tables",
            "y = the cosines and sines of p f for positions p and frequencies f = base^(-2 i / "
            "size)\n\n"
            "For texts longer than those of training, f becomes f (s + (1 - s) / factor), where "
            "s is 1 for f above 2 pi high / context, 0 below 2 pi low / context, and linear "
            "between them. context=0 divides all frequencies by factor. (Grattafiori et al., "
            "\"The Llama 3 Herd of Models\", 2024; for all frequencies: Chen et al., "
            "\"Extending Context Window of Large Language Models via Positional "
            "Interpolation\", 2023.) The numbers are rounded from float64.",
            in(), out(Port("cos", "(length, size / 2)"), Port("sin", "(length, size / 2)")),
            required<std::int64_t>("length", "the number of positions").range(1, 0x1p40),
            required<std::int64_t>("size", "how many elements are rotated: an even number")
                .range(2, 1 << 20),
            attr("base", 10000.0, "the base of the frequencies, above 0"),
            attr("dtype", dtype_of<float>(), "the dtype of y: a floating one"),
            attr("factor", 1.0, "by which low frequencies are divided, above 0"),
            attr("low", 1.0, "turns within the context up to which factor applies"),
            attr("high", 4.0, "turns within the context from which it does not"),
            attr("context", 0.0, "the length of the texts of training").range(0, 0x1p40))
            .not_differentiable()
            .example("length=3 size=4")
            .example("length=2 size=6 base=1000 factor=8 low=0.2 high=1 context=40");

    static std::array<Var, 2> compose(const auto& g) {
        const std::int64_t length = g.template attr<"length">(), size = g.template attr<"size">();
        const double base = g.template attr<"base">(), factor = g.template attr<"factor">(),
                     low = g.template attr<"low">(), high = g.template attr<"high">();
        const catena_dtype dtype = floating_dtype(g);
        g.check(size % 2 == 0, "size", "an even number", size, CATENA_E_INVALID);
        g.check(base > 0, "base", "a number above 0", base, CATENA_E_INVALID);
        g.check(factor > 0, "factor", "a number above 0", factor, CATENA_E_INVALID);
        g.check(low < high, "low", "a number below high, which is " + text_of(high), low,
                CATENA_E_INVALID);
        const auto i = arange(size / 2, dtype_of<double>());
        Var f = math::exp(i * (-2 * std::log(base) / static_cast<double>(size)));
        if (factor != 1) {
            const Var turns = f * (g.template attr<"context">() / (2 * std::numbers::pi));
            const Var kept = call<"catena.clip">({(turns - low) * (1 / (high - low))},
                                                 {set("x_min", 0.0), set("x_max", 1.0)});
            f = f * (kept + (1.0 - kept) * (1 / factor));
        }
        const Var angle = reshape(arange(length, dtype_of<double>()), {length, 1}) * f;
        return {in_dtype(math::cos(angle), dtype), in_dtype(math::sin(angle), dtype)};
    }
};

CATENA_FUNCTIONS(RotaryEmbedding, RotaryTables);

}  // namespace catena::plugins
