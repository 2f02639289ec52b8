// Attention on the CPU.
#pragma once

#include "attention_tiles.hpp"

namespace catena::plugins {

template <class T, Isa isa>
struct AttentionOnCpu : AttentionTile<T, isa> {
    using Tensors = AttentionTensors<T>;
    using Tile = QueryTile<T>;
    using Scratch = AttentionScratch<T>;
    using Base = AttentionTile<T, isa>;
    using Base::block, Base::infinity, Base::lanes;
    using Base::dot, Base::drop, Base::for_each_block, Base::gather, Base::hide, Base::mask_lane,
        Base::prefetch, Base::spread, Base::to_columns, Base::to_rows, Base::weigh;
    using typename Base::KeyBlock;

    // -- forward

    static KeyParts parts(const AttentionCase& a, const QueryTiles<T>& tiles) {
        return {a, a.b * a.hk * tiles.count, 256, 64};
    }
    // Elements for a part of the keys: sums, largest scores, totals.
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
        parallel<isa>(ctx, n * split.count, work,
                      [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
                          Scratch scratch(a, false, x.scratch + slot * each);
                          for (std::int64_t i = begin; i < end; ++i) {
                              const std::int64_t part = i % split.count;
                              const Tile tile = tiles.tile(a, i / split.count);
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
                              const Tile tile = tiles.tile(a, i);
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
        T *const most = scratch.most, *const total = scratch.total,
                 *const factors = scratch.factors;
        std::fill_n(most, tile.width, -infinity);
        std::fill_n(total, tile.width, T(0));
        std::fill_n(scratch.sums, a.e * lanes, T(0));
        if (std::max(from, tile.least_first) >= std::min(to, tile.most_end)) return;
        gather(tile, x.q, a.q, a.d, static_cast<T>(a.scale), scratch.rows);
        if (tile.lanes <= few && !x.draws.any) return attend_few(x, tile, from, to, scratch);
        to_columns(tile, scratch.rows, a.d, scratch.q);
        for_each_block(tile, from, to, [&](const KeyBlock& keys) CATENA_LAMBDA {
            T* const scores = scratch.scores;
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
    // The same for a few queries, as when a model generates text: vectorized along the rows of the
    // keys, which are read once.
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
    // Updates `most`, the largest scores so far, for 16 columns. Replaces scores by
    // e^(score - most), and adds them to total. factors: the factors of earlier sums.
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
        T *const most = scratch.most, *const total = scratch.total,
                 *const factors = scratch.factors;
        std::fill_n(most, tile.width, -infinity);
        std::fill_n(total, tile.width, T(0));
        std::fill_n(scratch.sums, a.e * lanes, T(0));
        for (std::int64_t part = 0; part < n; ++part) {
            const T* const top = partial + (part + 1) * partial_size(a) - 2 * lanes;
            for (std::int64_t i = 0; i < tile.width; ++i) most[i] = larger(most[i], top[i]);
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
        T* const partial =
            split.count > 1 ? reinterpret_cast<T*>(x.scratch + host().slots(ctx) * each) : x.gq;
        const bool add = split.count == 1 && x.add_q;
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
                    std::int64_t key = part * split.size;
                    do {  // once even without keys, because each part of gq must be set
                        spread_back(x, tiles, index / a.hk, index % a.hk, key,
                                    std::min(last, key + scratch.chunk), gq,
                                    add || key > part * split.size, scratch);
                        key += scratch.chunk;
                    } while (key < last);
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
        parallel<isa>(ctx, n_batches * n_heads * n_blocks, std::max<std::int64_t>(work, 1),
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
                T* const row = x.gbias + a.bias.at(tile.batch, tile.head, tile.row_of(i), keys.key);
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
            scratch.most[i] = x.lse[(tile.batch * a.h + tile.head_of(i)) * a.t + tile.row_of(i)];
            const T* const gy = x.gy + tile.at(a.y, i);
            const T* const y = x.y + tile.at(a.y, i);
            scratch.total[i] =
                sum_lanes<T>(a.e, [&](std::int64_t e) CATENA_LAMBDA { return gy[e] * y[e]; });
        }
        std::fill_n(scratch.sums, a.d * lanes, T(0));
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
                                          std::int64_t from, std::int64_t to, T* gq, bool add_q,
                                          const Scratch& scratch) {
        const AttentionCase& a = x.a;
        const std::int64_t dk = Scratch::padded(a.d), dv = Scratch::padded(a.e);
        std::fill_n(scratch.gk, (to - from) * dk, T(0));
        std::fill_n(scratch.gv, (to - from) * dv, T(0));
        for (std::int64_t t = 0; t < tiles.count; ++t) {
            const Tile tile = tiles.tile(a, batch, shared, t);
            const bool any = std::max(from, tile.least_first) < std::min(to, tile.most_end);
            if (!any && (gq == nullptr || add_q)) continue;
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
                for (std::int64_t d = 0; d < a.d; ++d) store(row[d], add_q, scale * sums[d]);
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
