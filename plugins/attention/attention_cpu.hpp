// Attention on the CPU, by tiles of queries. A tile is stored with its queries as columns, so that
// the loops over queries are vectorized, and keys and values are read where they are.
#pragma once

#include <catena/plugin/philox.hpp>
#include <catena/plugin/rows.hpp>

#include <limits>

#include "attention_case.hpp"
#include "attention_product.hpp"

namespace catena::plugins {

// e^x for x <= 0 or a little above, 0 below -88 (float32) or -709.
template <class T>
CATENA_KERNEL T exp_of_difference(T x) {
    using F = math::detail::Format<T>;
    constexpr T lowest = -T(F::bias) * T(0.693147180559945309417L);
    const auto [r, power] = math::detail::reduce_and_scale(lowest > x ? lowest : x);
    return math::detail::exp_of_rest(r) * power;
}

// A call, with the tensors of its phase.
template <class T>
struct AttentionTensors {
    AttentionCase a;
    const T *q, *k, *v;
    const T* y;
    T* lse;
    AttentionDraws draws = {};
    // Forward.
    T* to = nullptr;
    bool add_y = false, add_lse = false;
    // Backward.
    const T* gy = nullptr;
    T *gq = nullptr, *gk = nullptr, *gv = nullptr, *gbias = nullptr;
    bool add_q = false, add_k = false, add_v = false;
    char* scratch = nullptr;
};

// Queries that are computed together: of one head or, if there are few, of several heads that
// share keys. Lane i is query first + i % count of head `head` + i / count.
template <class T>
struct QueryTile {
    static constexpr std::int64_t most = 256 / static_cast<std::int64_t>(sizeof(T));

    QueryTile() = default;
    void place(const AttentionCase& a) {
        const std::int64_t n_keys = a.keys(batch);
        lanes = heads * count;
        width = (lanes + 15) / 16 * 16;
        least_first = n_keys, least_end = n_keys, most_first = 0, most_end = 0;
        for (std::int64_t i = 0; i < width; ++i) {
            const SeenKeys seen =
                i < lanes ? a.seen(first + i % count, n_keys) : SeenKeys{n_keys, n_keys};
            first_key[i] = seen.first, end_key[i] = seen.end;
            if (i >= lanes) continue;
            least_first = std::min(least_first, seen.first);
            most_first = std::max(most_first, seen.first);
            least_end = std::min(least_end, seen.end);
            most_end = std::max(most_end, seen.end);
        }
    }
    std::int64_t head_of(std::int64_t lane) const { return head + lane / count; }
    std::int64_t row_of(std::int64_t lane) const { return first + lane % count; }
    std::int64_t at(const HeadStrides& strides, std::int64_t lane) const {
        return batch * strides.batch + head_of(lane) * strides.head + row_of(lane) * strides.row;
    }
    // Whether all queries see all keys of a block.
    bool sees_all(std::int64_t key, std::int64_t n) const {
        return key >= most_first && key + n <= least_end;
    }

    std::int64_t batch, head, heads, first, count;
    std::int64_t lanes, width;
    std::int64_t least_first, most_first, least_end, most_end;
    std::int64_t first_key[most], end_key[most];
};

// The tiles of the heads that share keys.
template <class T>
struct QueryTiles {
    explicit QueryTiles(const AttentionCase& a, bool fold = true) : group(a.group), t(a.t) {
        constexpr std::int64_t most = QueryTile<T>::most;
        if (fold && t > 0 && 2 * t <= most) heads = std::min(group, most / t);
        heads = std::max<std::int64_t>(heads, 1);
        by_head = (t + most - 1) / most;
        count = (group + heads - 1) / heads * by_head;
    }
    QueryTile<T> tile(const AttentionCase& a, std::int64_t batch, std::int64_t shared,
                      std::int64_t i) const {
        constexpr std::int64_t most = QueryTile<T>::most;
        const std::int64_t head = i / by_head * heads, first = i % by_head * most;
        QueryTile<T> tile;
        tile.batch = batch;
        tile.head = shared * group + head;
        tile.heads = std::min(heads, group - head);
        tile.first = first;
        tile.count = std::min(most, t - first);
        tile.place(a);
        return tile;
    }

    std::int64_t group, t, heads = 1, by_head, count;
};

// The parts into which the keys of one head are split, so that threads share them. It depends on
// shapes alone, as the order of sums must.
struct KeyParts {
    KeyParts(const AttentionCase& a, std::int64_t tasks, std::int64_t least, std::int64_t most) {
        constexpr std::int64_t wanted = 64;
        count = std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(tasks, 1), 1,
                                         std::max<std::int64_t>(std::min(a.s / least, most), 1));
        size = ((a.s + count - 1) / count + 31) / 32 * 32;
    }
    std::int64_t count, size;
};

// Memory of one thread.
template <class T>
struct AttentionScratch {
    static constexpr std::int64_t lanes = QueryTile<T>::most;
    static constexpr std::int64_t block = 64;  // keys
    static std::int64_t padded(std::int64_t n) { return (n + 15) / 16 * 16; }

