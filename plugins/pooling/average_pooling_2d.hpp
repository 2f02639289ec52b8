// Means over windows of images: sums down the columns, then along the rows.
#pragma once

#include "windows.hpp"

namespace catena::plugins {

// Columns of an image that are worked on at once.
inline constexpr std::int64_t most_columns = 2048;

// Calls visit(plane, row of windows, first column, columns) for the planes begin .. end.
CATENA_KERNEL void for_each_row(const Windows& w, std::int64_t begin, std::int64_t end,
                                const auto& visit) {
    for (std::int64_t p = begin; p < end; ++p)
        for (std::int64_t oy = 0; oy < w.y.count; ++oy)
            for (std::int64_t c = 0; c < w.x.extent; c += most_columns)
                visit(p, oy, c, std::min(most_columns, w.x.extent - c));
}

inline std::int64_t averaging_work(const Windows& w) {  // of a plane
    return w.image() + w.count() * (w.y.ksize / w.y.stride + 4);
}

// y = mean of each window of x, or added to y.
template <class T>
CATENA_KERNEL void average(const auto& call, const Tensor<const T>& images, const Tensor<T>& means,
                           bool add) {
    const Windows w = windows_of(call, images.shape, means.shape);
    const T share = T(1) / static_cast<T>(w.cells());
    call.parallel(
        w.planes, averaging_work(w), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            alignas(64) T line[most_columns];
            if (!add) std::fill_n(means.data + begin * w.count(), (end - begin) * w.count(), T(0));
            for_each_row(
                w, begin, end,
                [&](std::int64_t p, std::int64_t oy, std::int64_t left,
                    std::int64_t n) CATENA_LAMBDA {
                    const T* const x = images.data + p * w.image() + left;
                    T* const y = means.data + p * w.count() + oy * w.x.count;
                    std::fill_n(line, n, T(0));
                    for (std::int64_t i = w.y.first(oy); i < w.y.last(oy); ++i) {
                        const T* const row = x + (oy * w.y.stride - w.y.pad + i) * w.x.extent;
                        CATENA_LOOP
                        for (std::int64_t c = 0; c < n; ++c) line[c] += row[c];
                    }
                    CATENA_LOOP
                    for (std::int64_t c = 0; c < n; ++c) line[c] *= share;
                    for_each_run(
                        w.x, left, left + n,
                        [&](std::int64_t o, std::int64_t c, std::int64_t cells) CATENA_LAMBDA {
                            T sum = 0;
                            for (std::int64_t i = 0; i < cells; ++i) sum += line[c + i];
                            y[o] += sum;
                        },
                        [&](std::int64_t o, std::int64_t c, std::int64_t windows) CATENA_LAMBDA {
                            with_step(w.x.stride, [&](auto step) CATENA_LAMBDA {
                                CATENA_LOOP
                                for (std::int64_t i = 0; i < windows; ++i)
                                    y[o + i] += line[c + i * step];
                            });
                        });
                });
        });
}

// Each window's gradient spread over its cells, or added to gx: the adjoint of average().
template <class T>
CATENA_KERNEL void spread(const auto& call, const Tensor<const T>& means, const Tensor<T>& images,
                          bool add) {
    const Windows w = windows_of(call, images.shape, means.shape);
    const T share = T(1) / static_cast<T>(w.cells());
    call.parallel(
        w.planes, averaging_work(w), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            alignas(64) T line[most_columns];
            if (!add) std::fill_n(images.data + begin * w.image(), (end - begin) * w.image(), T(0));
            for_each_row(
                w, begin, end,
                [&](std::int64_t p, std::int64_t oy, std::int64_t left,
                    std::int64_t n) CATENA_LAMBDA {
                    const T* const gy = means.data + p * w.count() + oy * w.x.count;
                    T* const gx = images.data + p * w.image() + left;
                    std::fill_n(line, n, T(0));
                    for_each_run(
                        w.x, left, left + n,
                        [&](std::int64_t o, std::int64_t c, std::int64_t cells) CATENA_LAMBDA {
                            CATENA_LOOP
                            for (std::int64_t i = 0; i < cells; ++i) line[c + i] += gy[o];
                        },
                        [&](std::int64_t o, std::int64_t c, std::int64_t windows) CATENA_LAMBDA {
                            with_step(w.x.stride, [&](auto step) CATENA_LAMBDA {
                                CATENA_LOOP
                                for (std::int64_t i = 0; i < windows; ++i)
                                    line[c + i * step] += gy[o + i];
                            });
                        });
                    for (std::int64_t i = w.y.first(oy); i < w.y.last(oy); ++i) {
                        T* const row = gx + (oy * w.y.stride - w.y.pad + i) * w.x.extent;
                        CATENA_LOOP
                        for (std::int64_t c = 0; c < n; ++c) row[c] += share * line[c];
                    }
                });
        });
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
    static constexpr bool any_device = true;

    static void infer(const auto& s) { infer_pooling(s, false); }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.average_pooling_2d_grad">(
                    {g.gy(0)}, {g.same("ksize"), g.same("stride"), g.same("pad"),
                                set("size", g.x_shape(0).subspan(2))}));
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
    static constexpr bool any_device = true;

    static void infer(const auto& s) { infer_images(s, false); }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.average_pooling_2d">(
                    {g.gy(0)}, {g.same("ksize"), g.same("stride"), g.same("pad")}));
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
