// The three products behind convolutions, on CUDA: see image_product.hpp. A block computes a tile of C, in
// steps of so many k; the next step's numbers are on their way while one is computed.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "image_product.hpp"

namespace catena::plugins {

// C, or with splits of k what each gives to it, from `partial` on: one after the other.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    image_product_kernel(const __grid_constant__ ImageProduct p, const T* a, const T* b,
                         const T* bias, T* out, cuda::Compute<T>* partial, bool add) {
    using C = cuda::Compute<T>;
    using P = ImageProduct;
    constexpr int m_each = 4;  // of C for each thread; and two groups of four n
    constexpr int a_each = P::tile_m * P::depth / cuda::block;
    constexpr int b_each = P::tile_n * P::depth / cuda::block;
    __shared__ P::Place columns[P::tile_n], steps[2][P::depth];
    __shared__ std::int64_t outs[P::tile_n], a_steps[2][P::depth];
    alignas(16) __shared__ C a_tile[P::depth][P::tile_m + 4];
    alignas(16) __shared__ C b_tile[P::depth][P::tile_n + 4];

    const bool split = partial != nullptr;
    const P::Class c(p, split ? 0 : p.first_class + static_cast<std::int32_t>(blockIdx.z));
    const std::int64_t n = p.n_of(c);
    const std::int64_t first_n = static_cast<std::int64_t>(blockIdx.x) * P::tile_n;
    if (first_n >= n) return;
    const std::int32_t first_m = static_cast<std::int32_t>(blockIdx.y) * P::tile_m;
    const std::int64_t first_k = split ? blockIdx.z * p.per_split : 0;
    const std::int64_t all_k = p.k_of(c);
    const std::int64_t last_k =
        split && first_k + p.per_split < all_k ? first_k + p.per_split : all_k;
    const int t = static_cast<int>(threadIdx.x);
    const auto no_place = P::Place{0, -(1 << 30), 0};  // within no image
    if (t < P::tile_n) {
        std::int64_t at = -1;
        columns[t] = no_place;
        if (first_n + t < n)
            columns[t] = p.place_of_n(c, static_cast<std::uint32_t>(first_n + t), at);
        outs[t] = at;
    }
    // Neighbours take what lies side by side: pixels as long as n are pixels, else k.
    const bool by_k = p.kind == ImageProductKind::correlate;
    const int b_k = by_k ? t % P::depth : t / P::tile_n;
    const int b_n = by_k ? t / P::depth : t % P::tile_n;
    const int b_k_step = by_k ? 0 : cuda::block / P::tile_n;
    const int b_n_step = by_k ? cuda::block / P::depth : 0;
    const int a_k = t % P::depth;
    const int a_m = t / P::depth;

    C from_a[a_each];
    C from_b[b_each];
    const auto find = [&](int turn, std::int64_t k) {
        if (t >= P::depth) return;
        std::int64_t at = -1;
        P::Place place = no_place;
        if (k + t < last_k) place = p.place_of_k(c, static_cast<std::uint32_t>(k + t), at);
        steps[turn][t] = place;
        a_steps[turn][t] = at;
    };
    const auto fetch = [&](int turn) {
        const std::int64_t a_at = a_steps[turn][a_k];
        CATENA_UNROLL
        for (int i = 0; i < a_each; ++i) {
            const std::int32_t row = first_m + a_m + i * (cuda::block / P::depth);
            from_a[i] = a_at >= 0 && row < p.m ? cuda::load_as<C>(a[row * p.a_row + a_at]) : C(0);
        }
        CATENA_UNROLL
        for (int i = 0; i < b_each; ++i) {
            const P::Place s = steps[turn][b_k + i * b_k_step];
            const P::Place f = columns[b_n + i * b_n_step];
            const bool within = P::is_within(s.y, f.y, p.height) && P::is_within(s.x, f.x, p.width);
            from_b[i] = within ? cuda::load_as<C>(b[s.at + f.at]) : C(0);
        }
    };
    C sums[m_each][8] = {};
    const int m0 = t / 16 * m_each;
    const int n0 = t % 16 * 4;
    const bool works = first_m + m0 < p.m && first_n + n0 < n;  // of the tile there is no more
    find(0, first_k);
    find(1, first_k + P::depth);
    __syncthreads();
    fetch(0);
    int turn = 0;
    for (std::int64_t k = first_k; k < last_k; k += P::depth) {
        CATENA_UNROLL
        for (int i = 0; i < a_each; ++i)
            a_tile[a_k][a_m + i * (cuda::block / P::depth)] = from_a[i];
        CATENA_UNROLL
        for (int i = 0; i < b_each; ++i) b_tile[b_k + i * b_k_step][b_n + i * b_n_step] = from_b[i];
        __syncthreads();
        find(turn, k + 2 * P::depth);
        turn = 1 - turn;
        fetch(turn);  // for the next step, while this one is computed
        if (works) {
            CATENA_UNROLL
            for (int d = 0; d < P::depth; ++d) {
                C left[m_each];
                C right[8];
                CATENA_UNROLL
                for (int i = 0; i < m_each; ++i) left[i] = a_tile[d][m0 + i];
                CATENA_UNROLL
                for (int j = 0; j < 4; ++j) {
                    right[j] = b_tile[d][n0 + j];
                    right[4 + j] = b_tile[d][P::tile_n / 2 + n0 + j];
                }
                CATENA_UNROLL
                for (int i = 0; i < m_each; ++i) {
                    CATENA_UNROLL
                    for (int j = 0; j < 8; ++j) sums[i][j] += left[i] * right[j];
                }
            }
        }
        __syncthreads();
    }

    CATENA_UNROLL
    for (int i = 0; i < m_each; ++i) {
        const std::int32_t row = first_m + m0 + i;
        if (row >= p.m) continue;
        const C more = bias != nullptr ? cuda::load_as<C>(bias[row]) : C(0);
        CATENA_UNROLL
        for (int j = 0; j < 8; ++j) {
            const std::int64_t at = outs[j / 4 * (P::tile_n / 2) + n0 + j % 4];
            if (at < 0) continue;
            const std::int64_t to = row * p.out_row + at;
            if (split) {
                partial[blockIdx.z * (p.m * p.out_row) + to] = sums[i][j];
            } else {
                const C value = sums[i][j] + more;
                out[to] = add ? cuda::stored_sum(out[to], value) : cuda::store_as<T>(value);
            }
        }
    }
}

