// Means over windows of images.
#pragma once

#include "windows.hpp"

namespace catena::plugins {

// y = mean of each window of x, or added to y.
template <class T>
CATENA_KERNEL void average(const auto& call, const Windows& w, const T* x, T* y, bool add) {
    const T share = T(1) / static_cast<T>(w.cells());
    call.parallel(w.planes, w.work(), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        const std::int64_t stride = w.x.stride;
        for (std::int64_t p = begin; p < end; ++p) {
            for (std::int64_t oy = 0; oy < w.y.count; ++oy) {
                T* const out = y + p * w.count() + oy * w.x.count;
                if (!add) std::fill_n(out, w.x.count, T(0));
                for (std::int64_t i = w.y.first(oy); i < w.y.last(oy); ++i) {
                    const T* const row =
                        x + p * w.image() + (oy * w.y.stride - w.y.pad + i) * w.x.extent - w.x.pad;
                    for (std::int64_t j = 0; j < w.x.ksize; ++j) {
                        const std::int64_t to = w.x.to(j);
                        CATENA_LOOP
                        for (std::int64_t ox = w.x.from(j); ox < to; ++ox)
                            out[ox] += share * row[ox * stride + j];
                    }
                }
            }
        }
    });
}

// Each window's gradient spread over its cells: the adjoint of average().
template <class T>
CATENA_KERNEL void spread(const auto& call, const Windows& w, const T* gy, T* gx, bool add) {
    const T share = T(1) / static_cast<T>(w.cells());
    call.parallel(w.planes, w.work(), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        const std::int64_t stride = w.x.stride;
        for (std::int64_t p = begin; p < end; ++p) {
            T* const plane = gx + p * w.image();
            if (!add) std::fill_n(plane, w.image(), T(0));
            for (std::int64_t oy = 0; oy < w.y.count; ++oy) {
                const T* const in = gy + p * w.count() + oy * w.x.count;
                for (std::int64_t i = w.y.first(oy); i < w.y.last(oy); ++i) {
                    T* const row =
                        plane + (oy * w.y.stride - w.y.pad + i) * w.x.extent - w.x.pad;
                    for (std::int64_t j = 0; j < w.x.ksize; ++j) {
                        const std::int64_t to = w.x.to(j);
                        CATENA_LOOP
                        for (std::int64_t ox = w.x.from(j); ox < to; ++ox)
                            row[ox * stride + j] += share * in[ox];
                    }
                }
            }
        }
    });
}

struct AveragePooling2D {
    static constexpr auto about =
        describe("catena.average_pooling_2d",
                 "y = mean of each window of x\n\n"
                 "Padding counts as zeros: the divisor is always the size of the window. Windows "
                 "that reach beyond the padded image do not count.",
                 in(Port("x", "(N, C, H, W)")), out(Port("y", "(N, C, oh, ow)")), ksize_attr,
                 stride_attr, pad_attr)
            .example("x=(2,2,4,6) ksize=2")
            .example("x=(1,2,5,4) ksize=3 stride=2 pad=1")
            .example("x=(2,1,5,4) ksize=[3,2] stride=[2,1] pad=[1,0]");

    static void infer(const auto& s) { infer_pooling(s, false); }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.average_pooling_2d_grad">(
                    {g.gy(0)}, {set("ksize", g.template attr<"ksize">()),
                                set("stride", g.template attr<"stride">()),
                                set("pad", g.template attr<"pad">()),
                                set("size", g.x_shape(0).subspan(2))}));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        average(call, windows_of(call, x.shape, y.shape), x.data, y.data, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        spread(call, windows_of(call, gx.shape, gy.shape), gy.data, gx.data, call.adds(0));
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
                    {g.gy(0)}, {set("ksize", g.template attr<"ksize">()),
                                set("stride", g.template attr<"stride">()),
                                set("pad", g.template attr<"pad">())}));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto gy = call.template x<T>(0);
        const auto gx = call.template y<T>(0);
        spread(call, windows_of(call, gx.shape, gy.shape), gy.data, gx.data, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto ggx = call.template gy<T>(0);
        const auto ggy = call.template gx<T>(0);
        average(call, windows_of(call, ggx.shape, ggy.shape), ggx.data, ggy.data, call.adds(0));
    }
};

}  // namespace catena::plugins
