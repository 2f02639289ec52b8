// Attention that never stores the matrix of all scores.
#pragma once

#include "attention_cpu.hpp"

namespace catena::plugins {

// Helpers of the composed definition of attention, for gradients of higher orders.
struct AttentionFactors {
    static constexpr auto about =
        describe("catena.attention_factors",
                 "seen: 1 where a query sees a key if there is no mask, else 0; kept: the factors "
                 "of dropout",
                 in("q", "k", Port("draws", "of attention (3,)").of("L").not_differentiable(),
                    Port("lengths", "(B,)").of("L").optional().not_differentiable()),
                 out(Port("seen", "(B, H, T, S)"), Port("kept", "(B, H, T, S)")), attention_causal,
                 attention_scale, attention_dropout, attention_window, attention_offset,
                 attention_layout)
            .not_differentiable()
            .internal()
            .example("q=(2,2,3,2) k=(2,1,5,2) draws=(3)[1,2] causal=true offset=-1 dropout=0.5")
            .example(
                "q=(2,3,2,2) k=(2,5,1,2) draws=(3)[0,1] lengths=(2)[1,6] window=2 layout=\"BTHD\"");
    using types = Rows<Row<float, std::int64_t>, Row<double, std::int64_t>>;
    using isas = IsaList<Isa::baseline>;

    static void infer(const auto& s) {
        const Shape q = s.x(0), k = s.x(1);
        s.check_ndim(0, 4);
        s.check_ndim(1, 4);
        s.check_shape(2, {3});
        s.check_shape(3, {q[0]});
        const bool heads_last = is_heads_last(s);
        for (const std::size_t i : {0, 1})
            s.y(i, {q[0], q[heads_last ? 2 : 1], q[heads_last ? 1 : 2], k[heads_last ? 1 : 2]});
    }
    template <class T, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const AttentionCase a(call, shape_of(*call.raw().x[1]), 3);
        const AttentionDraws draws(call.template x<std::int64_t>(2).data,
                                   call.template attr<"dropout">());
        T* const all_seen = call.template y<T>(0).data;
        T* const all_kept = call.template y<T>(1).data;
        const bool add_seen = call.adds(0), add_kept = call.adds(1);
        call.parallel(
            a.b * a.h * a.t, 8 * a.s, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                for (std::int64_t i = begin; i < end; ++i) {
                    const std::int64_t row = i % a.t, head = i / a.t % a.h, batch = i / a.t / a.h;
                    const SeenKeys seen = a.seen(row, a.keys(batch));
                    for (std::int64_t s = 0; s < a.s; ++s) {
                        store(all_seen[i * a.s + s], add_seen,
                              s >= seen.first && s < seen.end ? T(1) : T(0));
                        store(all_kept[i * a.s + s], add_kept,
                              static_cast<T>(draws.factor(a, batch, head, row, s)));
                    }
                }
            });
    }
};

struct ScaledDotProductAttention {
    static constexpr auto about =
        describe(
            "catena.scaled_dot_product_attention",
            "y = softmax(scale q k^T + bias) v, for each head\n\n"
            "If there are fewer heads of k and v (Hk) than of q (H), H / Hk heads of q share one. "
            "With causal, query i sees the keys up to i + offset: offset=0 is PyTorch's is_causal. "
            "offset=-1 stands for S - T: the last query then sees all keys, as with a cache of "
            "S - T earlier keys. The mask is true where a query sees a key. With lengths, item b "
            "of "
            "the batch has only the first lengths[b] keys, and offset=-1 stands for lengths[b] - "
            "T. "
            "A query that sees no key has y = 0. (Dao and "
            "others, \"FlashAttention\", NeurIPS 2022; Ainslie and others, \"GQA\", EMNLP 2023.)",
            in(Port("q", "(B, H, T, D), or (B, T, H, D) if layout=\"BTHD\""),
               Port("k", "(B, Hk, S, D), or (B, S, Hk, D)"),
               Port("v", "(B, Hk, S, E), or (B, S, Hk, E)"),
               Port("bias", "broadcasts to (B, H, T, S)").optional(),
               Port("mask", "bool, broadcasts to (B, H, T, S)")
                   .of("B")
                   .optional()
                   .not_differentiable(),
               Port("lengths", "numbers of keys (B,)").of("L").optional().not_differentiable()),
            out(Port("y", "(B, H, T, E), or (B, T, H, E)"),
                Port("lse", "log of the sum of e^score (B, H, T); inf if no key is seen")
                    .of("S")
                    .hidden(),
                Port("draws", "seed, offset, and whether any were drawn (3,)").of("L").hidden(),
                // The ABI needs a dtype for each type variable, even without a mask.
                Port("none", "empty, of the mask's dtype (0,)").of("B").hidden()),
            attention_causal, attention_scale, attention_dropout, attention_window,
            attention_offset, attention_layout)
            .stochastic()
            .example("q=(2,2,3,4) k=(2,2,5,4) v=(2,2,5,3)")
            .example("q=(1,5,4,8) k=(1,4,2,8) v=(1,4,2,8) causal=true scale=0.5 layout=\"BTHD\"")
            .example(
                "q=(2,2,3,4) k=(2,1,5,4) v=(2,1,5,4) causal=true offset=-1 window=2 dropout=0.3")
            .example("q=(2,2,3,4) k=(2,1,5,4) v=(2,1,5,4) bias=(2,1,5)")
            .example(
                "q=(2,2,3,4) k=(2,1,5,4) v=(2,1,5,4) bias=(3,1) mask=(5)[1,1] lengths=(2)[3,6]");
    // T: queries, B: mask, L: lengths and draws, S: sums.
    using types =
        Rows<Row<float, bool, std::int64_t, float>, Row<double, bool, std::int64_t, double>>;
    static constexpr auto retain_x = ports(0, 1, 2, 3, 4, 5);
    static constexpr auto retain_y = ports(0, 1, 2);