template <class T>
void launch_image_product(const cuda::Queue& queue, ImageProduct p, const T* a, const T* b,
                          const T* bias, T* out, bool add) {
    const std::int64_t most = ImageProductLimits::classes;
    const std::int64_t n = p.n_of(ImageProduct::Class(p, 0));  // no class has more
    for (std::int64_t first = 0, all = p.classes(); first < all; first += most) {
        p.first_class = static_cast<std::int32_t>(first);
        const dim3 blocks(tiles(n, ImageProduct::tile_n), tiles(p.m, ImageProduct::tile_m),
                          static_cast<unsigned>(std::min(most, all - first)));
        queue.launch(&image_product_kernel<T>, blocks, cuda::block, p, a, b, bias, out,
                     static_cast<cuda::Compute<T>*>(nullptr), add);
    }
}

// y = x with w, plus bias (may be null), or added to y.
template <class T>
void convolve_on_device(const auto& call, const Convolution& c, const T* x, const T* w,
                        const T* bias, T* y, bool add) {
    if (c.n * c.outputs == 0) return;
    for_each_part(c, [&](std::int64_t first, std::int64_t count) {
        launch_image_product(call.queue(), image_product(c, ImageProductKind::convolve, count), w,
                             x + first * c.image(), bias, y + first * c.outputs * c.pixels(), add);
    });
}
// gx = the adjoint of convolve() for gy, plus bias for each channel (may be null), or added to gx.
template <class T>
void convolve_back_on_device(const auto& call, const Convolution& c, const T* gy, const T* w,
                             const T* bias, T* gx, bool add) {
    if (c.n * c.channels * c.height * c.width == 0) return;
    for_each_part(c, [&](std::int64_t first, std::int64_t count) {
        launch_image_product(call.queue(), image_product(c, ImageProductKind::back, count), w,
                             gy + first * c.outputs * c.pixels(), bias, gx + first * c.image(),
                             add);
    });
}

