// The three products behind convolutions, on CUDA: images with filters, its adjoint, images with
// images. Each is a matrix product whose second factor is looked up in images on the way:
//
//     C (m x n) = sum over k of A (m x k) B (k x n)
//
//                  m         n                          k
//     convolve     outputs   pixels of y                taps of a filter
//     back         channels  pixels of x                outputs and the taps that meet the pixel
//     correlate    outputs   taps of a filter           pixels of y
//
// A block computes a tile of C, in steps of so many k; the next step's numbers are on their way while
// one is computed.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "convolution.hpp"

namespace catena::plugins {

enum class ImageProductKind : std::int32_t { convolve, back, correlate };

struct ImageProduct {
    static constexpr int tile_m = 64;
    static constexpr int tile_n = 128;
    static constexpr int depth = 16;  // k of a step

    // Where one k leads in A and B, and one n in B and C. An element of B lies within the image if the
    // sum of both y is at least 0 and below height, and so for x.
    struct alignas(16) Place {
        std::int64_t at;
        std::int32_t y, x;
    };

    std::int64_t images;  // at once
    std::int64_t a_row, out_row;
    std::int32_t m, k;  // k: of a class, at most
    std::int32_t height, width;
    ImageProductKind kind;
    std::int32_t first_class;
    std::int64_t per_split;  // k of each block's part
    // Of k: taps, or pixels, in one step of the outer number; and along a row. In `back` those differ
    // from class to class, by one: see Class.
    cuda::Divider<std::uint32_t> area[4], across[2];
    std::int32_t channels, h, w, outputs, oh, ow, kh, kw, stride_y, stride_x, pad_y, pad_x;

    // In `back`, pixels of x that meet the same taps: those whose y and x leave the same rest, divided
    // by the stride. Taps of a class lie a stride apart.
    struct Side {
        CATENA_FN Side(std::int32_t index, std::int32_t extent, std::int32_t stride,
                       std::int32_t pad, std::int32_t filter)
            : first_tap((index + pad) % stride),
              taps(first_tap < filter ? (filter - first_tap + stride - 1) / stride : 0),
              more(taps > filter / stride ? 1 : 0),
              pixels(index < extent ? (extent - index + stride - 1) / stride : 0),
              base((index + pad - first_tap) / stride) {}
        std::int32_t first_tap, taps, more, pixels;
        std::int32_t base;  // of y, for the first pixel and the first tap
    };
    struct Class {
        CATENA_FN Class(const ImageProduct& p, std::int32_t index)
            : row(index / p.class_columns()),
              column(index % p.class_columns()),
              y(row, p.h, p.stride_y, p.pad_y, p.kh),
              x(column, p.w, p.stride_x, p.pad_x, p.kw) {}
        std::int32_t row, column;
        Side y, x;
    };
    CATENA_FN std::int32_t class_columns() const {
        return w == 0 ? 1 : stride_x < w ? stride_x : w;
    }
    std::int64_t classes() const {
        const bool back = kind == ImageProductKind::back;
        return back ? std::int64_t{stride_y < h ? stride_y : h} * class_columns() : 1;
    }

    CATENA_FN std::int64_t n_of(const Class& c) const {
        switch (kind) {
            case ImageProductKind::convolve: return images * oh * ow;
            case ImageProductKind::back: return images * c.y.pixels * c.x.pixels;
            default: return std::int64_t{channels} * kh * kw;
        }
    }
    CATENA_FN std::int32_t k_of(const Class& c) const {
        return kind == ImageProductKind::back ? outputs * c.y.taps * c.x.taps : k;
    }
    // Where k leads in A (`a`), and in B.
    CATENA_FN Place place_of_k(const Class& c, std::uint32_t i, std::int64_t& a) const {
        const bool back = kind == ImageProductKind::back;
        const auto& by_area = area[back ? 2 * c.y.more + c.x.more : 0];
        const auto& by_row = across[back ? c.x.more : 0];
        const std::uint32_t outer = by_area.quotient(i);
        const std::uint32_t inside = i - outer * by_area.divisor();
        const std::uint32_t row = by_row.quotient(inside);
        const auto o = static_cast<std::int64_t>(outer);
        const auto y = static_cast<std::int32_t>(row);
        const auto x = static_cast<std::int32_t>(inside - row * by_row.divisor());
        switch (kind) {
            case ImageProductKind::convolve: a = i; return {(o * h + y) * w + x, y, x};
            case ImageProductKind::back:
                a = o * channels * kh * kw + (c.y.first_tap + y * stride_y) * kw + c.x.first_tap +
                    x * stride_x;
                return {(o * oh - y) * ow - x, -y, -x};
            default: a = (o * outputs * oh + y) * ow + x; return at_pixel(o, y, x);
        }
    }
    // Where n leads in B, and in C (`out`).
    CATENA_FN Place place_of_n(const Class& c, std::uint32_t i, std::int64_t& out) const {
        const bool back = kind == ImageProductKind::back;
        const bool n_is_taps = kind == ImageProductKind::correlate;
        const auto columns = static_cast<std::uint32_t>(n_is_taps ? kw : back ? c.x.pixels : ow);
        const auto rows = static_cast<std::uint32_t>(n_is_taps ? kh : back ? c.y.pixels : oh);
        const std::uint32_t line = i / columns;
        const auto o = static_cast<std::int64_t>(line / rows);
        const auto y = static_cast<std::int32_t>(line % rows);
        const auto x = static_cast<std::int32_t>(i % columns);
        if (n_is_taps) {
            out = i;
            return {(o * h + y) * w + x, y, x};
        }
        if (back) {
            out = (o * channels * h + c.row + std::int64_t{y} * stride_y) * w + c.column +
                  std::int64_t{x} * stride_x;
            const std::int32_t oy = c.y.base + y;
            const std::int32_t ox = c.x.base + x;
            return {(o * outputs * oh + oy) * ow + ox, oy, ox};
        }
        out = (o * outputs * oh + y) * ow + x;
        return at_pixel(o, y, x);
    }