    static void infer(const auto& s) {
        const auto [b, h, t, keys] = check_shapes(s);
        const double ratio = s.template attr<"dropout">();
        s.check(ratio < 1, "dropout", "less than 1", ratio, CATENA_E_INVALID);
        const Shape q = s.x(0);
        s.y(0, {q[0], q[1], q[2], s.x(2)[3]});
        s.y(1, {b, h, t}, s.wide(0));
        s.y(2, {3}, dtype_of<std::int64_t>());
        s.y(3, {0}, dtype_of<bool>());
    }
    // Composes the gradients from the definition, with all scores in memory.
    static void gradient(const auto& g) {
        const bool heads_last = is_heads_last(g);
        const AttentionCase a(g.x_shape(0), g.x_shape(1), g.x_shape(2), heads_last);
        const auto heads_first = [&](const Var& x) {
            return heads_last ? transpose(x, {0, 2, 1, 3}) : x;
        };
        // Matrices of one head of keys, with the rows of all heads of queries that share it.
        const std::int64_t n = a.b * a.hk, rows = a.group * a.t;
        const Var q = reshape(heads_first(g.x(0)), {n, rows, a.d});
        const Var k = reshape(heads_first(g.x(1)), {n, a.s, a.d});
        const Var v = reshape(heads_first(g.x(2)), {n, a.s, a.e});
        const Var gy = reshape(heads_first(g.gy(0)), {n, rows, a.e});
        const auto all = [&](const Var& x) { return reshape(x, {a.b, a.h, a.t, a.s}); };
        const auto by_head = [&](const Var& x) { return reshape(x, {n, rows, a.s}); };

        const double scale = AttentionCase::scale_of(g.template attr<"scale">(), a.d);
        const catena_dtype dtype = g.x_meta(0).dtype;
        const bool half = same(dtype, dtype_of<Float16>());
        Var scores = all(matmul(q, k, false, true)) * scale;
        const auto factors = [&](std::initializer_list<Var> inputs) {
            return call_all<"catena.attention_factors", 2>(
                inputs, {g.same("causal"), g.same("scale"), g.same("dropout"), g.same("window"),
                         g.same("offset"), g.same("layout")});
        };
        auto [seen, kept] = g.has(5) ? factors({g.x(0), g.x(1), g.y(2), g.x(5)})
                                     : factors({g.x(0), g.x(1), g.y(2)});
        const double infinity = std::numeric_limits<double>::infinity();
        if (g.has(3)) {
            scores = scores + g.x(3);
            seen = seen * (1.0 - (scores == -infinity));
        }
        if (g.has(4)) seen = seen * cast(g.x(4), dtype);
        // Without the log of the sum, a bias could be below the scores of hidden keys.
        scores = scores - reshape(cast(g.y(1), dtype), {a.b, a.h, a.t, 1});
        scores = math::where(seen, scores, half ? -6e4 : -1e30);
        const Var p = call<"catena.softmax">({scores}, {set("axis", std::int64_t{3})}) * seen;
        const bool drops = g.template attr<"dropout">() != 0;
        const Var of_weights = all(matmul(gy, v, false, true));
        const Var gp = drops ? of_weights * kept : of_weights;
        const Var gs = p * (gp - sum(p * gp, {3}, true));
        const auto from_matrices = [&](const Var& x, std::int64_t heads, std::int64_t length,
                                       std::int64_t size) {
            return heads_first(reshape(x, {a.b, heads, length, size}));
        };
        if (g.wants(0)) g.gx(0, from_matrices(matmul(by_head(gs), k) * scale, a.h, a.t, a.d));
        if (g.wants(1))
            g.gx(1, from_matrices(matmul(by_head(gs), q, true, false) * scale, a.hk, a.s, a.d));
        if (g.wants(2))
            g.gx(2, from_matrices(matmul(by_head(drops ? p * kept : p), gy, true, false), a.hk, a.s,
                                  a.e));
        if (g.wants(3)) g.gx(3, gs);
    }

