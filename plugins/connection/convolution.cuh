// Convolutions on CUDA, as matrix products on im2col columns: a row for each tap of the filters,
// with its input element at each position. See convolution.hpp for the three products.
#pragma once

#include <catena/plugin/blas.hpp>
#include <catena/plugin/cuda/reduce.cuh>

#include "convolution_2d.hpp"
#include "convolution_2d_grad_w.hpp"
#include "deconvolution_2d.hpp"

namespace catena::plugins {

// Sets columns (taps, images and pixels of y) to the elements of x at the taps, and to 0 outside x.
template <class T>
struct ColumnsOf {
    ColumnsOf(const Convolution& of, const T* images, T* to) : c(of), x(images), columns(to) {
        const std::int64_t shape[] = {c.channels, c.kh, c.kw, c.n, c.oh, c.ow};
        const std::int64_t strides[][3] = {{c.height * c.width, 0, 0},
                                           {c.dilate_y * c.width, c.dilate_y, 0},
                                           {c.dilate_x, 0, c.dilate_x},
                                           {c.x_image(), 0, 0},
                                           {c.stride_y * c.width, c.stride_y, 0},
                                           {c.stride_x, 0, c.stride_x}};
        walk.build_strided(Shape(shape), strides);
    }
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        std::int64_t at[3];  // offset in x, row and column, from the padding's corner
        walk.locate(i, at);
        const std::int64_t row = at[1] - c.pad_y;
        const std::int64_t column = at[2] - c.pad_x;
        const bool within = row >= 0 && row < c.height && column >= 0 && column < c.width;
        columns[i] = within ? x[at[0] - c.pad_y * c.width - c.pad_x] : T{};
    }
    cuda::Walk<3> walk;
    Convolution c;
    const T* x;
    T* columns;
};

// Sets each element of x to the sum of its entries in columns plus bias (may be null), or adds it.
template <class T>
struct ImagesOf {
    using C = cuda::Compute<T>;
    static CATENA_FN std::int64_t first(std::int64_t at, std::int64_t size, std::int64_t stride) {
        return at < size ? 0 : (at - size) / stride + 1;
    }
    // The element of the filter that sees a pixel; -1 between two elements.
    static CATENA_FN std::int64_t tap_at(std::int64_t pixel, std::int64_t dilate) {
        return dilate == 1 ? pixel : pixel % dilate == 0 ? pixel / dilate : -1;
    }
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t channel = i / (c.height * c.width) % c.channels;
        const std::int64_t image = i / (c.height * c.width) / c.channels;
        const std::int64_t y = i / c.width % c.height + c.pad_y;
        const std::int64_t x = i % c.width + c.pad_x;
        const std::int64_t begin_y = first(y, (c.kh - 1) * c.dilate_y + 1, c.stride_y);
        const std::int64_t begin_x = first(x, (c.kw - 1) * c.dilate_x + 1, c.stride_x);
        C sum = 0;
        for (std::int64_t oy = begin_y; oy < c.oh && oy * c.stride_y <= y; ++oy) {
            const std::int64_t ky = tap_at(y - oy * c.stride_y, c.dilate_y);
            for (std::int64_t ox = begin_x; ky >= 0 && ox < c.ow && ox * c.stride_x <= x; ++ox) {
                const std::int64_t kx = tap_at(x - ox * c.stride_x, c.dilate_x);
                if (kx < 0) continue;
                const std::int64_t tap = (channel * c.kh + ky) * c.kw + kx;
                sum += cuda::load_as<C>(columns[((tap * c.n + image) * c.oh + oy) * c.ow + ox]);
            }
        }
        if (bias != nullptr) sum += cuda::load_as<C>(bias[channel]);
        cuda::store(to[i], add != 0, sum);
    }
    Convolution c;
    const T* columns;
    const T* bias;
    T* to;
    std::int64_t add;
};

// Transposes y (images, outputs, pixels) to rows (outputs, images and pixels), or rows to y. The
// latter also adds the bias (may be null), and can add to y.
template <class T>
struct RowsOf {
    using C = cuda::Compute<T>;
    RowsOf(const Convolution& c, const T* places, T* rows) : from(places), to(rows) {
        const std::int64_t shape[] = {c.outputs, c.n, c.pixels()};
        const std::int64_t strides[][1] = {{c.pixels()}, {c.y_image()}, {1}};
        walk.build_strided(Shape(shape), strides);
    }
    RowsOf(const Convolution& c, const T* rows, const T* of_outputs, T* places, bool adds)
        : RowsOf(c, rows, places) {
        bias = of_outputs;
        row = c.n * c.pixels();
        into_places = 1;
        add = adds;
    }
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        std::int64_t at[1];
        walk.locate(i, at);
        if (into_places == 0) {
            to[i] = from[at[0]];
            return;
        }
        const C more = bias != nullptr ? cuda::load_as<C>(bias[i / row]) : C(0);
        cuda::store(to[at[0]], add != 0, cuda::load_as<C>(from[i]) + more);
    }
    cuda::Walk<1> walk;
    const T* from;
    T* to;
    const T* bias = nullptr;
    std::int64_t row = 1;
    std::int32_t into_places = 0, add = 0;
};

