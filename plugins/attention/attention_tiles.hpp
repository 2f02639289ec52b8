// Tiles of queries for attention on the CPU. A tile is stored with its queries as columns, so that
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
        rounded = a.rounded;
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
    bool rounded;
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

    // Tile i of all batches and heads.
    QueryTile<T> tile(const AttentionCase& a, std::int64_t i) const {
        return tile(a, i / count / a.hk, i / count % a.hk, i % count);
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

// The steps of forward and backward for a tile of queries and a block of keys.
template <class T, Isa isa>
struct AttentionTile {
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
    // of 16; at the edges of what queries see, they are smaller, to compute fewer masked scores.
    CATENA_KERNEL static void for_each_block(const Tile& tile, std::int64_t from, std::int64_t to,
                                             const auto& body) {
        constexpr std::int64_t small = 16;
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
                               .factors = nullptr},
                              tile.rounded);
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
                               .factors = factors + keys.left},
                              tile.rounded);
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
                               .factors = ones},
                              tile.rounded);
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
};

}  // namespace catena::plugins
