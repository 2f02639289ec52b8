// Attention on CUDA. Blocks of threads compute tiles of 32 x 32 weights from the queries and keys;
// each result is a sum of products of such tiles, in a fixed order.
#pragma once

#include <catena/plugin/cuda/draws.cuh>
#include <catena/plugin/cuda/lines.cuh>

#include "scaled_dot_product_attention.hpp"

namespace catena::plugins {

// seed, offset and whether any are drawn, of a call.
struct StoreDraws {
    __device__ __forceinline__ void operator()(std::int64_t) const {
        to[0] = static_cast<std::int64_t>(draws.seed());
        to[1] = static_cast<std::int64_t>(draws.offset());
        to[2] = any;
    }
    cuda::Draws draws;
    std::int64_t any;
    std::int64_t* to;
};

// mean[row] = gy . y, for the rows of all batches and heads.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gradient_means_kernel(const cuda::Lines lines, const __grid_constant__ AttentionCase a,
                          const T* gy, const T* y, cuda::Compute<T>* mean) {
    using C = cuda::Compute<T>;
    const cuda::Line line(lines);
    const std::int64_t i = line.index;
    const std::int64_t at =
        i / a.t / a.h * a.y.batch + i / a.t % a.h * a.y.head + i % a.t * a.y.row;
    C sum = 0;
    for (std::int64_t e = line.lane; e < line.end; e += lines.lanes)
        sum += cuda::load_as<C>(gy[at + e]) * cuda::load_as<C>(y[at + e]);
    sum = cuda::join_lanes(lines, line, sum, std::plus());
    if (line.lane == 0 && line.there) mean[i] = sum;
}

// factor * the sums of rows of `from`, with the weights of queries and keys or, if of_scores, the
// gradients of the scores. For each query, over keys, if by_query; else for each key.
template <class T>
struct AttentionSum {
    std::int64_t by_query = 0, of_scores = 0;
    const T* from = nullptr;
    HeadStrides from_at = {}, to_at = {};
    std::int64_t size = 0;  // columns
    T* to = nullptr;
    double factor = 1;
    std::int64_t add = 0;
};
template <class T>
struct AttentionOnDevice {
    using C = cuda::Compute<T>;
    AttentionCase a;
    const T* q;
    const T* k;
    const T* v;
    const std::int64_t* draws;
    double ratio;
    const T* gy = nullptr;
    C* lse = nullptr;
    const C* mean = nullptr;
    C* lse_to = nullptr;
    AttentionSum<T> sum = {};  // that a launch computes; its add and to also serve other launches
};

template <class T>
class AttentionBlock {
public:
    using C = cuda::Compute<T>;
    static constexpr int side = 32;    // of a tile
    static constexpr int half = 16;    // threads have the elements (row, column) + {0, half}
    static constexpr int width = 256;  // columns of a result
    struct Tile {
        C at[side][side + 1];
    };
    struct Shared {
        Tile left, right, weights;
    };

    __device__ __forceinline__ AttentionBlock(const AttentionOnDevice<T>& given, Shared& memory)
        : x(given), shared(memory), draws(given.draws, given.ratio) {
        const auto thread = static_cast<int>(threadIdx.x);
        row = thread / half;
        column = thread % half;
    }

    // The keys that some of the queries row .. row + 31 of a batch see.
    __device__ __forceinline__ SeenKeys keys_of(std::int64_t batch, std::int64_t query) const {
        const std::int64_t n = x.a.keys(batch);
        const std::int64_t last = query + side < x.a.t ? query + side - 1 : x.a.t - 1;
        return {x.a.seen(query, n).first, x.a.seen(last, n).end};
    }

