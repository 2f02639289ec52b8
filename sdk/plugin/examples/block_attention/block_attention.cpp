// attention: computes blocks of queries and keys, and never stores the matrix of all scores. Each
// thread has its own scratch memory. For backward, the softmax keeps one number for each query.
#include <catena/plugin.hpp>
#include <catena/plugin/blas.hpp>
#include <catena/plugin/rows.hpp>

#include <cmath>
#include <limits>

using namespace catena::plugin;

struct Attention {
    static constexpr auto about =
        describe(
            "org.example.attention",
            "y = softmax(scale q k^T) v\n\n"
            "For a batch of B, which may be heads as well. With causal, query i sees the keys 0 "
            "to i. (Dao and others, \"FlashAttention\", NeurIPS 2022.)",
            in(Port("q", "(B, N, D)"), Port("k", "(B, M, D)"), Port("v", "(B, M, E)")),
            out(Port("y", "(B, N, E)"),
                Port("lse", "log of the sum of e^score, (B, N)").of("S").hidden(),
                Port("place", "0, 1, 2 ... by which gradient() compares").of("S").hidden()),
            attr("scale", 0.0, "of the scores; 0: 1 / sqrt(D)").range(0, 1e30),
            attr("causal", false, "hides later keys"))
            .example("q=(2,3,4) k=(2,5,4) v=(2,5,3)")
            .example("q=(1,5,3) k=(1,4,3) v=(1,4,2) causal=true scale=0.5");
    using types = Rows<Row<float, float>, Row<double, double>>;
    static constexpr auto retain_x = ports(0, 1, 2);
    static constexpr auto retain_y = ports(0, 1, 2);

    static void infer(const auto& s) {
        const Shape q = s.x(0), k = s.x(1), v = s.x(2);
        s.check(q.size() == 3, "q.ndim", 3, q.size());
        s.check(k.size() == 3, "k.ndim", 3, k.size());
        s.check(v.size() == 3, "v.ndim", 3, v.size());
        s.check(q[2] > 0, "q.shape[2]", "at least 1", q[2]);
        s.check(k[1] > 0, "k.shape[1]", "at least 1", k[1]);
        s.check(k[0] == q[0], "k.shape[0]", q[0], k[0]);
        s.check(k[2] == q[2], "k.shape[2]", q[2], k[2]);
        s.check(v[0] == q[0], "v.shape[0]", q[0], v[0]);
        s.check(v[1] == k[1], "v.shape[1]", k[1], v[1]);
        s.y(0, {q[0], q[1], v[2]});
        s.y(1, {q[0], q[1]}, s.wide(0));
        s.y(2, {std::max(q[1], k[1])}, s.wide(0));
    }

    // Composes gradients of any order from the definition: batched products are sums of broadcast
    // products, with all scores in memory. An ordinary backward() uses the kernel below.
    static void gradient(const auto& g) {
        const Sizes s(g.x_shape(0), g.x_shape(1), g.x_shape(2));
        const double scale = s.scale(g.template attr<"scale">());
        const auto rows = [](const Var& v, std::int64_t b, std::int64_t n, std::int64_t d) {
            return reshape(v, {b, n, 1, d});
        };
        const auto columns = [](const Var& v, std::int64_t b, std::int64_t m, std::int64_t d) {
            return reshape(v, {b, 1, m, d});
        };
        const Var q = rows(g.x(0), s.b, s.n, s.d), k = columns(g.x(1), s.b, s.m, s.d);
        const Var v = columns(g.x(2), s.b, s.m, s.e), gy = rows(g.gy(0), s.b, s.n, s.e);
        Var scores = sum(q * k, {3}) * scale;
        if (g.template attr<"causal">()) {
            const auto first = [&](std::int64_t n) {
                const std::int64_t begin = 0;
                return call<"catena.get_item">(
                    {g.y(2)}, {set("begin", Ints(&begin, 1)), set("end", Ints(&n, 1))});
            };
            const Var seen = reshape(first(s.n), {s.n, 1}) >= reshape(first(s.m), {1, s.m});
            scores = math::where(cast(seen, g.x_meta(0).dtype), scores, -1e30);
        }
        const Var p = call<"catena.softmax">({scores}, {set("axis", std::int64_t{2})});
        const Var gp = sum(gy * v, {3});
        const Var gs = reshape(p * (gp - sum(p * gp, {2}, true)) * scale, {s.b, s.n, s.m, 1});
        if (g.wants(0)) g.gx(0, sum(gs * k, {2}));
        if (g.wants(1)) g.gx(1, sum(gs * q, {1}));
        if (g.wants(2)) g.gx(2, sum(reshape(p, {s.b, s.n, s.m, 1}) * gy, {1}));
    }