inline std::int64_t images_at_once(const Convolution& c) {
    constexpr std::int64_t most = 1 << 22;  // elements of columns
    const std::int64_t each = std::max<std::int64_t>(c.groups * c.taps() * c.pixels(), 1);
    return std::min(c.n, std::max<std::int64_t>(most / each, 1));
}
template <ConvolutionProduct product, class T, class F>
void convolve(const cuda::Call<F>& call, const Convolution& all, const ConvolutionStep& s) {
    using enum ConvolutionProduct;
    using Stored = cuda::Stored<T>;
    const auto stored = [](T* data) { return reinterpret_cast<Stored*>(data); };
    T* const filters = data_of<T>(*s.w);
    T* const bias = view<T>(s.bias).data;
    Convolution c = all;
    const cuda::Queue& queue = call.queue();
    if (product == filter && c.n * c.pixels() == 0 && !s.add)
        queue.zero(filters, static_cast<std::size_t>(c.outputs * c.taps()) * sizeof(T));
    const std::int64_t step = std::max<std::int64_t>(images_at_once(all), 1);
    for (std::int64_t n = 0; n < all.n; n += step) {
        c.n = std::min(step, all.n - n);
        const std::int64_t pixels = c.n * c.pixels();
        const std::int64_t outputs = c.group_outputs(), taps = c.taps();
        const std::int64_t w_step = outputs * taps, y_step = outputs * pixels;
        const std::int64_t x_step = taps * pixels;  // from a group to the next one
        T* const columns = call.template scratch<T>();
        T* const rows = columns + c.groups * x_step;
        T* const x = data_of<T>(*s.x) + n * c.x_image();
        T* const y = data_of<T>(*s.y) + n * c.y_image();
        if (product != data)
            cuda::each(queue, c.groups * x_step, ColumnsOf<Stored>(c, stored(x), stored(columns)));
        if (product != forward)
            cuda::each(queue, c.outputs * pixels, RowsOf<Stored>(c, stored(y), stored(rows)));
        if (product == filter) {
            gemm<T>(call.context(), call.raw(),
                    {.transpose_b = true,
                     .m = outputs,
                     .n = taps,
                     .k = pixels,
                     .a = rows,
                     .b = columns,
                     .c = filters,
                     .add = s.add || n > 0,
                     .batch = c.groups,
                     .step_a = y_step,
                     .step_b = x_step,
                     .step_c = w_step});
        } else if (product == forward) {
            gemm<T>(call.context(), call.raw(),
                    {.m = outputs,
                     .n = pixels,
                     .k = taps,
                     .a = filters,
                     .b = columns,
                     .c = rows,
                     .add = false,
                     .batch = c.groups,
                     .step_a = w_step,
                     .step_b = x_step,
                     .step_c = y_step});
            cuda::each(queue, c.outputs * pixels,
                       RowsOf<Stored>(c, stored(rows), stored(bias), stored(y), s.add));
        } else {
            gemm<T>(call.context(), call.raw(),
                    {.transpose_a = true,
                     .m = taps,
                     .n = pixels,
                     .k = outputs,
                     .a = filters,
                     .b = rows,
                     .c = columns,
                     .add = false,
                     .batch = c.groups,
                     .step_a = w_step,
                     .step_b = y_step,
                     .step_c = x_step});
            cuda::each(queue, c.n * c.x_image(),
                       ImagesOf<Stored>{c, stored(columns), stored(bias), stored(x), s.add});
        }
    }
}

template <class F>
struct ConvolutionOnDevice : F {
    static constexpr bool any_half = false;  // multiply() needs the exact half type

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        const ConvolutionCall work = convolution_call(call.raw());
        Convolution c = work.sizes;
        c.n = images_at_once(c);
        plan.scratch_bytes =
            static_cast<std::uint64_t>((c.groups * c.taps() + c.outputs) * c.n * c.pixels()) *
            sizeof(T);
        if (work.sum == nullptr) return;
        const Shape gy = shape_of(*work.summed);
        const std::int64_t channels[] = {1, gy[1], 1, 1};
        plan.scratch_bytes =
            std::max(plan.scratch_bytes, cuda::sum_scratch<T>(gy, cuda::Repeats{gy, channels}));
    }
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Convolution2D>
    : catena::plugins::ConvolutionOnDevice<catena::plugins::Convolution2D> {};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Convolution2DGradW>
    : catena::plugins::ConvolutionOnDevice<catena::plugins::Convolution2DGradW> {};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Deconvolution2D>
    : catena::plugins::ConvolutionOnDevice<catena::plugins::Deconvolution2D> {};