    // tile = `side` rows of which n exist, and columns [from, size)
    __device__ __forceinline__ void load(Tile& tile, const T* rows, std::int64_t step,
                                         std::int64_t n, std::int64_t from,
                                         std::int64_t size) const {
        for (int i = static_cast<int>(threadIdx.x); i < side * side; i += cuda::block) {
            const int r = i / side, c = i % side;
            tile.at[r][c] =
                r < n && from + c < size ? cuda::load_as<C>(rows[r * step + from + c]) : C(0);
        }
    }
    // dots[i][j] = left row + half i . right row + half j, of `size` elements
    __device__ __forceinline__ void dot(const T* left, std::int64_t left_step, std::int64_t n_left,
                                        const T* right, std::int64_t right_step,
                                        std::int64_t n_right, std::int64_t size,
                                        C (&dots)[2][2]) const {
        for (int i = 0; i < 4; ++i) dots[i / 2][i % 2] = C(0);
        for (std::int64_t from = 0; from < size; from += side) {
            __syncthreads();
            load(shared.left, left, left_step, n_left, from, size);
            load(shared.right, right, right_step, n_right, from, size);
            __syncthreads();
            CATENA_UNROLL
            for (int d = 0; d < side; ++d) {
                const C a[2] = {shared.left.at[row][d], shared.left.at[row + half][d]};
                const C b[2] = {shared.right.at[column][d], shared.right.at[column + half][d]};
                CATENA_UNROLL
                for (int i = 0; i < 4; ++i) dots[i / 2][i % 2] += a[i / 2] * b[i % 2];
            }
        }
    }

    // scores of queries `query` + row + {0, half} and keys `key` + column + {0, half}; -inf: hidden
    __device__ __forceinline__ void score(std::int64_t batch, std::int64_t head, std::int64_t query,
                                          std::int64_t key, C (&scores)[2][2]) const {
        const AttentionCase& a = x.a;
        dot(x.q + batch * a.q.batch + head * a.q.head + query * a.q.row, a.q.row, a.t - query,
            x.k + batch * a.k.batch + head / a.group * a.k.head + key * a.k.row, a.k.row, a.s - key,
            a.d, scores);
        const std::int64_t n = a.keys(batch);
        for (int i = 0; i < 4; ++i) {
            const std::int64_t t = query + row + i / 2 * half, s = key + column + i % 2 * half;
            C& score = scores[i / 2][i % 2];
            const SeenKeys seen = t < a.t ? a.seen(t, n) : SeenKeys{0, 0};
            bool sees = s >= seen.first && s < seen.end;
            score *= static_cast<C>(a.scale);
            if (sees && a.bias.data != nullptr)
                score += cuda::load_as<C>(
                    static_cast<const T*>(a.bias.data)[a.bias.at(batch, head, t, s)]);
            if (sees && a.mask.data != nullptr)
                sees = static_cast<const bool*>(a.mask.data)[a.mask.at(batch, head, t, s)];
            if (!sees) score = -std::numeric_limits<C>::infinity();
        }
    }
    // weights: e^(score - lse), after dropout; gradients: those of the scores, if requested
    __device__ __forceinline__ void weigh(std::int64_t batch, std::int64_t head, std::int64_t query,
                                          std::int64_t key, bool differentiate, C (&weights)[2][2],
                                          C (&gradients)[2][2]) const {
        const AttentionCase& a = x.a;
        score(batch, head, query, key, weights);
        if (differentiate)
            dot(x.gy + batch * a.y.batch + head * a.y.head + query * a.y.row, a.y.row, a.t - query,
                x.v + batch * a.v.batch + head / a.group * a.v.head + key * a.v.row, a.v.row,
                a.s - key, a.e, gradients);
        for (int i = 0; i < 4; ++i) {
            const std::int64_t t = query + row + i / 2 * half, s = key + column + i % 2 * half;
            C &w = weights[i / 2][i % 2], &g = gradients[i / 2][i % 2];
            const bool there = t < a.t && w != -std::numeric_limits<C>::infinity();
            const std::int64_t at = (batch * a.h + head) * a.t + t;
            w = there ? math::exp(w - x.lse[at]) : C(0);
            const C factor = there ? static_cast<C>(draws.factor(a, batch, head, t, s)) : C(0);
            if (differentiate) g = there ? w * (g * factor - x.mean[at]) : C(0);
            w *= factor;
        }
    }

