// Windows over images, on CUDA: what each of them takes, and what each pixel takes from those that
// cover it. Both gather, in a fixed order: nothing is written by two threads.
#pragma once

#include <catena/plugin/cuda/launch.cuh>
#include <catena/plugin/cuda/pack.cuh>

#include "windows.hpp"

namespace catena::plugins {

// Coordinates of images this small, padding and all, fit in 32 bits.
inline bool is_small(const Windows& w) {
    constexpr std::int64_t most = 1 << 28;
    const auto small = [](const Side& s) {
        return std::max({s.extent, s.ksize, s.stride, s.pad}) <= most;
    };
    return small(w.y) && small(w.x);
}

// A rule says what windows take of the image:
//
//     using Value = float;                     // what is computed in
//     struct State;                            // of a window, or of a lane's part of it
//     State begin(std::uint32_t cell) const;   // with the first cell, or no_cell
//     state.take(value, cell); state.join(other);
//     void store(std::int64_t window, const State&) const;
inline constexpr std::uint32_t no_cell = ~std::uint32_t{0};

// Small square windows: a thread for each, all cells at once.
template <class Rule, class T, int k>
__global__ void __launch_bounds__(cuda::block)
    small_windows_kernel(const Windows w, const cuda::Box box, const T* x, const Rule rule) {
    using C = typename Rule::Value;
    const auto height = static_cast<int>(w.y.extent);
    const auto width = static_cast<int>(w.x.extent);
    for (std::uint32_t u = blockIdx.x * cuda::block + threadIdx.x; u < box.places;
         u += gridDim.x * cuda::block) {
        const auto o = box.locate(u);
        const int top =
            static_cast<int>(o.row) * static_cast<int>(w.y.stride) - static_cast<int>(w.y.pad);
        const int left =
            static_cast<int>(o.column) * static_cast<int>(w.x.stride) - static_cast<int>(w.x.pad);
        const std::int64_t corner =
            o.plane * w.image() + std::int64_t{top} * width + left;  // may lie outside
        const int first_y = top < 0 ? -top : 0;
        const int first_x = left < 0 ? -left : 0;
        const bool any =
            first_y < k && first_x < k && top + first_y < height && left + first_x < width;
        auto state = rule.begin(any ? static_cast<std::uint32_t>(first_y * k + first_x) : no_cell);
        C v[k][k];
        CATENA_UNROLL
        for (int i = 0; i < k; ++i) {
            const bool row = top + i >= 0 && top + i < height;
            CATENA_UNROLL
            for (int j = 0; j < k; ++j) {
                const bool within = row && left + j >= 0 && left + j < width;
                v[i][j] = within ? cuda::load_as<C>(x[corner + i * width + j]) : Rule::outside();
            }
        }
        CATENA_UNROLL
        for (int i = 0; i < k; ++i) {
            CATENA_UNROLL
            for (int j = 0; j < k; ++j) state.take(v[i][j], static_cast<std::uint32_t>(i * k + j));
        }
        rule.store((o.plane * w.y.count + o.row) * w.x.count + o.column, state);
    }
}

// Any windows: each is the work of some lanes of a block, a power of two of them.
template <class Rule, class T>
__global__ void __launch_bounds__(cuda::block)
    windows_kernel(const Windows w, const cuda::Box box, int lanes, const T* x, const Rule rule) {
    using C = typename Rule::Value;
    using State = typename Rule::State;
    __shared__ State shared[cuda::block];
    const auto t = static_cast<int>(threadIdx.x);
    const int lane = t & (lanes - 1);
    const auto groups = static_cast<std::uint32_t>(cuda::block / lanes);
    for (std::uint32_t u = blockIdx.x * groups; u < box.places; u += gridDim.x * groups) {
        const std::uint32_t own = u + static_cast<std::uint32_t>(t / lanes);
        const bool there = own < box.places;
        const auto o = box.locate(there ? own : 0);
        const std::int64_t first_y = w.y.first(o.row);
        const std::int64_t first_x = w.x.first(o.column);
        const std::int64_t width = w.x.last(o.column) - first_x;
        const std::int64_t height = there && width > 0 ? w.y.last(o.row) - first_y : 0;
        const std::int64_t corner = o.plane * w.image() +
                                    (o.row * w.y.stride - w.y.pad + first_y) * w.x.extent +
                                    (o.column * w.x.stride - w.x.pad + first_x);
        // Cells are counted row by row; a lane takes every so many of those within the image.
        const auto narrow = static_cast<int>(width > lanes ? lanes + 1 : width > 0 ? width : 1);
        const int down = lanes / narrow;
        const int right = lanes - down * narrow;
        std::int64_t i = lane / narrow;
        std::int64_t j = lane - i * narrow;
        const auto cell = [&] {
            return static_cast<std::uint32_t>((first_y + i) * w.x.ksize + first_x + j);
        };
        State state = rule.begin(i < height ? cell() : no_cell);
        while (i < height) {
            state.take(cuda::load_as<C>(x[corner + i * w.x.extent + j]), cell());
            i += down;
            j += right;
            if (j >= width) j -= width, ++i;
        }
        if (lanes > 1) {
            cuda::sync_lanes(lanes);  // what was there before has been read
            shared[t] = state;
            for (int half = lanes / 2; half > 0; half /= 2) {
                cuda::sync_lanes(lanes);
                if (lane < half) shared[t].join(shared[t + half]);
            }
            state = shared[t];
        }
        if (lane == 0 && there)
            rule.store((o.plane * w.y.count + o.row) * w.x.count + o.column, state);
    }
}

// Lanes for a window: one where neighbours share what they read, more where windows are large and far
// apart or few. Depends on nothing but the shape, so that results have the same bits everywhere.
inline int lanes_for(const Windows& w) {
    const std::int64_t width = std::min(w.x.ksize, w.x.extent);
    const std::int64_t cells = std::min(w.y.ksize, w.y.extent) * width;
    const bool many = w.planes * w.count() >= 65536;
    if (cells < 32 || (many && w.x.count >= 8 && w.x.stride <= 4)) return 1;
    std::int64_t lanes = 4;
    while (lanes < (many ? 32 : cuda::block) && 8 * lanes <= cells) lanes *= 2;
    return static_cast<int>(lanes);
}

template <class Rule, class T>
void take_windows(const auto& call, const Windows& w, const T* x, const Rule& rule) {
    const bool square = w.y.ksize == w.x.ksize && is_small(w);
    const int lanes = lanes_for(w);
    constexpr std::int64_t most = 1 << 30;
    const auto launch = [&](const cuda::Box& box) {
        if (square && w.x.ksize == 2)
            call.launch_for(box.places, &small_windows_kernel<Rule, T, 2>, w, box, x, rule);
        else if (square && w.x.ksize == 3)
            call.launch_for(box.places, &small_windows_kernel<Rule, T, 3>, w, box, x, rule);
        else
            call.launch_for(std::int64_t{box.places} * lanes, &windows_kernel<Rule, T>, w, box,
                            lanes, x, rule);
    };
    cuda::for_each_box(w.planes, w.y.count, w.x.count, launch, most / lanes);
}

// Windows along a side that cover a pixel: [first, last]. `at` counts from the padding's edge on.
template <class I>
struct Cover {
    using U = std::make_unsigned_t<I>;
    __device__ __forceinline__ Cover(const Side& side, const cuda::Divider<U>& by_stride, I at) {
        const auto ksize = static_cast<I>(side.ksize);
        const auto count = static_cast<I>(side.count);
        const auto reached = static_cast<I>(by_stride.quotient(static_cast<U>(at)));
        last = reached < count ? reached : count - 1;
        first = at < ksize ? I(0)
                           : static_cast<I>(by_stride.quotient(static_cast<U>(at - ksize))) + I(1);
    }
    I first, last;
};
template <class I>
struct Strides {
    using U = std::make_unsigned_t<I>;
    explicit Strides(const Windows& w)
        : y(static_cast<U>(w.y.stride)), x(static_cast<U>(w.x.stride)) {}
    cuda::Divider<U> y, x;
};

// Pixels that a thread takes: a pack of a row, or the same one of so many planes.
template <class T>
inline constexpr int pixels_width = cuda::pack_width<T>();

// gx = what pixels take from the windows that cover them, or added to it. A rule here has
// of(window, cell): what the window gives to its cell.
template <class Rule, class T, class I, bool packs>
__global__ void __launch_bounds__(cuda::block)
    pixels_kernel(const Windows w, const Strides<I> strides, const cuda::Box box, const Rule rule,
                  T* gx, bool add) {
    using C = typename Rule::Value;
    constexpr int n = pixels_width<T>;
    const auto stride_y = static_cast<I>(w.y.stride);
    const auto stride_x = static_cast<I>(w.x.stride);
    const auto ksize_x = static_cast<std::uint32_t>(w.x.ksize);
    for (std::uint32_t u = blockIdx.x * cuda::block + threadIdx.x; u < box.places;
         u += gridDim.x * cuda::block) {
        const auto place = box.locate(u);
        const auto at_y = static_cast<I>(place.row) + static_cast<I>(w.y.pad);
        const std::int64_t plane = packs ? place.plane : place.plane * n;
        const std::int64_t column = packs ? place.column * n : place.column;
        T* const to = gx + (plane * w.y.extent + place.row) * w.x.extent + column;
        const Cover<I> rows(w.y, strides.y, at_y);
        C v[n];
        CATENA_UNROLL
        for (int k = 0; k < n; ++k) {
            v[k] = 0;
            const std::int64_t own_plane = packs ? plane : plane + k;
            if (own_plane >= w.planes) continue;
            const I at_x = static_cast<I>(column) + (packs ? k : 0) + static_cast<I>(w.x.pad);
            const Cover<I> columns(w.x, strides.x, at_x);
            for (I oy = rows.first; oy <= rows.last; ++oy) {
                const std::int64_t line = (own_plane * w.y.count + oy) * w.x.count;
                std::uint32_t cell = static_cast<std::uint32_t>(at_y - oy * stride_y) * ksize_x +
                                     static_cast<std::uint32_t>(at_x - columns.first * stride_x);
                for (I ox = columns.first; ox <= columns.last; ++ox) {
                    v[k] += rule.of(line + ox, cell);
                    cell -= static_cast<std::uint32_t>(stride_x);
                }
            }
        }
        if constexpr (packs) {
            cuda::store(to, true, n, add, v);
        } else {
            CATENA_UNROLL
            for (int k = 0; k < n; ++k) {
                if (plane + k >= w.planes) continue;
                T& pixel = to[k * w.image()];
                pixel = add ? cuda::stored_sum(pixel, v[k]) : cuda::store_as<T>(v[k]);
            }
        }
    }
}

// small: a rule for coordinates of 32 bits; any: for all.
template <class T, class Small, class Any>
void give_pixels(const auto& call, const Windows& w, bool is_simple, const Small& small,
                 const Any& any, T* gx, bool add) {
    constexpr int n = pixels_width<T>;
    const auto launch = [&]<class Rule, class I, bool packs>(const Rule& rule, const Strides<I>& by,
                                                             std::bool_constant<packs>) {
        const std::int64_t planes = packs ? w.planes : (w.planes + n - 1) / n;
        const std::int64_t columns = packs ? w.x.extent / n : w.x.extent;
        cuda::for_each_box(planes, w.y.extent, columns, [&](const cuda::Box& box) {
            call.launch_for(box.places, &pixels_kernel<Rule, T, I, packs>, w, by, box, rule, gx,
                            add);
        });
    };
    const bool packs = w.x.extent % n == 0 && cuda::is_aligned<T, n>(gx);
    if (!is_simple) launch(any, Strides<std::int64_t>(w), std::false_type());
    else if (packs) launch(small, Strides<std::int32_t>(w), std::true_type());
    else launch(small, Strides<std::int32_t>(w), std::false_type());
}

}  // namespace catena::plugins