    // [plan]
    // Requests scratch memory for each thread that call.parallel() may use.
    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        const Sizes s(call);
        plan.scratch_bytes = static_cast<std::uint64_t>(call.slots() * s.scratch()) * sizeof(T);
    }
    // [/plan]

    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const Sizes s(call);
        const T* const v = call.template x<T>(2).data;
        T* const y = call.template y<T>(0).data;
        S* const lse = call.template y<S>(1).data;
        const auto place = call.template y<S>(2);
        for (std::int64_t i = 0; i < place.size(); ++i)
            store(place[i], call.adds(2), static_cast<S>(i));
        const Blas blas(call);  // before parallel(), because bodies must not call the host
        for_each_block<T>(call, s, s.n, [&](const Block& rows, T* scores) CATENA_LAMBDA {
            // Sums of e^(score - most) v, where most is the largest score so far.
            T* const sums = scores + block * block;
            T most[block], total[block];
            std::fill_n(most, rows.count, -std::numeric_limits<T>::infinity());
            std::fill_n(total, rows.count, T(0));
            std::fill_n(sums, rows.count * s.e, T(0));
            for (const Block& keys : s.blocks_of_keys(rows)) {
                score<T>(call, s, blas, rows, keys, scores);
                for (std::int64_t i = 0; i < rows.count; ++i) {
                    T* const row = scores + i * block;
                    const T now = std::max(most[i], max_of(row, keys.count));
                    const T old = std::exp(most[i] - now);  // rescales the sums to the new maximum
                    scaled_exp(row, keys.count, now, T(1), row, false);
                    total[i] = total[i] * old + static_cast<T>(sum_of(row, keys.count));
                    for (std::int64_t e = 0; e < s.e; ++e) sums[i * s.e + e] *= old;
                    most[i] = now;
                }
                blas.gemm(Product<T>{.transpose_a = false,
                                     .transpose_b = false,
                                     .m = rows.count,
                                     .n = s.e,
                                     .k = keys.count,
                                     .a = scores,
                                     .b = v + (keys.batch * s.m + keys.first) * s.e,
                                     .c = sums,
                                     .add = true,
                                     .lda = block});
            }
            for (std::int64_t i = 0; i < rows.count; ++i) {
                const std::int64_t row = rows.batch * s.n + rows.first + i;
                for (std::int64_t e = 0; e < s.e; ++e)
                    store(y[row * s.e + e], call.adds(0), sums[i * s.e + e] / total[i]);
                store(lse[row], call.adds(1), static_cast<S>(most[i] + std::log(total[i])));
            }
        });
    }

    // Computes gq by blocks of queries, then gk and gv by blocks of keys, so that threads write
    // disjoint parts. Recomputes the scores instead of keeping them.
    template <class T, class S>
    CATENA_KERNEL static void backward(const auto& call) {
        const Sizes s(call);
        const T* const q = call.template x<T>(0).data;
        const T* const k = call.template x<T>(1).data;
        const T* const gy = call.template gy<T>(0).data;
        const Blas blas(call);
        for (const std::size_t i : {0, 1, 2})
            if (const auto gx = call.template gx<T>(i); gx && !call.adds(i))
                std::fill_n(gx.data, gx.size(), T(0));
        const auto onto = [&](bool transpose, const Block& to, const Block& over, const T* weights,
                              const T* from, std::int64_t width, T* target) CATENA_LAMBDA {
            blas.gemm(Product<T>{.transpose_a = transpose,
                                 .transpose_b = false,
                                 .m = to.count,
                                 .n = width,
                                 .k = over.count,
                                 .a = weights,
                                 .b = from,
                                 .c = target,
                                 .add = true,
                                 .lda = block});
        };
        if (const auto gq = call.template gx<T>(0))
            for_each_block<T>(call, s, s.n, [&](const Block& rows, T* p) CATENA_LAMBDA {
                for (const Block& keys : s.blocks_of_keys(rows)) {
                    weigh<T, S>(call, s, blas, rows, keys, p);
                    onto(false, rows, keys, p + block * block,
                         k + (keys.batch * s.m + keys.first) * s.d, s.d,
                         gq.data + (rows.batch * s.n + rows.first) * s.d);
                }
            });
        const auto gk = call.template gx<T>(1);
        const auto gv = call.template gx<T>(2);
        if (!gk && !gv) return;
        for_each_block<T>(call, s, s.m, [&](const Block& keys, T* p) CATENA_LAMBDA {
            for (const Block& rows : s.blocks_of_rows(keys)) {
                weigh<T, S>(call, s, blas, rows, keys, p);
                const std::int64_t row = rows.batch * s.n + rows.first;
                const std::int64_t key = keys.batch * s.m + keys.first;
                if (gk)
                    onto(true, keys, rows, p + block * block, q + row * s.d, s.d,
                         gk.data + key * s.d);
                if (gv) onto(true, keys, rows, p, gy + row * s.e, s.e, gv.data + key * s.e);
            }
        });
    }