    CATENA_FN static bool is_within(std::int32_t a, std::int32_t b, std::int32_t extent) {
        const auto sum = static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b);
        return sum < static_cast<std::uint32_t>(extent);
    }

private:
    // The first tap of the filter at a pixel of y.
    CATENA_FN Place at_pixel(std::int64_t image, std::int32_t oy, std::int32_t ox) const {
        const std::int32_t y = oy * stride_y - pad_y;
        const std::int32_t x = ox * stride_x - pad_x;
        return {(image * channels * h + y) * w + x, y, x};
    }
};

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

// What one launch counts at most; more goes in several. Variables, so that a test can make them small.
struct ImageProductLimits {
    static inline std::int64_t pixels = std::int64_t{1} << 30;
    static inline std::int64_t classes = 65535;  // blocks along z, and so along y
};

// What a kernel of 32 bits can count.
inline bool is_countable(const Convolution& c) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    constexpr std::int64_t most_m = std::int64_t{65535} * ImageProduct::tile_m;
    const auto fits = [&](std::int64_t a, std::int64_t b) { return times(a, b) < most; };
    return std::max(c.channels, c.outputs) <= most_m && fits(c.height, c.width) &&
           fits(c.oh, c.ow) && fits(c.channels, c.kh * c.kw) && fits(c.outputs, c.kh * c.kw) &&
           c.height + 2 * c.pad.y + c.kh + c.stride.y < most &&
           c.width + 2 * c.pad.x + c.kw + c.stride.x < most;
}

// Of some images.
inline ImageProduct image_product(const Convolution& c, ImageProductKind kind,
                                  std::int64_t images) {
    const auto narrow = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
    ImageProduct p;
    std::memset(static_cast<void*>(&p), 0, sizeof p);
    p.images = images;
    p.kind = kind;
    p.channels = narrow(c.channels), p.h = narrow(c.height), p.w = narrow(c.width);
    p.outputs = narrow(c.outputs), p.oh = narrow(c.oh), p.ow = narrow(c.ow);
    p.kh = narrow(c.kh), p.kw = narrow(c.kw);
    p.stride_y = narrow(c.stride.y), p.stride_x = narrow(c.stride.x);
    p.pad_y = narrow(c.pad.y), p.pad_x = narrow(c.pad.x);
    const bool back = kind == ImageProductKind::back;
    const bool k_is_taps = kind != ImageProductKind::correlate;
    p.m = back ? p.channels : p.outputs;
    p.k = narrow(!k_is_taps ? images * c.pixels() : c.channels * c.kh * c.kw);
    p.height = back ? p.oh : p.h;
    p.width = back ? p.ow : p.w;
    p.a_row = back ? c.kh * c.kw : k_is_taps ? c.taps() : c.pixels();
    p.out_row = back ? c.height * c.width : k_is_taps ? c.pixels() : c.taps();
    using Divider = cuda::Divider<std::uint32_t>;
    const auto divider = [](std::int64_t n) {
        return Divider(static_cast<std::uint32_t>(std::max<std::int64_t>(n, 1)));
    };
    for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t rows = !k_is_taps ? c.oh : !back ? c.kh : c.kh / c.stride.y + i / 2;
        const std::int64_t columns = !k_is_taps ? c.ow : !back ? c.kw : c.kw / c.stride.x + i % 2;
        p.area[i] = divider(rows * columns);
        p.across[i % 2] = divider(columns);
    }
    return p;
}

// Calls body(first, count) for images in parts that 32 bits can count.
template <class Body>
void for_each_part(const Convolution& c, const Body& body) {
    const std::int64_t most = std::max<std::int64_t>(
        ImageProductLimits::pixels / std::max({c.pixels(), c.height * c.width, std::int64_t{1}}),
        1);
    for (std::int64_t first = 0; first < c.n; first += most)
        body(first, std::min(most, c.n - first));
}
inline unsigned tiles(std::int64_t n, int tile) {
    return static_cast<unsigned>((n + tile - 1) / tile);
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
        const cuda::Operand in[] = {{nullptr, shape}};
        const auto round = [](std::uint64_t n) { return (n + 255) / 256 * 256; };
        partial_bytes = round(static_cast<std::uint64_t>(shape[0] * shape[1]) * sizeof(C));
        bytes = partial_bytes + cuda::sum_scratch<cuda::Copy<C, C>>(shape, in, first_axis);
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
        const cuda::Operand in[] = {{partial, room.shape}};
        cuda::sum(call.queue(), cuda::Copy<C, C>(), room.shape, in, 0, first_axis, gw,
                  add || first > 0, reinterpret_cast<char*>(partial) + room.partial_bytes);
    });
}

// gb = gy summed over all but its channels, or added to gb.
inline bool all_but_channels(std::size_t d) { return d != 1; }
template <class T>
std::uint64_t sum_channels_scratch(Shape gy) {
    const cuda::Operand in[] = {{nullptr, gy}};
    return cuda::sum_scratch<cuda::Copy<T, T>>(gy, in, all_but_channels);
}
template <class T>
void sum_channels_on_device(const auto& call, Tensor<const T> gy, T* gb, bool add) {
    const cuda::Operand in[] = {{gy.data, gy.shape}};
    cuda::sum(call.queue(), cuda::Copy<T, T>(), gy.shape, in, 0, all_but_channels, gb, add,
              call.template scratch<void>());
}

}  // namespace catena::plugins
