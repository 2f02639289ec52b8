// Means over windows of images.
#pragma once

#include "window_sums.hpp"

namespace catena::plugins {

inline std::int64_t averaging_work(const Windows& w) {  // of a plane
    return w.image() + w.count() * (w.y.ksize / w.y.stride + 4);
}

// y = mean of each window of x, or added to y: sums down the columns, then along the rows.
template <class T>
CATENA_KERNEL void average(const auto& call, const Windows& w, const T* x, T* y, bool add) {
    const T share = T(1) / static_cast<T>(w.cells());
    const T* const x_end = x + w.planes * w.image();
    const std::int64_t work = averaging_work(w);
    call.parallel(w.planes, work, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        alignas(64) Places<T> columns;
        alignas(64) Places<T> means;
        T* const y_end = y + end * w.count();
        const auto visit = [&](const Stretch& s) CATENA_LAMBDA {
            const std::int64_t pitch = s.extent();
            const bool adds = add || s.add;
            const std::int64_t rows = end * w.y.count;
            for (std::int64_t q = begin * w.y.count; q < rows; q += most_places / pitch) {
                const std::int64_t n = std::min(most_places / pitch, rows - q);
                clear(columns, s.left);
                const T* plane = x + q / w.y.count * w.image() + s.source;
                std::int64_t oy = q % w.y.count;
                for (std::int64_t r = 0; r < n; ++r) {
                    const std::int64_t top = w.y.first(oy);
                    const std::int64_t height = std::max<std::int64_t>(0, w.y.last(oy) - top);
                    const T* const from = plane + (oy * w.y.stride - w.y.pad + top) * w.x.extent;
                    if (++oy == w.y.count) oy = 0, plane += w.image();
                    T* const to = columns + r * pitch + s.left;
                    const std::int64_t last = (height - 1) * w.x.extent;
                    for_row(s.sources, height > 0 ? x_end - from - last : 0,
                            [&](std::int64_t width) CATENA_LAMBDA {
                                add_rows(from, w.x.extent, height, width, false, to);
                            });
                    clear(to + s.sources, pitch - s.sources - (r + 1 < n ? 0 : s.left));
                }
                add_shifted(columns, n * pitch - s.cells + 1, s.cells, means);
                for (std::int64_t r = 0; r < n; ++r) {
                    T* const to = y + (q + r) * w.x.count + s.target;
                    // With longer steps, what is too much would lie behind the means.
                    const bool whole = s.targets == w.x.count && !adds && s.step <= 4;
                    for_row(s.targets, whole ? y_end - to : 0,
                            [&](std::int64_t width) CATENA_LAMBDA {
                                take(means + r * pitch, width, s.step, share, adds, to);
                            });
                }
            }
        };
        for_each_stretch(w.x.extent, 1, w.x.count, w.x.stride, -w.x.pad, w.x.ksize, visit);
    });
}

// Adds rows a .. b of the windows' sums to the image's rows that take from them. Those that take from
// earlier rows as well have had them, those without any become 0.
template <class T>
CATENA_KERNEL void spread_down(const Windows& w, const Stretch& s, const T* sums, std::int64_t a,
                               std::int64_t b, bool add, T* gx, T* gx_end) {
    const Side& side = w.y;
    const auto after = [&](std::int64_t o) {
        return (o - 1) * side.stride + side.ksize - side.pad;
    };
    const std::int64_t top = a == 0 ? 0 : std::min(a * side.stride - side.pad, after(a));
    const std::int64_t bottom = b == side.count ? side.extent : std::min(side.extent, after(b));
    std::int64_t begin = a;  // of the rows at hand that row y takes from
    std::int64_t end = a;
    for (std::int64_t y = std::max<std::int64_t>(0, top); y < bottom; ++y) {
        while (begin < b && after(begin + 1) <= y) ++begin;
        while (end < b && end * side.stride - side.pad <= y) ++end;
        const bool adds = add || (a > 0 && y < after(a));
        T* const to = gx + y * w.x.extent;
        const bool whole = s.targets == w.x.extent && !adds;
        for_row<16>(s.targets, whole ? gx_end - to : 0, [&](std::int64_t width) CATENA_LAMBDA {
            add_rows(sums + (begin - a) * s.extent(), s.extent(),
                     std::max<std::int64_t>(0, end - begin), width, adds, to);
        });
    }
}

// Each window's gradient spread over its cells, along the rows and then down the columns: the adjoint
// of average().
template <class T>
CATENA_KERNEL void spread(const auto& call, const Windows& w, const T* gy, T* gx, bool add) {
    const T share = T(1) / static_cast<T>(w.cells());
    const T* const gy_end = gy + w.planes * w.count();
    const std::int64_t work = averaging_work(w);
    call.parallel(w.planes, work, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        alignas(64) Places<T> shares;
        alignas(64) Places<T> sums;
        T* const gx_end = gx + end * w.image();
        const auto visit = [&](const Stretch& s) CATENA_LAMBDA {
            const std::int64_t pitch = s.extent();
            const std::int64_t taken = s.sources == 0 ? 0 : (s.sources - 1) * s.spread + 1;
            const std::int64_t rows = end * w.y.count;
            for (std::int64_t q = begin * w.y.count, n = 0; q < rows; q += n) {
                // Whole planes, or a part that is the same for all: sums are, on any number of threads.
                n = most_places / pitch;
                n = n < w.y.count ? std::min(n, w.y.count - q % w.y.count) : n - n % w.y.count;
                n = std::min(n, rows - q);
                clear(shares, s.spread > 2 ? n * pitch : s.left);
                for (std::int64_t r = 0; r < n; ++r) {
                    const T* const from = gy + (q + r) * w.x.count + s.source;
                    T* const to = shares + r * pitch + s.left;
                    for_row(s.sources, s.spread > 2 ? 0 : gy_end - from,
                            [&](std::int64_t width)
                                CATENA_LAMBDA { put(from, width, s.spread, share, to); });
                    if (s.spread <= 2) clear(to + taken, pitch - taken - (r + 1 < n ? 0 : s.left));
                }
                add_shifted(shares, n * pitch - s.cells + 1, s.cells, sums);
                for (std::int64_t p = q / w.y.count; p * w.y.count < q + n; ++p) {
                    // Rows of windows at hand, and the rows of the image that they meet first.
                    const std::int64_t a = std::max<std::int64_t>(0, q - p * w.y.count);
                    const std::int64_t b = std::min(w.y.count, q + n - p * w.y.count);
                    spread_down(w, s, sums + (p * w.y.count + a - q) * pitch, a, b, add || s.add,
                                gx + p * w.image() + s.target, gx_end);
                }
            }
        };
        for_each_stretch(w.x.count, w.x.stride, w.x.extent, 1, w.x.pad - w.x.ksize + 1, w.x.ksize,
                         visit);
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

    static void infer(const auto& s) { infer_pooling(s, false); }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.average_pooling_2d_grad">(
                    {g.gy(0)},
                    {set("ksize", g.template attr<"ksize">()),
                     set("stride", g.template attr<"stride">()),
                     set("pad", g.template attr<"pad">()), set("size", g.x_shape(0).subspan(2))}));
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
        g.gx(0, call<"catena.average_pooling_2d">({g.gy(0)},
                                                  {set("ksize", g.template attr<"ksize">()),
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

CATENA_FUNCTIONS(AveragePooling2D, AveragePooling2DGrad);

}  // namespace catena::plugins