private:
    static constexpr std::int64_t block = 64;  // queries or keys per block

    struct Block {
        std::int64_t batch;
        std::int64_t first;
        std::int64_t count;
    };
    // Blocks of one batch, starting with the one that contains `from`.
    struct Blocks {
        struct Iterator {
            Block operator*() const { return {batch, at, std::min(block, end - at)}; }
            void operator++() { at += block; }
            bool operator!=(const Iterator& other) const { return at < other.end; }
            std::int64_t batch, at, end;
        };
        Iterator begin() const { return {batch, from / block * block, to}; }
        Iterator end() const { return {batch, to, to}; }
        std::int64_t batch, from, to;
    };
    struct Sizes {
        Sizes(Shape q, Shape k, Shape v) : b(q[0]), n(q[1]), m(k[1]), d(q[2]), e(v[2]) {}
        explicit Sizes(const auto& call)
            : Sizes(shape_of(*call.raw().x[0]), shape_of(*call.raw().x[1]),
                    shape_of(*call.raw().x[2])) {
            causal = call.template attr<"causal">();
            scores_by = scale(call.template attr<"scale">());
        }
        double scale(double given) const {
            return given > 0 ? given : 1 / std::sqrt(static_cast<double>(d));
        }
        // Scratch elements per thread: two score blocks, or one and the sums of a block of queries.
        std::int64_t scratch() const { return block * block + block * std::max(block, e); }
        // Return the keys to which queries of `rows` attend, and the queries that attend to keys of
        // `keys`.
        Blocks blocks_of_keys(const Block& rows) const {
            return {rows.batch, 0, causal ? std::min(m, rows.first + rows.count) : m};
        }
        Blocks blocks_of_rows(const Block& keys) const {
            return {keys.batch, causal ? std::min(n, keys.first) : 0, n};
        }
        std::int64_t b, n, m, d, e;
        bool causal = false;
        double scores_by = 1;
    };

    // Calls body(block, scratch) for all blocks of `extent` queries or keys in all batches.
    template <class T>
    CATENA_KERNEL static void for_each_block(const auto& call, const Sizes& s, std::int64_t extent,
                                             const auto& body) {
        const std::int64_t each = (extent + block - 1) / block;
        const std::int64_t work = block * (s.n + s.m - extent) * (s.d + s.e);
        // [slots]
        T* const scratch = call.template scratch<T>();
        call.parallel(s.b * each, std::max<std::int64_t>(work, 1),
                      [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
                          for (std::int64_t i = begin; i < end; ++i) {
                              const std::int64_t first = i % each * block;
                              body(Block{i / each, first, std::min(block, extent - first)},
                                   scratch + slot * s.scratch());
                          }
                      });
        // [/slots]
    }

    // Computes scores[i * block + j] of a block of queries and a block of keys.
    template <class T>
    CATENA_KERNEL static void score(const auto& call, const Sizes& s, const Blas& blas,
                                    const Block& rows, const Block& keys, T* scores) {
        // [product]
        blas.gemm(
            Product<T>{.transpose_a = false,
                       .transpose_b = true,
                       .m = rows.count,
                       .n = keys.count,
                       .k = s.d,
                       .a = call.template x<T>(0).data + (rows.batch * s.n + rows.first) * s.d,
                       .b = call.template x<T>(1).data + (keys.batch * s.m + keys.first) * s.d,
                       .c = scores,
                       .add = false,
                       .alpha = s.scores_by,
                       .ldc = block});
        // [/product]
        if (!s.causal) return;
        for (std::int64_t i = 0; i < rows.count; ++i)
            for (std::int64_t j = 0; j < keys.count; ++j)
                if (keys.first + j > rows.first + i)
                    scores[i * block + j] = -std::numeric_limits<T>::infinity();
    }
    // Sets p to the softmax of the scores, and the block after it to the gradient of the scores.
    template <class T, class S>
    CATENA_KERNEL static void weigh(const auto& call, const Sizes& s, const Blas& blas,
                                    const Block& rows, const Block& keys, T* p) {
        T* const gradient = p + block * block;
        const std::int64_t first = rows.batch * s.n + rows.first;
        const T* const gy = call.template gy<T>(0).data + first * s.e;
        const T* const y = call.template y<T>(0).data + first * s.e;
        const S* const lse = call.template y<S>(1).data + first;
        score<T>(call, s, blas, rows, keys, p);
        blas.gemm(
            Product<T>{.transpose_a = false,
                       .transpose_b = true,
                       .m = rows.count,
                       .n = keys.count,
                       .k = s.e,
                       .a = gy,
                       .b = call.template x<T>(2).data + (keys.batch * s.m + keys.first) * s.e,
                       .c = gradient,
                       .add = false,
                       .ldc = block});
        for (std::int64_t i = 0; i < rows.count; ++i) {
            T* const row = p + i * block;
            T* const g = gradient + i * block;
            const T mean = sum_lanes<T>(s.e, [&](std::int64_t e) CATENA_LAMBDA {
                return gy[i * s.e + e] * y[i * s.e + e];
            });
            scaled_exp(row, keys.count, static_cast<T>(lse[i]), T(1), row, false);
            const T scale = static_cast<T>(s.scores_by);
            CATENA_LOOP
            for (std::int64_t j = 0; j < keys.count; ++j) g[j] = row[j] * (g[j] - mean) * scale;
        }
    }
};

CATENA_PLUGIN("org.example.attention", "1.0.0", Attention);