    // Computes 32 rows of the result from `first`, and the columns [left, left + width).
    __device__ __forceinline__ void sum(std::int64_t batch, std::int64_t head, std::int64_t first,
                                        std::int64_t left) const {
        const AttentionCase& a = x.a;
        const AttentionSum<T>& of = x.sum;
        const bool by_query = of.by_query != 0, of_scores = of.of_scores != 0;
        const int r = static_cast<int>(threadIdx.x) / 8, c = static_cast<int>(threadIdx.x) % 8;
        C sums[width / side][4] = {};  // of row r and the columns c + 8 i
        const auto add_tile = [&](std::int64_t h, std::int64_t query, std::int64_t key) {
            C weights[2][2], gradients[2][2];
            weigh(batch, h, query, key, of_scores, weights, gradients);
            __syncthreads();
            for (int i = 0; i < 4; ++i) {
                const int t = row + i / 2 * half, s = column + i % 2 * half;
                shared.weights.at[by_query ? t : s][by_query ? s : t] =
                    of_scores ? gradients[i / 2][i % 2] : weights[i / 2][i % 2];
            }
            const T* const rows = of.from + batch * of.from_at.batch +
                                  (by_query ? h / a.group : h) * of.from_at.head +
                                  (by_query ? key : query) * of.from_at.row;
            CATENA_UNROLL
            for (int chunk = 0; chunk < width / side; ++chunk) {
                if (left + chunk * side >= of.size) break;
                __syncthreads();
                load(shared.right, rows, of.from_at.row, by_query ? a.s - key : a.t - query,
                     left + chunk * side, of.size);
                __syncthreads();
                for (int j = 0; j < side; ++j) {
                    const C w = shared.weights.at[r][j];
                    CATENA_UNROLL
                    for (int i = 0; i < 4; ++i) sums[chunk][i] += w * shared.right.at[j][c + 8 * i];
                }
            }
        };
        if (by_query) {
            const SeenKeys seen = keys_of(batch, first);
            for (std::int64_t key = seen.first / side * side; key < seen.end; key += side)
                add_tile(head, first, key);
        } else {
            for (std::int64_t h = head * a.group; h < (head + 1) * a.group; ++h)
                for (std::int64_t query = 0; query < a.t; query += side) {
                    const SeenKeys seen = keys_of(batch, query);
                    if (seen.first < first + side && seen.end > first) add_tile(h, query, first);
                }
        }
        if (first + r >= (by_query ? a.t : a.s)) return;
        T* const to =
            of.to + batch * of.to_at.batch + head * of.to_at.head + (first + r) * of.to_at.row;
        CATENA_UNROLL
        for (int i = 0; i < width / 8; ++i) {
            const std::int64_t at = left + c + 8 * i;
            if (at < of.size)
                cuda::store(to[at], of.add != 0, static_cast<C>(of.factor) * sums[i / 4][i % 4]);
        }
    }

    // Adds the gradients of scores over what the bias broadcasts, of one tile of the bias.
    __device__ __forceinline__ void of_bias(std::int64_t batch, std::int64_t head,
                                            std::int64_t query, std::int64_t key) const {
        const AttentionCase& a = x.a;
        C sums[2][2] = {};
        const std::int64_t query_end = a.bias.step[2] == 0 ? a.t : query + 1;
        const std::int64_t key_end = a.bias.step[3] == 0 ? a.s : key + 1;
        for (std::int64_t b = batch; b < a.b; b += a.bias.step[0] == 0 ? 1 : a.b)
            for (std::int64_t h = head; h < a.h; h += a.bias.step[1] == 0 ? 1 : a.h)
                for (std::int64_t t = query; t < query_end; t += side)
                    for (std::int64_t s = key; s < key_end; s += side) {
                        C weights[2][2], gradients[2][2];
                        weigh(b, h, t, s, true, weights, gradients);
                        for (int i = 0; i < 4; ++i) sums[i / 2][i % 2] += gradients[i / 2][i % 2];
                    }
        __syncthreads();
        for (int i = 0; i < 4; ++i)
            shared.weights.at[row + i / 2 * half][column + i % 2 * half] = sums[i / 2][i % 2];
        __syncthreads();
        const int rows = a.bias.step[2] == 0 ? 1 : side, columns = a.bias.step[3] == 0 ? 1 : side;
        for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += cuda::block) {
            const int r = i / columns, c = i % columns;
            if (query + r >= a.t || key + c >= a.s) continue;
            C sum = 0;
            for (int l = r; l < (rows == 1 ? side : r + 1); ++l)
                for (int m = c; m < (columns == 1 ? side : c + 1); ++m)
                    sum += shared.weights.at[l][m];
            cuda::store(x.sum.to[a.bias.at(batch, head, query + r, key + c)], x.sum.add != 0, sum);
        }
    }

    // lse of 32 queries
    __device__ __forceinline__ void log_sum(std::int64_t batch, std::int64_t head,
                                            std::int64_t query) const {
        const AttentionCase& a = x.a;
        using Sum = cuda::LogSum<C>;
        Sum own[2] = {{Sum::lowest(), C(0)}, {Sum::lowest(), C(0)}};
        const SeenKeys seen = keys_of(batch, query);
        for (std::int64_t key = seen.first / side * side; key < seen.end; key += side) {
            C scores[2][2];
            score(batch, head, query, key, scores);
            for (int i = 0; i < 4; ++i)
                if (scores[i / 2][i % 2] != Sum::lowest()) own[i / 2].take(scores[i / 2][i % 2]);
        }
        for (int i = 0; i < 2; ++i) {
            const Sum all = cuda::join_lanes(own[i], column, half, 1, &Sum::join);
            const std::int64_t t = query + row + i * half;
            if (column != 0 || t >= a.t) continue;
            const std::int64_t at = (batch * a.h + head) * a.t + t;
            x.lse[at] = all.sum == C(0) ? std::numeric_limits<C>::infinity()
                                        : all.most + math::log(all.sum);
            cuda::store(x.lse_to[at], x.sum.add != 0, x.lse[at]);
        }
    }