    template <class T, class, class, class>
    static void plan(const auto& call, catena_plan& plan) {
        using Cpu = AttentionOnCpu<T, Isa::baseline>;
        const AttentionCase a(call);
        plan.scratch_bytes = static_cast<std::uint64_t>(
            call.raw().phase == CATENA_PHASE_FORWARD ? Cpu::forward_scratch(a, call.slots())
                                                     : Cpu::backward_scratch(a, call.slots()));
    }
    template <class T, class, class, class>
    CATENA_KERNEL static void forward(const auto& call) {
        AttentionTensors<T> x = tensors<T>(call);
        std::int64_t* const draws = call.template y<std::int64_t>(2).data;
        std::uint64_t seed = 0, offset = 0;
        const bool any = call.train() && call.template attr<"dropout">() != 0;
        if (any)
            check_status(
                host().philox(call.context(), AttentionDraws::blocks(x.a), &seed, &offset));
        draws[0] = static_cast<std::int64_t>(seed);
        draws[1] = static_cast<std::int64_t>(offset);
        draws[2] = any ? 1 : 0;
        x.draws = AttentionDraws(draws, call.template attr<"dropout">());
        x.to = call.template y<T>(0).data;
        x.add_y = call.adds(0), x.add_lse = call.adds(1);
        AttentionOnCpu<T, std::remove_cvref_t<decltype(call)>::isa>::forward(call.context(), x);
    }
    template <class T, class, class, class>
    CATENA_KERNEL static void backward(const auto& call) {
        AttentionTensors<T> x = tensors<T>(call);
        x.draws =
            AttentionDraws(call.template y<std::int64_t>(2).data, call.template attr<"dropout">());
        x.y = call.template y<T>(0).data;
        x.gy = call.template gy<T>(0).data;
        x.gq = call.template gx<T>(0).data, x.add_q = call.adds(0);
        x.gk = call.template gx<T>(1).data, x.add_k = call.adds(1);
        x.gv = call.template gx<T>(2).data, x.add_v = call.adds(2);
        const auto gbias = call.template gx<T>(3);
        x.gbias = gbias.data;
        if (gbias && !call.adds(3)) std::fill_n(gbias.data, gbias.size(), T(0));
        AttentionOnCpu<T, std::remove_cvref_t<decltype(call)>::isa>::backward(call.context(), x);
    }

private:
    // Checks the inputs, and returns (B, H, T, S).
    static std::array<std::int64_t, 4> check_shapes(const auto& s) {
        for (const std::size_t i : {0, 1, 2}) s.check_ndim(i, 4);
        const std::size_t head = is_heads_last(s) ? 2 : 1, row = is_heads_last(s) ? 1 : 2;
        const Shape q = s.x(0), k = s.x(1), v = s.x(2);
        const auto axis = [](const char* port, std::size_t i) {
            return std::string(port) + ".shape[" + std::to_string(i) + "]";
        };
        s.check(q[3] > 0, "q.shape[3]", "at least 1", q[3]);
        s.check(k[0] == q[0], "k.shape[0]", q[0], k[0]);
        s.check(k[3] == q[3], "k.shape[3]", q[3], k[3]);
        s.check(q[head] == 0 || (k[head] > 0 && q[head] % k[head] == 0), axis("k", head).c_str(),
                "a divisor of " + std::to_string(q[head]), k[head]);
        for (std::size_t i = 0; i < 3; ++i) s.check(v[i] == k[i], axis("v", i).c_str(), k[i], v[i]);
        const std::array<std::int64_t, 4> scores = {q[0], q[head], q[row], k[row]};
        for (const std::size_t port : {3, 4}) {
            if (!s.has(port)) continue;
            const Shape x = s.x(port);
            const char* const name = about.inputs[port].name;
            s.check(x.size() <= 4, (std::string(name) + ".ndim").c_str(), "at most 4", x.size());
            for (std::size_t i = 0; i < x.size(); ++i) {
                const std::int64_t n = scores[4 - x.size() + i];
                s.check(x[i] == 1 || x[i] == n, axis(name, i).c_str(), "1 or " + std::to_string(n),
                        x[i]);
            }
        }
        s.check_shape(5, {q[0]});
        return scores;
    }
    template <class T>
    static AttentionTensors<T> tensors(const auto& call) {
        AttentionCase a(call);
        static const bool fast = use_avx512_bf16();
        a.rounded = fast && (call.raw().flags & CATENA_CALL_BFLOAT16) != 0;
        return {.a = a,
                .q = call.template x<T>(0).data,
                .k = call.template x<T>(1).data,
                .v = call.template x<T>(2).data,
                .y = nullptr,
                .lse = call.template y<T>(1).data,
                .scratch = call.template scratch<char>()};
    }
};

CATENA_FUNCTIONS(AttentionFactors, ScaledDotProductAttention);

}  // namespace catena::plugins