    AttentionScratch(const AttentionCase& a, bool backward, void* memory = nullptr)
        : blocks(memory) {
        q = blocks.take<T>(padded(a.d) * lanes);
        rows = blocks.take<T>(lanes * padded(std::max(a.d, a.e)));
        scores = blocks.take<T>(block * lanes);
        factors = blocks.take<T>(lanes);
        sums = blocks.take<T>(padded(backward ? a.d : a.e) * lanes);
        most = blocks.take<T>(lanes);
        total = blocks.take<T>(lanes);
        if (!backward) return;
        const std::int64_t width = padded(a.d) + padded(a.e);
        chunk = std::clamp<std::int64_t>((1 << 17) / width / block * block, block, 1024);
        chunk = std::min(chunk, (a.s + 31) / 32 * 32);
        gy = blocks.take<T>(padded(a.e) * lanes);
        q_rows = blocks.take<T>(lanes * padded(a.d));
        gy_rows = blocks.take<T>(lanes * padded(a.e));
        of_scores = blocks.take<T>(block * lanes);
        gk = blocks.take<T>(chunk * padded(a.d));
        gv = blocks.take<T>(chunk * padded(a.e));
        ones = blocks.take<T>(std::max({padded(a.d), padded(a.e), lanes}));
    }

    Blocks blocks;
    T *q, *rows, *scores, *factors, *sums, *most, *total;
    T *gy = nullptr, *q_rows = nullptr, *gy_rows = nullptr, *of_scores = nullptr;
    T *gk = nullptr, *gv = nullptr, *ones = nullptr;
    std::int64_t chunk = 0;  // keys whose gradients are summed in gk and gv
};

template <class T, Isa isa>
struct AttentionOnCpu {
    using Tensors = AttentionTensors<T>;
    using Tile = QueryTile<T>;
    using Scratch = AttentionScratch<T>;
    static constexpr std::int64_t lanes = Tile::most;
    static constexpr std::int64_t block = Scratch::block;
    static constexpr T infinity = std::numeric_limits<T>::infinity();

    // A block of keys, and the lanes [left, right) of a tile that see some of them.
    struct KeyBlock {
        std::int64_t key, count, left, right;
    };
    // Calls body(KeyBlock) for the keys of [from, to) that a tile sees. Blocks begin at multiples
    // of 32; at the edges of what queries see, they are smaller, so that less is computed in vain.
    CATENA_KERNEL static void for_each_block(const Tile& tile, std::int64_t from, std::int64_t to,
                                             const auto& body) {
        constexpr std::int64_t small = 32;
        to = std::min(to, tile.most_end);
        for (std::int64_t key = std::max(from, tile.least_first) / small * small; key < to;) {
            KeyBlock keys = {key, std::min(block, to - key), 0, tile.width};
            if (!tile.sees_all(key, keys.count)) {
                keys.count = std::min(small, to - key);
                while (keys.left + 16 <= tile.width && !sees_any(tile, keys, keys.left))
                    keys.left += 16;
                while (keys.right > keys.left && !sees_any(tile, keys, keys.right - 16))
                    keys.right -= 16;
            }
            if (keys.left < keys.right) body(keys);
            key += keys.count;
        }
    }
    static bool sees_any(const Tile& tile, const KeyBlock& keys, std::int64_t lane) {
        bool any = false;
        for (std::int64_t i = lane; i < lane + 16; ++i)
            any = any || (tile.end_key[i] > keys.key && tile.first_key[i] < keys.key + keys.count);
        return any;
    }

    // rows[i * padded(size) + d] = factor * element d of query i; 0 in padding
    CATENA_KERNEL static void gather(const Tile& tile, const T* from, const HeadStrides& strides,
                                     std::int64_t size, T factor, T* rows) {
        const std::int64_t step = Scratch::padded(size);
        for (std::int64_t i = 0; i < tile.lanes; ++i, rows += step) {
            const T* const row = from + tile.at(strides, i);
            CATENA_LOOP
            for (std::int64_t d = 0; d < size; ++d) rows[d] = factor * row[d];
            for (std::int64_t d = size; d < step; ++d) rows[d] = T(0);
        }
        std::fill_n(rows, (tile.width - tile.lanes) * step, T(0));
    }
    static void to_columns(const Tile& tile, const T* rows, std::int64_t size, T* columns) {
        const std::int64_t step = Scratch::padded(size);
        transpose_tile<T, isa>({.rows = tile.width,
                                .columns = step,
                                .from = rows,
                                .from_step = step,
                                .to = columns,
                                .to_step = lanes});
    }
    static void to_rows(const Tile& tile, const T* columns, std::int64_t size, T* rows) {
        const std::int64_t step = Scratch::padded(size);
        transpose_tile<T, isa>({.rows = step,
                                .columns = tile.width,
                                .from = columns,
                                .from_step = lanes,
                                .to = rows,
                                .to_step = step});
    }