private:
    const AttentionOnDevice<T>& x;
    Shared& shared;
    AttentionDraws draws;
    int row, column;
};

enum class AttentionStep : std::int64_t { log_sum, sum, of_bias };
template <class T, AttentionStep step>
__global__ void __launch_bounds__(cuda::block, step == AttentionStep::sum ? 1 : 2)
    attention_kernel(const __grid_constant__ AttentionOnDevice<T> x) {
    __shared__ typename AttentionBlock<T>::Shared shared;
    const AttentionBlock<T> block(x, shared);
    constexpr std::int64_t side = AttentionBlock<T>::side;
    const AttentionCase& a = x.a;
    const auto i = static_cast<std::int64_t>(blockIdx.x);
    if constexpr (step == AttentionStep::of_bias) {
        const std::int64_t rows = a.bias.step[2] == 0 ? 1 : (a.t + side - 1) / side;
        const std::int64_t columns = a.bias.step[3] == 0 ? 1 : (a.s + side - 1) / side;
        const std::int64_t heads = a.bias.step[1] == 0 ? 1 : a.h;
        block.of_bias(i / columns / rows / heads, i / columns / rows % heads,
                      i / columns % rows * side, i % columns * side);
    } else {
        const bool by_query = step == AttentionStep::log_sum || x.sum.by_query != 0;
        const std::int64_t heads = by_query ? a.h : a.hk;
        const std::int64_t each = ((by_query ? a.t : a.s) + side - 1) / side;
        const std::int64_t batch = i / each / heads, head = i / each % heads;
        const std::int64_t first = i % each * side;
        if constexpr (step == AttentionStep::log_sum) block.log_sum(batch, head, first);
        else
            block.sum(batch, head, first,
                      static_cast<std::int64_t>(blockIdx.y) * AttentionBlock<T>::width);
    }
}

