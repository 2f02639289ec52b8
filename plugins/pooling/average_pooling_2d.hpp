// Means over windows of images: sums down the columns, then along the rows.
#pragma once

#include "windows.hpp"

namespace catena::plugins {

// Scratch memory of average() and spread(): a row of sums for each thread.
template <class T>
void plan_averaging(const auto& call, catena_plan& plan) {
    const catena_call& raw = call.raw();
    const bool forward = raw.phase == CATENA_PHASE_FORWARD;
    const std::int64_t width = std::max(shape_of(forward ? *raw.x[0] : *raw.gx[0]).back(),
                                        shape_of(forward ? *raw.y[0] : *raw.gy[0]).back());
    plan.scratch_bytes = static_cast<std::uint64_t>(call.slots() * width) * sizeof(T);
}

// to = the sum of `rows` rows of n elements, times share.
template <class T>
CATENA_KERNEL void sum_rows(const T* from, std::int64_t rows, std::int64_t n, T share, T* to) {
    if (rows <= 0) std::fill_n(to, n, T(0));
    for (std::int64_t r = 0; r < rows; ++r, from += n) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) store(to[i], r > 0, share * from[i]);
    }
}
// Calls body(o, x) for each window o of a row and each of its cells x in the image, cell by cell: for
// one cell, windows are `stride` elements apart.
CATENA_KERNEL void for_each_cell(const Side& side, const auto& body) {
    const auto first_window = [&](std::int64_t x) CATENA_LAMBDA {  // that begins at x or after it
        return std::clamp<std::int64_t>((x + side.stride - 1) / side.stride, 0, side.count);
    };
    const std::int64_t begin = std::max<std::int64_t>(0, side.pad - (side.count - 1) * side.stride);
    for (std::int64_t cell = begin; cell < std::min(side.ksize, side.extent + side.pad); ++cell) {
        const std::int64_t skip = side.pad - cell;
        const std::int64_t last = first_window(side.extent + skip);
        CATENA_LOOP
        for (std::int64_t o = first_window(skip); o < last; ++o) body(o, o * side.stride - skip);
    }
}

// y = mean of each window of x, or added to y.
template <class T>
CATENA_KERNEL void average(const auto& call, const Tensor<const T>& images, const Tensor<T>& means,
                           bool add) {
    const Windows w = windows_of(call, images.shape, means.shape);
    const T share = T(1) / static_cast<T>(w.cells());
    auto planes = [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
        T* const sums = call.template scratch<T>() + slot * std::max(w.x.extent, w.x.count);
        for (std::int64_t i = begin * w.y.count; i < end * w.y.count; ++i) {
            const std::int64_t oy = i % w.y.count, top = w.y.first(oy);
            const T* const plane = images.data + i / w.y.count * w.image();
            T* const row = means.data + i * w.x.count;
            sum_rows(plane + (oy * w.y.stride - w.y.pad + top) * w.x.extent, w.y.last(oy) - top,
                     w.x.extent, share, sums);
            if (!add) std::fill_n(row, w.x.count, T(0));
            for_each_cell(w.x,
                          [&](std::int64_t o, std::int64_t x) CATENA_LAMBDA { row[o] += sums[x]; });
        }
    };
    call.parallel(w.planes, w.work(), planes);
}

// Each window's gradient spread over its cells: the adjoint of average().
template <class T>
CATENA_KERNEL void spread(const auto& call, const Tensor<const T>& means, const Tensor<T>& images,
                          bool add) {
    const Windows w = windows_of(call, images.shape, means.shape);
    const T share = T(1) / static_cast<T>(w.cells());
    auto planes = [&](std::int64_t begin, std::int64_t end, std::int32_t slot) CATENA_LAMBDA {
        T* const sums = call.template scratch<T>() + slot * std::max(w.x.extent, w.x.count);
        for (std::int64_t i = begin * w.y.extent; i < end * w.y.extent; ++i) {
            const std::int64_t y = i % w.y.extent + w.y.pad;
            // The windows that have this row of the image.
            const std::int64_t first = y < w.y.ksize ? 0 : (y - w.y.ksize) / w.y.stride + 1;
            const std::int64_t last = std::min(w.y.count, y / w.y.stride + 1);
            T* const row = images.data + i * w.x.extent;
            sum_rows(means.data + i / w.y.extent * w.count() + first * w.x.count, last - first,
                     w.x.count, share, sums);
            if (!add) std::fill_n(row, w.x.extent, T(0));
            for_each_cell(w.x,
                          [&](std::int64_t o, std::int64_t x) CATENA_LAMBDA { row[x] += sums[o]; });
        }
    };
    call.parallel(w.planes, w.work(), planes);
}

struct AveragePooling2D {
    static constexpr auto about =
        describe("catena.average_pooling_2d",
                 "y = mean of each window of x\n\n"
                 "Padding counts as zeros: the divisor is always the size of the window. Windows "
                 "that extend beyond the padded image are not used.",
                 in(Port("x", "(N, C, H, W)")), out(Port("y", "(N, C, oh, ow)")), ksize_attr,
                 stride_attr, pad_attr)
            .example("x=(2,2,4,6) ksize=2")
            .example("x=(1,2,5,4) ksize=3 stride=2 pad=1")
            .example("x=(2,1,5,4) ksize=[3,2] stride=[2,1] pad=[1,0]");

    static void infer(const auto& s) { infer_pooling(s, false); }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.average_pooling_2d_grad">(
                    {g.gy(0)}, {g.same("ksize"), g.same("stride"), g.same("pad"),
                                set("size", g.x_shape(0).subspan(2))}));
    }

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        plan_averaging<T>(call, plan);
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        average(call, call.template x<T>(0), call.template y<T>(0), call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        spread(call, call.template gy<T>(0), call.template gx<T>(0), call.adds(0));
    }
};

struct AveragePooling2DGrad {
    static constexpr auto about =
        describe("catena.average_pooling_2d_grad", "gx = gy spread over the windows it came from",
                 in(Port("gy", "(N, C, oh, ow)")), out(Port("gx", "(N, C, H, W)")), ksize_attr,
                 stride_attr, pad_attr, size_attr)
            .internal()
            .example("gy=(2,2,2,3) ksize=2 size=[4,6]")
            .example("gy=(1,2,3,2) ksize=3 stride=2 pad=1 size=[5,4]");

    static void infer(const auto& s) { infer_images(s, false); }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.average_pooling_2d">(
                    {g.gy(0)}, {g.same("ksize"), g.same("stride"), g.same("pad")}));
    }

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        plan_averaging<T>(call, plan);
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        spread(call, call.template x<T>(0), call.template y<T>(0), call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        average(call, call.template gy<T>(0), call.template gx<T>(0), call.adds(0));
    }
};

CATENA_FUNCTIONS(AveragePooling2D, AveragePooling2DGrad);

}  // namespace catena::plugins