// The sums of a filter's gradient are many and its tiles few: pixels are split over blocks, whose
// sums are added up in order.
inline std::int64_t correlate_splits(const Convolution& c, std::int64_t images) {
    const std::int64_t blocks = std::int64_t{tiles(c.taps(), ImageProduct::tile_n)} *
                                tiles(c.outputs, ImageProduct::tile_m);
    constexpr std::int64_t enough = 1024;                    // blocks that keep any device busy
    constexpr std::int64_t worth = 8 * ImageProduct::depth;  // pixels of a split, at least
    const std::int64_t useful = images * c.pixels() / worth;
    return std::clamp<std::int64_t>(std::min(enough / blocks, useful), 1, enough);
}
inline bool first_axis(std::size_t d) { return d == 0; }
template <class C>
struct CorrelateScratch {
    CorrelateScratch(const Convolution& c, std::int64_t images)
        : splits(correlate_splits(c, images)), shape{splits, c.outputs * c.taps()} {
        const auto round = [](std::uint64_t n) { return (n + 255) / 256 * 256; };
        partial_bytes = round(static_cast<std::uint64_t>(shape[0] * shape[1]) * sizeof(C));
        bytes = partial_bytes + cuda::sum_scratch<C>(Shape(shape), first_axis);
    }
    std::int64_t splits;
    std::int64_t shape[2];
    std::uint64_t partial_bytes, bytes;
};
template <class T>
std::uint64_t correlate_scratch(const Convolution& c) {
    std::uint64_t bytes = 0;
    if (c.outputs * c.taps() == 0) return bytes;
    for_each_part(c, [&](std::int64_t, std::int64_t count) {
        bytes = std::max(bytes, CorrelateScratch<cuda::Compute<T>>(c, count).bytes);
    });
    return bytes;
}
// gw = the gradient of convolve() for w, or added to gw.
template <class T>
void correlate_on_device(const auto& call, const Convolution& c, const T* x, const T* gy, T* gw,
                         bool add) {
    using C = cuda::Compute<T>;
    if (c.outputs * c.taps() == 0) return;
    if (c.n == 0) {
        if (!add) call.queue().zero(gw, static_cast<std::size_t>(c.outputs * c.taps()) * sizeof(T));
        return;
    }
    for_each_part(c, [&](std::int64_t first, std::int64_t count) {
        const CorrelateScratch<C> room(c, count);
        ImageProduct p = image_product(c, ImageProductKind::correlate, count);
        p.per_split = (p.k + room.splits - 1) / room.splits;
        C* const partial = call.template scratch<C>();
        const dim3 blocks(tiles(c.taps(), ImageProduct::tile_n), tiles(p.m, ImageProduct::tile_m),
                          static_cast<unsigned>(room.splits));
        call.launch(&image_product_kernel<T>, blocks, cuda::block, p,
                    gy + first * c.outputs * c.pixels(), x + first * c.image(),
                    static_cast<const T*>(nullptr), static_cast<T*>(nullptr), partial, false);
        cuda::sum(call.queue(), Tensor<const C>{partial, room.shape}, first_axis, gw,
                  add || first > 0, reinterpret_cast<char*>(partial) + room.partial_bytes);
    });
}

// gb = gy summed over all but its channels, or added to gb.
inline bool all_but_channels(std::size_t d) { return d != 1; }
template <class T>
std::uint64_t sum_channels_scratch(Shape gy) {
    return cuda::sum_scratch<T>(gy, all_but_channels);
}
template <class T>
void sum_channels_on_device(const auto& call, Tensor<const T> gy, T* gb, bool add) {
    cuda::sum(call.queue(), gy, all_but_channels, gb, add, call.template scratch<void>());
}

}  // namespace catena::plugins