// Factors of weights, for each query and key.
template <class T>
struct AttentionFactorsRule {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t key = i % a.s, row = i / a.s % a.t;
        const std::int64_t head = i / a.s / a.t % a.h, batch = i / a.s / a.t / a.h;
        const SeenKeys keys = a.seen(row, a.keys(batch));
        cuda::store(seen[i], add_seen != 0, key >= keys.first && key < keys.end ? C(1) : C(0));
        cuda::store(kept[i], add_kept != 0,
                    static_cast<C>(AttentionDraws(draws, ratio).factor(a, batch, head, row, key)));
    }
    AttentionCase a;
    const std::int64_t* draws;
    double ratio;
    T* seen;
    T* kept;
    std::int64_t add_seen, add_kept;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::AttentionFactors> {
    template <class T, class>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const AttentionCase a(call, shape_of(*call.raw().x[1]), 3);
        each(call.queue(), a.b * a.h * a.t * a.s,
             AttentionFactorsRule<T>{a, call.template x<std::int64_t>(2).data,
                                     call.template attr<"dropout">(), call.template y<T>(0).data,
                                     call.template y<T>(1).data, call.adds(0), call.adds(1)});
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::ScaledDotProductAttention> {
    // lse in forward, in which the output may be added to; means of gy y in backward.
    template <class T, class, class, class>
    static void plan(const auto& call, catena_plan& plan) {
        const catena::plugins::AttentionCase a(call);
        plan.scratch_bytes = static_cast<std::uint64_t>(a.b * a.h * a.t) * sizeof(Compute<T>);
    }
    template <class T, class, class, class>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        auto x = of<T>(call);
        const bool any = call.train() && x.ratio != 0;
        Draws draws;
        if (any) draws = reserve_draws(call.context(), AttentionDraws::blocks(x.a));
        each(call.queue(), 1,
             StoreDraws{draws, any ? 1 : 0, call.template y<std::int64_t>(2).data});
        x.lse = call.template scratch<Compute<T>>();
        x.lse_to = call.template y<Compute<T>>(1).data;
        x.sum.add = call.adds(1);
        launch<T, AttentionStep::log_sum>(call, x, tiles(x.a.t) * x.a.h * x.a.b, 1);
        sum(call, x,
            {true, false, x.v, x.a.v, x.a.y, x.a.e, call.template y<T>(0).data, 1.0, call.adds(0)});
    }
    template <class T, class, class, class>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        auto x = of<T>(call);
        const AttentionCase& a = x.a;
        x.gy = call.template gy<T>(0).data;
        x.lse = call.template y<Compute<T>>(1).data;
        auto* const mean = call.template scratch<Compute<T>>();
        const Lines lines(Axis(IntList{a.b * a.h * a.t, a.e}, 1));
        if (lines.count > 0)
            call.launch(&gradient_means_kernel<T>, lines.blocks(), block, lines, a, x.gy,
                        call.template y<T>(0).data, mean);
        x.mean = mean;
        if (const auto gq = call.template gx<T>(0))
            sum(call, x, {true, true, x.k, a.k, a.q, a.d, gq.data, a.scale, call.adds(0)});
        if (const auto gk = call.template gx<T>(1))
            sum(call, x, {false, true, x.q, a.q, a.k, a.d, gk.data, a.scale, call.adds(1)});
        if (const auto gv = call.template gx<T>(2))
            sum(call, x, {false, false, x.gy, a.y, a.v, a.e, gv.data, 1.0, call.adds(2)});
        if (call.wants(3)) {
            const auto gbias = call.template gx<T>(3);
            x.sum.to = gbias.data;
            x.sum.add = call.adds(3);
            const auto extent = [&](std::size_t axis, std::int64_t n) {
                return a.bias.step[axis] == 0 ? 1 : n;
            };
            if (gbias.size() > 0)
                launch<T, AttentionStep::of_bias>(
                    call, x,
                    extent(0, a.b) * extent(1, a.h) * extent(2, tiles(a.t)) * extent(3, tiles(a.s)),
                    1);
        }
    }

private:
    static std::int64_t tiles(std::int64_t n) { return (n + 31) / 32; }

    template <class T>
    static catena::plugins::AttentionOnDevice<T> of(const auto& call) {
        return {.a = catena::plugins::AttentionCase(call),
                .q = call.template x<T>(0).data,
                .k = call.template x<T>(1).data,
                .v = call.template x<T>(2).data,
                .draws = call.template y<std::int64_t>(2).data,
                .ratio = call.template attr<"dropout">()};
    }
    template <class T, catena::plugins::AttentionStep step>
    static void launch(const auto& call, const catena::plugins::AttentionOnDevice<T>& x,
                       std::int64_t blocks, std::int64_t groups) {
        if (blocks > 0)
            call.launch(&catena::plugins::attention_kernel<T, step>,
                        dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(groups)), block,
                        x);
    }
    template <class T>
    static void sum(const auto& call, catena::plugins::AttentionOnDevice<T> x,
                    const std::type_identity_t<catena::plugins::AttentionSum<T>>& of) {
        using namespace catena::plugins;
        x.sum = of;
        constexpr std::int64_t width = AttentionBlock<T>::width;
        if (of.size > 0)
            launch<T, AttentionStep::sum>(
                call, x,
                of.by_query != 0 ? tiles(x.a.t) * x.a.h * x.a.b : tiles(x.a.s) * x.a.hk * x.a.b,
                (of.size + width - 1) / width);
    }
};