    // Loads `count` keys (or values) from `key` into the cache while something else is computed.
    CATENA_KERNEL static void prefetch(const AttentionCase& a, const Tile& tile, const T* from,
                                       const HeadStrides& strides, std::int64_t size,
                                       std::int64_t key, std::int64_t count) {
        constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(T));
        const T* row = from + tile.batch * strides.batch + tile.head / a.group * strides.head +
                       key * strides.row;
        for (std::int64_t j = 0; j < std::min(count, a.s - key); ++j, row += strides.row)
            for (std::int64_t d = 0; d < size; d += line) __builtin_prefetch(row + d);
    }
    // product[j * lanes + i] = keys (or values) j . columns i
    CATENA_KERNEL static void dot(const Tile& tile, const KeyBlock& keys, const T* from,
                                  const HeadStrides& strides, std::int64_t group, std::int64_t size,
                                  const T* columns, T* product) {
        multiply_tile<T, isa>({.m = keys.count,
                               .n = keys.right - keys.left,
                               .k = size,
                               .a = from + tile.batch * strides.batch +
                                    tile.head / group * strides.head + keys.key * strides.row,
                               .rows = strides.row,
                               .columns = 1,
                               .b = columns + keys.left,
                               .ldb = lanes,
                               .c = product + keys.left,
                               .ldc = lanes,
                               .factors = nullptr});
    }
    // sums[e * lanes + i] = factors[i] * sums[...] + sum of weights[j * lanes + i] * value j
    CATENA_KERNEL static void weigh(const Tile& tile, const KeyBlock& keys, const T* from,
                                    const HeadStrides& strides, std::int64_t group,
                                    std::int64_t size, const T* weights, const T* factors,
                                    T* sums) {
        multiply_tile<T, isa>({.m = size,
                               .n = keys.right - keys.left,
                               .k = keys.count,
                               .a = from + tile.batch * strides.batch +
                                    tile.head / group * strides.head + keys.key * strides.row,
                               .rows = 1,
                               .columns = strides.row,
                               .b = weights + keys.left,
                               .ldb = lanes,
                               .c = sums + keys.left,
                               .ldc = lanes,
                               .factors = factors + keys.left});
    }
    // sums[j] += sum of weights[j * lanes + i] * row i
    CATENA_KERNEL static void spread(const Tile& tile, const KeyBlock& keys, const T* weights,
                                     const T* rows, std::int64_t size, const T* ones, T* sums) {
        const std::int64_t step = Scratch::padded(size);
        multiply_tile<T, isa>({.m = keys.count,
                               .n = step,
                               .k = std::min(keys.right, tile.lanes) - keys.left,
                               .a = weights + keys.left,
                               .rows = lanes,
                               .columns = 1,
                               .b = rows + keys.left * step,
                               .ldb = step,
                               .c = sums,
                               .ldc = step,
                               .factors = ones});
    }

    // Adds the bias to the scores of a query, which are `step` elements apart, and applies the mask.
    CATENA_KERNEL static void mask_lane(const AttentionCase& a, const Tile& tile,
                                        const KeyBlock& keys, std::int64_t lane, T* scores,
                                        std::int64_t step) {
        const auto first = [&](const Broadcasts& x) CATENA_LAMBDA {
            return x.at(tile.batch, tile.head_of(lane), tile.row_of(lane), keys.key);
        };
        if (a.bias.data != nullptr) {
            const T* const bias = static_cast<const T*>(a.bias.data) + first(a.bias);
            for (std::int64_t j = 0; j < keys.count; ++j)
                scores[j * step] += bias[j * a.bias.step[3]];
        }
        if (a.mask.data != nullptr) {
            const bool* const mask = static_cast<const bool*>(a.mask.data) + first(a.mask);
            for (std::int64_t j = 0; j < keys.count; ++j)
                if (!mask[j * a.mask.step[3]]) scores[j * step] = -infinity;
        }
    }
    // Adds the bias to scores, and sets those of hidden keys to -inf.
    CATENA_KERNEL static void hide(const AttentionCase& a, const Tile& tile, const KeyBlock& keys,
                                   T* scores) {
        for (std::int64_t i = keys.left; i < std::min(keys.right, tile.lanes); ++i)
            mask_lane(a, tile, keys, i, scores + i, lanes);
        if (tile.sees_all(keys.key, keys.count)) return;
        std::int32_t first[lanes], end[lanes];
        const auto place = [&](std::int64_t key) CATENA_LAMBDA {
            return static_cast<std::int32_t>(std::clamp(key - keys.key, std::int64_t{0}, block));
        };
        for (std::int64_t i = keys.left; i < keys.right; ++i) {
            first[i] = place(tile.first_key[i]);
            end[i] = place(tile.end_key[i]);
        }
        for (std::int64_t j = 0; j < keys.count; ++j) {
            T* const row = scores + j * lanes;
            const auto at = static_cast<std::int32_t>(j);
            for (std::int64_t i = keys.left; i < keys.right; i += 16) {
                CATENA_LOOP
                for (std::int64_t l = i; l < i + 16; ++l)
                    row[l] = (at >= first[l]) & (at < end[l]) ? row[l] : -infinity;
            }
        }
    }

    // Multiplies the weights of a block, or their gradients, by the factors of dropout.
    CATENA_KERNEL static void drop(const Tensors& x, const Tile& tile, const KeyBlock& keys,
                                   T* weights) {
        if (!x.draws.any) return;
        const std::uint32_t limit = x.draws.limit;
        const T scale = static_cast<T>(x.draws.scale);
        for (std::int64_t j = 0; j < keys.count; j += 4)
            for (std::int64_t h = 0; h < tile.heads; ++h) {
                std::uint32_t word[4][philox_lanes];
                philox(x.draws.seed,
                       x.draws.block(x.a, tile.batch, tile.head + h, tile.first, keys.key + j),
                       word);
                for (std::int64_t r = j; r < std::min(j + 4, keys.count); ++r) {
                    const std::uint32_t* const drawn = word[r - j];
                    T* const row = weights + r * lanes + h * tile.count;
                    CATENA_LOOP
                    for (std::int64_t i = 0; i < tile.count; ++i)
                        row[i] = drawn[i] < limit ? T(0) : row[i] * scale;
                }
            }
    }

    // -- forward

    static KeyParts parts(const AttentionCase& a, const QueryTiles<T>& tiles) {
        return {a, a.b * a.hk * tiles.count, 256, 64};
    }
    // Sums of a part of the keys: `width` lanes of sums, the largest score, and the total.
    static std::int64_t partial_size(const AttentionCase& a) {
        return (Scratch::padded(a.e) + 2) * lanes;
    }
    static std::int64_t forward_scratch(const AttentionCase& a, std::int64_t slots) {
        const QueryTiles<T> tiles(a);
        const KeyParts split = parts(a, tiles);
        std::int64_t bytes = slots * Scratch(a, false).blocks.bytes();
        if (split.count > 1)
            bytes += a.b * a.hk * tiles.count * split.count * partial_size(a) *
                     static_cast<std::int64_t>(sizeof(T));
        return bytes;
    }

    static void forward(catena_ctx* ctx, const Tensors& x) {
        const AttentionCase& a = x.a;
        const QueryTiles<T> tiles(a);
        const KeyParts split = parts(a, tiles);
        const std::int64_t each = Scratch(a, false).blocks.bytes();
        T* const partial = reinterpret_cast<T*>(x.scratch + host().slots(ctx) * each);
        const std::int64_t n = a.b * a.hk * tiles.count;
        const std::int64_t work =
            std::max<std::int64_t>(lanes * std::min(split.size, a.s) * (a.d + a.e) / 4, 1);
        parallel<isa>(
            ctx, n * split.count, work,
            [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
                Scratch scratch(a, false, x.scratch + slot * each);
                for (std::int64_t i = begin; i < end; ++i) {
                    const std::int64_t part = i % split.count, index = i / split.count;
                    const Tile tile = tiles.tile(a, index / tiles.count / a.hk,
                                                 index / tiles.count % a.hk, index % tiles.count);
                    if (split.count > 1) {
                        T* const to = partial + i * partial_size(a);
                        scratch.sums = to;
                        scratch.most = to + Scratch::padded(a.e) * lanes;
                        scratch.total = scratch.most + lanes;
                    }
                    attend(x, tile, part * split.size, (part + 1) * split.size, scratch);
                    if (split.count == 1) finish(x, tile, scratch);
                }
            });
        if (split.count == 1) return;
        parallel<isa>(ctx, n, lanes * a.e * split.count,
                      [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
                          Scratch scratch(a, false, x.scratch + slot * each);
                          for (std::int64_t i = begin; i < end; ++i) {
                              const Tile tile =
                                  tiles.tile(a, i / tiles.count / a.hk, i / tiles.count % a.hk,
                                             i % tiles.count);
                              join(x, tile, partial + i * split.count * partial_size(a),
                                   split.count, scratch);
                              finish(x, tile, scratch);
                          }
                      });
    }

    // Sets most, total and sums of a tile for the keys [from, to).
    CATENA_KERNEL static void attend(const Tensors& x, const Tile& tile, std::int64_t from,
                                     std::int64_t to, Scratch& scratch) {
        const AttentionCase& a = x.a;
        T *const most = scratch.most, *const total = scratch.total, *const factors = scratch.factors;
        std::fill_n(most, tile.width, -infinity);
        std::fill_n(total, tile.width, T(0));
        for (std::int64_t e = 0; e < a.e; ++e) std::fill_n(scratch.sums + e * lanes, tile.width, T(0));
        if (std::max(from, tile.least_first) >= std::min(to, tile.most_end)) return;
        gather(tile, x.q, a.q, a.d, static_cast<T>(a.scale), scratch.rows);
        if (tile.lanes <= few && !x.draws.any) return attend_few(x, tile, from, to, scratch);
        to_columns(tile, scratch.rows, a.d, scratch.q);
        for_each_block(tile, from, to, [&](const KeyBlock& keys) CATENA_LAMBDA {
            T* const scores = scratch.scores;
            prefetch(a, tile, x.v, a.v, a.e, keys.key, keys.count);
            prefetch(a, tile, x.k, a.k, a.d, keys.key + keys.count, block);
            dot(tile, keys, x.k, a.k, a.group, a.d, scratch.q, scores);
            hide(a, tile, keys, scores);
            const std::int64_t rows = (keys.count + 3) / 4 * 4;  // four rows at a time
            for (std::int64_t j = keys.count; j < rows; ++j)
                std::fill_n(scores + j * lanes, lanes, -infinity);
            for (std::int64_t i = keys.left; i < keys.right; i += 16)
                soften(scores + i, rows, most + i, total + i, factors + i);
            drop(x, tile, keys, scores);
            weigh(tile, keys, x.v, a.v, a.group, a.e, scores, factors, scratch.sums);
        });
    }
    // The same for a few queries, as when a model generates text: the keys are read once, so their
    // rows are what is vectorized.
    static constexpr std::int64_t few = 4;
    CATENA_KERNEL static void attend_few(const Tensors& x, const Tile& tile, std::int64_t from,
                                         std::int64_t to, Scratch& scratch) {
        const AttentionCase& a = x.a;
        const std::int64_t dq = Scratch::padded(a.d), dv = Scratch::padded(a.e);
        const std::int64_t head = tile.head / a.group;
        const T* const k = x.k + tile.batch * a.k.batch + head * a.k.head;
        const T* const v = x.v + tile.batch * a.v.batch + head * a.v.head;
        T *const q = scratch.rows, *const scores = scratch.scores;
        T* const sums = scratch.rows + 16 * Scratch::padded(std::max(a.d, a.e));
        std::fill_n(sums, tile.width * dv, T(0));
        for_each_block(tile, from, to, [&](const KeyBlock& keys) CATENA_LAMBDA {
            prefetch(a, tile, x.v, a.v, a.e, keys.key, keys.count);
            const std::int64_t n = (keys.count + 15) / 16 * 16;
            for (std::int64_t i = 0; i < tile.lanes; ++i) {
                dot_with_rows<T, isa>({.m = keys.count,
                                       .n = a.d,
                                       .x = q + i * dq,
                                       .a = k + keys.key * a.k.row,
                                       .step = a.k.row,
                                       .factor = T(0),
                                       .y = scores});
                mask_lane(a, tile, keys, i, scores, 1);
                const std::int64_t first = std::max(tile.first_key[i] - keys.key, std::int64_t{0});
                const std::int64_t end = std::min(tile.end_key[i] - keys.key, keys.count);
                for (std::int64_t j = 0; j < std::min(first, n); ++j) scores[j] = -infinity;
                for (std::int64_t j = std::max(end, std::int64_t{0}); j < n; ++j)
                    scores[j] = -infinity;
                const T top = larger(scratch.most[i], max_of(scores, n));
                const T by = top == -infinity ? T(0) : top;
                const T factor = exp_of_difference(scratch.most[i] - by);
                for (std::int64_t j = 0; j < n; j += 16) {
                    CATENA_LOOP
                    for (std::int64_t l = j; l < j + 16; ++l)
                        scores[l] = exp_of_difference(scores[l] - by);
                }
                const T sum =
                    sum_lanes<T>(n, [&](std::int64_t j) CATENA_LAMBDA { return scores[j]; });
                scratch.total[i] = scratch.total[i] * factor + sum;
                scratch.most[i] = top;
                add_rows<T, isa>({.m = keys.count,
                                  .n = a.e,
                                  .x = scores,
                                  .a = v + keys.key * a.v.row,
                                  .step = a.v.row,
                                  .factor = factor,
                                  .y = sums + i * dv});
            }
        });
        to_columns(tile, sums, a.e, scratch.sums);
    }
    // Replaces 16 columns of scores by e^(score - most), where `most` becomes the largest score so
    // far, and adds them to total. factors: what multiplies earlier sums.
    CATENA_KERNEL static void soften(T* scores, std::int64_t rows, T* most, T* total, T* factors) {
        T top[16], by[16], sum[16];
        for (std::int64_t l = 0; l < 16; ++l) top[l] = most[l];
        for (std::int64_t j = 0; j < rows; j += 4) {
            const T* const s = scores + j * lanes;
            CATENA_LOOP
            for (std::int64_t l = 0; l < 16; ++l) {
                const T one = larger(s[l], s[lanes + l]);
                const T two = larger(s[2 * lanes + l], s[3 * lanes + l]);
                top[l] = larger(top[l], larger(one, two));
            }
        }
        CATENA_LOOP
        for (std::int64_t l = 0; l < 16; ++l) by[l] = top[l] == -infinity ? T(0) : top[l];
        CATENA_LOOP
        for (std::int64_t l = 0; l < 16; ++l) factors[l] = exp_of_difference(most[l] - by[l]);
        for (std::int64_t l = 0; l < 16; ++l) most[l] = top[l], sum[l] = T(0);
        for (std::int64_t j = 0; j < rows; j += 4) {
            T* const s = scores + j * lanes;
            CATENA_LOOP
            for (std::int64_t l = 0; l < 16; ++l) {
                const T p0 = exp_of_difference(s[l] - by[l]);
                const T p1 = exp_of_difference(s[lanes + l] - by[l]);
                const T p2 = exp_of_difference(s[2 * lanes + l] - by[l]);
                const T p3 = exp_of_difference(s[3 * lanes + l] - by[l]);
                s[l] = p0, s[lanes + l] = p1, s[2 * lanes + l] = p2, s[3 * lanes + l] = p3;
                sum[l] += (p0 + p1) + (p2 + p3);
            }
        }
        for (std::int64_t l = 0; l < 16; ++l) total[l] = total[l] * factors[l] + sum[l];
    }
    CATENA_KERNEL static T larger(T a, T b) { return a > b ? a : b; }
    // Joins the results for all parts of the keys.
    CATENA_KERNEL static void join(const Tensors& x, const Tile& tile, const T* partial,
                                   std::int64_t n, Scratch& scratch) {
        const AttentionCase& a = x.a;
        T *const most = scratch.most, *const total = scratch.total, *const factors = scratch.factors;
        std::fill_n(most, tile.width, -infinity);
        std::fill_n(total, tile.width, T(0));
        for (std::int64_t e = 0; e < a.e; ++e) std::fill_n(scratch.sums + e * lanes, tile.width, T(0));
        for (std::int64_t part = 0; part < n; ++part) {
            const T* const top = partial + (part + 1) * partial_size(a) - 2 * lanes;
            for (std::int64_t i = 0; i < tile.width; ++i)
                most[i] = most[i] > top[i] ? most[i] : top[i];
        }
        for (std::int64_t part = 0; part < n; ++part) {
            const T* const sums = partial + part * partial_size(a);
            const T* const top = sums + partial_size(a) - 2 * lanes;
            for (std::int64_t i = 0; i < tile.width; ++i) {
                factors[i] = exp_of_difference(top[i] - (most[i] == -infinity ? T(0) : most[i]));
                total[i] += factors[i] * top[lanes + i];
            }
            for (std::int64_t e = 0; e < a.e; ++e) {
                CATENA_LOOP
                for (std::int64_t i = 0; i < tile.width; ++i)
                    scratch.sums[e * lanes + i] += factors[i] * sums[e * lanes + i];
            }
        }
    }
    // Stores the results of a tile. A query without keys has y = 0 and lse = inf, so that
    // e^(score - lse) is 0 in backward.
    CATENA_KERNEL static void finish(const Tensors& x, const Tile& tile, const Scratch& scratch) {
        const AttentionCase& a = x.a;
        const std::int64_t step = Scratch::padded(a.e);
        to_rows(tile, scratch.sums, a.e, scratch.rows);
        T *const total = scratch.total, *const lse = scratch.most, *const factors = scratch.factors;
        for (std::int64_t i = 0; i < tile.width; i += 16) {
            CATENA_LOOP
            for (std::int64_t l = i; l < i + 16; ++l) {
                const bool none = total[l] == T(0);
                factors[l] = none ? T(0) : T(1) / total[l];
                lse[l] = none ? infinity : lse[l] + math::log(total[l]);
            }
        }
        for (std::int64_t i = 0; i < tile.lanes; ++i) {
            const T* const row = scratch.rows + i * step;
            const T factor = factors[i];
            T* const y = x.to + tile.at(a.y, i);
            CATENA_LOOP
            for (std::int64_t e = 0; e < a.e; ++e) store(y[e], x.add_y, row[e] * factor);
            store(x.lse[(tile.batch * a.h + tile.head_of(i)) * a.t + tile.row_of(i)], x.add_lse,
                  lse[i]);
        }
    }

    // -- backward

    static KeyParts backward_parts(const AttentionCase& a) { return {a, a.b * a.hk, 512, 8}; }
    static std::int64_t query_size(const AttentionCase& a) { return a.b * a.h * a.t * a.d; }
    static std::int64_t backward_scratch(const AttentionCase& a, std::int64_t slots) {
        const KeyParts split = backward_parts(a);
        std::int64_t bytes = slots * Scratch(a, true).blocks.bytes();
        if (split.count > 1)
            bytes += split.count * query_size(a) * static_cast<std::int64_t>(sizeof(T));
        return bytes;
    }

    static void backward(catena_ctx* ctx, const Tensors& x) {
        const AttentionCase& a = x.a;
        if (x.gbias != nullptr) of_bias(ctx, x);
        if (x.gq == nullptr && x.gk == nullptr && x.gv == nullptr) return;
        const QueryTiles<T> tiles(a);
        const KeyParts split = backward_parts(a);
        const std::int64_t each = Scratch(a, true).blocks.bytes();
        // Gradients of queries: one for each part of the keys, or the result itself.
        const std::int64_t size = query_size(a);
        T* const partial = split.count > 1
                               ? reinterpret_cast<T*>(x.scratch + host().slots(ctx) * each)
                               : x.gq;
        if (x.gq != nullptr && (split.count > 1 || !x.add_q))
            parallel<isa>(ctx, split.count * size, 1,
                          [&](std::int64_t begin, std::int64_t end)
                              CATENA_LAMBDA { std::fill(partial + begin, partial + end, T(0)); });
        parallel<isa>(
            ctx, a.b * a.hk * split.count,
            std::max<std::int64_t>(a.group * a.t * std::min(split.size, a.s) * (a.d + a.e) / 2, 1),
            [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
                const Scratch scratch(a, true, x.scratch + slot * each);
                std::fill_n(scratch.ones,
                            std::max({Scratch::padded(a.d), Scratch::padded(a.e), lanes}), T(1));
                for (std::int64_t i = begin; i < end; ++i) {
                    const std::int64_t part = i % split.count, index = i / split.count;
                    const std::int64_t last = std::min(a.s, (part + 1) * split.size);
                    T* const gq = x.gq == nullptr ? nullptr : partial + part * size;
                    for (std::int64_t key = part * split.size; key < last; key += scratch.chunk)
                        spread_back(x, tiles, index / a.hk, index % a.hk, key,
                                    std::min(last, key + scratch.chunk), gq, scratch);
                }
            });
        if (split.count == 1 || x.gq == nullptr) return;
        parallel<isa>(ctx, size, split.count,
                      [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                          for (std::int64_t part = 1; part < split.count; ++part) {
                              const T* const from = partial + part * size;
                              CATENA_LOOP
                              for (std::int64_t i = begin; i < end; ++i) partial[i] += from[i];
                          }
                          CATENA_LOOP
                          for (std::int64_t i = begin; i < end; ++i)
                              store(x.gq[i], x.add_q, partial[i]);
                      });
    }

    // Adds the gradients of the scores to that of the bias. Threads have their own elements of it.
    static void of_bias(catena_ctx* ctx, const Tensors& x) {
        const AttentionCase& a = x.a;
        const QueryTiles<T> tiles(a, false);
        const std::int64_t each = Scratch(a, true).blocks.bytes();
        const auto extent = [&](std::size_t axis, std::int64_t n) {
            return a.bias.step[axis] == 0 ? std::min<std::int64_t>(n, 1) : n;
        };
        const std::int64_t n_batches = extent(0, a.b), n_heads = extent(1, a.h);
        const std::int64_t size = a.bias.step[3] == 0 ? a.s : block;
        const std::int64_t n_blocks = size == 0 ? 0 : (a.s + size - 1) / size;
        const std::int64_t work = a.b / std::max<std::int64_t>(n_batches, 1) * a.h /
                                  std::max<std::int64_t>(n_heads, 1) * a.t * size * (a.d + a.e);
        parallel<isa>(
            ctx, n_batches * n_heads * n_blocks, std::max<std::int64_t>(work, 1),
            [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
                const Scratch scratch(a, true, x.scratch + slot * each);
                for (std::int64_t i = begin; i < end; ++i) {
                    const std::int64_t from = i % n_blocks * size;
                    const std::int64_t head = i / n_blocks % n_heads;
                    const std::int64_t batch = i / n_blocks / n_heads;
                    for (std::int64_t b = batch; b < a.b; b += n_batches)
                        for (std::int64_t h = head; h < a.h; h += n_heads)
                            for (std::int64_t t = 0; t < tiles.by_head; ++t)
                                add_to_bias(x,
                                            tiles.tile(a, b, h / a.group,
                                                       h % a.group * tiles.by_head + t),
                                            from, std::min(a.s, from + size), scratch);
                }
            });
    }
    CATENA_KERNEL static void add_to_bias(const Tensors& x, const Tile& tile, std::int64_t from,
                                          std::int64_t to, const Scratch& scratch) {
        const AttentionCase& a = x.a;
        if (std::max(from, tile.least_first) >= std::min(to, tile.most_end)) return;
        load(x, tile, scratch);
        for_each_block(tile, from, to, [&](const KeyBlock& keys) CATENA_LAMBDA {
            differentiate(x, tile, keys, scratch);
            for (std::int64_t i = keys.left; i < std::min(keys.right, tile.lanes); ++i) {
                T* const row =
                    x.gbias + a.bias.at(tile.batch, tile.head, tile.row_of(i), keys.key);
                for (std::int64_t j = 0; j < keys.count; ++j)
                    row[j * a.bias.step[3]] += scratch.of_scores[j * lanes + i];
            }
        });
    }
    // Loads queries and output gradients of a tile, lse and mean of gy y.
    CATENA_KERNEL static void load(const Tensors& x, const Tile& tile, const Scratch& scratch) {
        const AttentionCase& a = x.a;
        const T scale = static_cast<T>(a.scale);
        gather(tile, x.q, a.q, a.d, scale, scratch.q_rows);
        gather(tile, x.gy, a.y, a.e, T(1), scratch.gy_rows);
        to_columns(tile, scratch.q_rows, a.d, scratch.q);
        to_columns(tile, scratch.gy_rows, a.e, scratch.gy);
        for (std::int64_t i = 0; i < tile.width; ++i) {
            scratch.most[i] = infinity, scratch.total[i] = T(0);
            if (i >= tile.lanes) continue;
            scratch.most[i] =
                x.lse[(tile.batch * a.h + tile.head_of(i)) * a.t + tile.row_of(i)];
            const T* const gy = x.gy + tile.at(a.y, i);
            const T* const y = x.y + tile.at(a.y, i);
            scratch.total[i] =
                sum_lanes<T>(a.e, [&](std::int64_t e) CATENA_LAMBDA { return gy[e] * y[e]; });
        }
        for (std::int64_t d = 0; d < a.d; ++d) std::fill_n(scratch.sums + d * lanes, tile.width, T(0));
    }
    // Sets `scores` to the weights of a block, after dropout, and `of_scores` to the gradients of
    // the scores.
    CATENA_KERNEL static void differentiate(const Tensors& x, const Tile& tile,
                                            const KeyBlock& keys, const Scratch& scratch) {
        const AttentionCase& a = x.a;
        T *const p = scratch.scores, *const g = scratch.of_scores;
        dot(tile, keys, x.k, a.k, a.group, a.d, scratch.q, p);
        hide(a, tile, keys, p);
        dot(tile, keys, x.v, a.v, a.group, a.e, scratch.gy, g);
        drop(x, tile, keys, g);
        for (std::int64_t i = keys.left; i < keys.right; i += 16) {
            const T *const lse = scratch.most + i, *const mean = scratch.total + i;
            for (std::int64_t j = 0; j < keys.count; ++j) {
                T *const s = p + j * lanes + i, *const gs = g + j * lanes + i;
                CATENA_LOOP
                for (std::int64_t l = 0; l < 16; ++l) {
                    s[l] = exp_of_difference(s[l] - lse[l]);
                    gs[l] = s[l] * (gs[l] - mean[l]);
                }
            }
        }
        if (x.gv != nullptr) drop(x, tile, keys, p);
    }
    // Computes the gradients that go through the keys [from, to) of one head.
    CATENA_KERNEL static void spread_back(const Tensors& x, const QueryTiles<T>& tiles,
                                          std::int64_t batch, std::int64_t shared,
                                          std::int64_t from, std::int64_t to, T* gq,
                                          const Scratch& scratch) {
        const AttentionCase& a = x.a;
        const std::int64_t dk = Scratch::padded(a.d), dv = Scratch::padded(a.e);
        std::fill_n(scratch.gk, (to - from) * dk, T(0));
        std::fill_n(scratch.gv, (to - from) * dv, T(0));
        for (std::int64_t t = 0; t < tiles.count; ++t) {
            const Tile tile = tiles.tile(a, batch, shared, t);
            if (std::max(from, tile.least_first) >= std::min(to, tile.most_end)) continue;
            load(x, tile, scratch);
            for_each_block(tile, from, to, [&](const KeyBlock& keys) CATENA_LAMBDA {
                differentiate(x, tile, keys, scratch);
                const std::int64_t key = keys.key - from;
                if (x.gv != nullptr)
                    spread(tile, keys, scratch.scores, scratch.gy_rows, a.e, scratch.ones,
                           scratch.gv + key * dv);
                if (x.gk != nullptr)
                    spread(tile, keys, scratch.of_scores, scratch.q_rows, a.d, scratch.ones,
                           scratch.gk + key * dk);
                if (gq != nullptr)
                    weigh(tile, keys, x.k, a.k, a.group, a.d, scratch.of_scores, scratch.ones,
                          scratch.sums);
            });
            if (gq == nullptr) continue;
            const T scale = static_cast<T>(a.scale);
            to_rows(tile, scratch.sums, a.d, scratch.rows);
            for (std::int64_t i = 0; i < tile.lanes; ++i) {
                T* const row = gq + tile.at(a.q, i);
                const T* const sums = scratch.rows + i * Scratch::padded(a.d);
                CATENA_LOOP
                for (std::int64_t d = 0; d < a.d; ++d) row[d] += scale * sums[d];
            }
        }
        const auto put = [&](T* to_all, const HeadStrides& strides, std::int64_t size, bool add,
                             const T* sums) CATENA_LAMBDA {
            const std::int64_t step = Scratch::padded(size);
            T* row = to_all + batch * strides.batch + shared * strides.head + from * strides.row;
            for (std::int64_t j = from; j < to; ++j, row += strides.row, sums += step) {
                CATENA_LOOP
                for (std::int64_t d = 0; d < size; ++d) store(row[d], add, sums[d]);
            }
        };
        if (x.gk != nullptr) put(x.gk, a.k, a.d, x.add_k, scratch.gk);
        if (x.gv != nullptr) put(x.gv, a.v, a.e, x.add_v, scratch.gv);
    }
};

}  // namespace catena::plugins
