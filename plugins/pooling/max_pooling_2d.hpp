// Maxima over windows of images.
#pragma once

#include <limits>
#include <type_traits>

#include "windows.hpp"

namespace catena::plugins {

// Where a window's maximum lies: the number of its cell, row by row, or all bits set where no cell
// lies within the image. A byte is enough for windows of up to 255 cells.
using CellTypes = Rows<Row<float, std::uint8_t>, Row<double, std::uint8_t>,
                       Row<float, std::int32_t>, Row<double, std::int32_t>>;
inline catena_dtype cell_type(const Windows& w) {
    return w.cells() <= 255 ? dtype_of<std::uint8_t>() : dtype_of<std::int32_t>();
}
// Windows of a row that are compared side by side.
inline constexpr std::int64_t max_block = 64;

// One row of windows, [begin, begin + n): the largest value of each and the cell it lies in. The
// first of equal values wins, a NaN wins over all.
template <std::int64_t stride, class T, class I>
CATENA_KERNEL void max_row(const Windows& w, const T* plane, std::int64_t oy, std::int64_t begin,
                           std::int64_t n, T* best, I* cell) {
    const Side& x = w.x;
    const std::int64_t step = stride != 0 ? stride : x.stride;
    const std::int64_t top = w.y.first(oy);
    for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t left = x.first(begin + k);
        const bool any = top < w.y.last(oy) && left < x.last(begin + k);
        best[k] = -std::numeric_limits<T>::infinity();
        cell[k] = static_cast<I>(any ? top * x.ksize + left : -1);
    }
    for (std::int64_t i = top; i < w.y.last(oy); ++i) {
        const T* const row = plane + (oy * w.y.stride - w.y.pad + i) * x.extent - x.pad;
        for (std::int64_t j = 0; j < x.ksize; ++j) {
            const std::int64_t from = std::max<std::int64_t>(0, x.from(j) - begin);
            const std::int64_t to = std::min(n, x.to(j) - begin);
            const auto here = static_cast<I>(i * x.ksize + j);
            const T* const first = row + begin * step + j;
            CATENA_LOOP
            for (std::int64_t k = from; k < to; ++k) {
                const T v = first[k * step];
                const T b = best[k];
                const bool wins = !(v <= b) && b == b;
                best[k] = wins ? v : b;
                cell[k] = wins ? here : cell[k];
            }
        }
    }
}

template <class T, class M>
CATENA_KERNEL void maxima(const auto& call, const Windows& w, const T* x, T* y, M* at, bool add) {
    using I = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    call.parallel(w.planes, w.work(), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        T best[max_block];
        I cell[max_block];
        for (std::int64_t p = begin; p < end; ++p) {
            const T* const plane = x + p * w.image();
            for (std::int64_t oy = 0; oy < w.y.count; ++oy) {
                for (std::int64_t ox = 0; ox < w.x.count; ox += max_block) {
                    const std::int64_t n = std::min(max_block, w.x.count - ox);
                    if (w.x.stride == 1) max_row<1>(w, plane, oy, ox, n, best, cell);
                    else if (w.x.stride == 2) max_row<2>(w, plane, oy, ox, n, best, cell);
                    else max_row<0>(w, plane, oy, ox, n, best, cell);
                    const std::int64_t out = p * w.count() + oy * w.x.count + ox;
                    for (std::int64_t k = 0; k < n; ++k) store(y[out + k], add, best[k]);
                    CATENA_LOOP
                    for (std::int64_t k = 0; k < n; ++k) at[out + k] = static_cast<M>(cell[k]);
                }
            }
        }
    });
}

// Calls visit(element of the image, element of the windows) for each window with a maximum. Cells
// that no window has, which only a caller's own numbers can name, are passed over.
template <class M, class Visit>
CATENA_KERNEL void for_each_maximum(const Windows& w, const M* at, std::int64_t plane,
                                    const Visit& visit) {
    const auto width = static_cast<std::uint32_t>(w.x.ksize);
    for (std::int64_t oy = 0; oy < w.y.count; ++oy) {
        const std::int64_t row = plane * w.count() + oy * w.x.count;
        for (std::int64_t ox = 0; ox < w.x.count; ++ox) {
            const auto cell = static_cast<std::uint32_t>(at[row + ox]);
            const std::int64_t y = oy * w.y.stride - w.y.pad + cell / width;
            const std::int64_t x = ox * w.x.stride - w.x.pad + cell % width;
            if (y < 0 || y >= w.y.extent || x < 0 || x >= w.x.extent || cell >= w.cells()) continue;
            visit(plane * w.image() + y * w.x.extent + x, row + ox);
        }
    }
}

// gx = gy at the maxima, 0 elsewhere; or added to gx.
template <class T, class M>
CATENA_KERNEL void scatter(const auto& call, const Windows& w, const T* gy, const M* at, T* gx,
                           bool add) {
    const bool apart = w.y.stride >= w.y.ksize && w.x.stride >= w.x.ksize && w.y.pad == 0 &&
                       w.x.pad == 0 && w.x.extent >= w.x.count * w.x.stride;
    call.parallel(w.planes, w.work(), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t p = begin; p < end; ++p) {
            if (!add) std::fill_n(gx + p * w.image(), w.image(), T(0));
            if (!apart) {
                for_each_maximum(w, at, p,
                                 [&](std::int64_t pixel, std::int64_t window)
                                     CATENA_LAMBDA { gx[pixel] += gy[window]; });
                continue;
            }
            // Windows that share no pixel: each cell in turn, without a look-up.
            for (std::int64_t oy = 0; oy < w.y.count; ++oy) {
                const std::int64_t row = p * w.count() + oy * w.x.count;
                for (std::int64_t i = 0; i < w.y.last(oy); ++i) {
                    T* const out = gx + p * w.image() + (oy * w.y.stride + i) * w.x.extent;
                    for (std::int64_t j = 0; j < w.x.ksize; ++j) {
                        const auto here = static_cast<M>(i * w.x.ksize + j);
                        CATENA_LOOP
                        for (std::int64_t ox = 0; ox < w.x.count; ++ox)
                            out[ox * w.x.stride + j] += at[row + ox] == here ? gy[row + ox] : T(0);
                    }
                }
            }
        }
    });
}

// y = x at the maxima, 0 for windows without; or added to y. The adjoint of scatter().
template <class T, class M>
CATENA_KERNEL void gather(const auto& call, const Windows& w, const T* x, const M* at, T* y,
                          bool add) {
    call.parallel(w.planes, w.work(), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t p = begin; p < end; ++p) {
            if (!add) std::fill_n(y + p * w.count(), w.count(), T(0));
            for_each_maximum(w, at, p,
                             [&](std::int64_t pixel, std::int64_t window)
                                 CATENA_LAMBDA { y[window] += x[pixel]; });
        }
    });
}

// Attributes of the three functions for a call of one from the gradient of another.
template <class G>
Var call_scatter(const G& g, const Var& gy, const Var& at, Shape size) {
    return call<"catena.max_pooling_2d_grad">(
        {gy, at}, {set("ksize", g.template attr<"ksize">()),
                   set("stride", g.template attr<"stride">()), set("pad", g.template attr<"pad">()),
                   set("cover_all", g.template attr<"cover_all">()), set("size", size)});
}

struct MaxPooling2D {
    static constexpr auto about =
        describe("catena.max_pooling_2d",
                 "y = maximum of each window of x\n\n"
                 "Of equal values the first, row by row, takes the gradient; a NaN wins. A window "
                 "that lies outside the image as a whole gives -inf and takes none.",
                 in(Port("x", "(N, C, H, W)")),
                 out(Port("y", "(N, C, oh, ow)"), Port("at").of("M").hidden()), ksize_attr,
                 stride_attr, pad_attr, cover_all_attr)
            .example("x=(2,2,4,6) ksize=2")
            .example("x=(1,2,5,4) ksize=3 stride=2 pad=1")
            .example("x=(2,1,5,4) ksize=[3,2] stride=[2,1] pad=[1,0] cover_all=false")
            .example("x=(1,1,17,17) ksize=16 stride=1");
    using types = CellTypes;
    static constexpr auto retain_y = ports(1);

    static void infer(const auto& s) {
        const Windows w = infer_pooling(s, s.template attr<"cover_all">());
        const Shape x = s.x(0);
        const std::int64_t shape[] = {x[0], x[1], w.y.count, w.x.count};
        s.y(1, shape, cell_type(w));
    }
    static void gradient(const auto& g) {
        g.gx(0, call_scatter(g, g.gy(0), g.y(1), g.x_shape(0).subspan(2)));
    }

    template <class T, class M>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        maxima(call, windows_of(call, x.shape, y.shape), x.data, y.data,
               call.template y<M>(1).data, call.adds(0));
    }
    template <class T, class M>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        if (gy)
            scatter(call, windows_of(call, gx.shape, gy.shape), gy.data,
                    call.template y<M>(1).data, gx.data, call.adds(0));
        else if (!call.adds(0)) std::fill_n(gx.data, gx.size(), T(0));
    }
};

struct MaxPooling2DGrad {
    static constexpr auto about =
        describe("catena.max_pooling_2d_grad", "gx = gy where the maxima were, 0 elsewhere",
                 in(Port("gy", "(N, C, oh, ow)"), Port("at").of("M").not_differentiable()),
                 out(Port("gx", "(N, C, H, W)")), ksize_attr, stride_attr, pad_attr, cover_all_attr,
                 size_attr)
            .internal()
            .example("gy=(2,2,2,3) at=(2,2,2,3)[0,3] ksize=2 size=[4,6]");
    using types = CellTypes;
    static constexpr auto retain_x = ports(1);

    static void infer(const auto& s) {
        infer_images(s, s.template attr<"cover_all">());
        s.check(std::ranges::equal(s.x(1), s.x(0)), "at.shape", s.x(0), s.x(1));
        const Ints size = s.template attr<"size">();
        const catena_dtype expected = cell_type(windows_of(s, size[0], size[1]));
        s.check(same(s.dtype(1), expected), "at.dtype", expected.bits == 8 ? "uint8" : "int32",
                "another", CATENA_E_DTYPE);
    }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.max_pooling_2d_at">(
                    {g.gy(0), g.x(1)},
                    {set("ksize", g.template attr<"ksize">()),
                     set("stride", g.template attr<"stride">()),
                     set("pad", g.template attr<"pad">()),
                     set("cover_all", g.template attr<"cover_all">())}));
    }

    template <class T, class M>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto gy = call.template x<T>(0);
        const auto gx = call.template y<T>(0);
        scatter(call, windows_of(call, gx.shape, gy.shape), gy.data, call.template x<M>(1).data,
                gx.data, call.adds(0));
    }
    template <class T, class M>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto ggx = call.template gy<T>(0);
        const auto ggy = call.template gx<T>(0);
        gather(call, windows_of(call, ggx.shape, ggy.shape), ggx.data, call.template x<M>(1).data,
               ggy.data, call.adds(0));
    }
};

struct MaxPooling2DAt {
    static constexpr auto about =
        describe("catena.max_pooling_2d_at", "y = x where the maxima of other images were",
                 in(Port("x", "(N, C, H, W)"), Port("at").of("M").not_differentiable()),
                 out(Port("y", "(N, C, oh, ow)")), ksize_attr, stride_attr, pad_attr,
                 cover_all_attr)
            .internal()
            .example("x=(2,2,4,6) at=(2,2,2,3)[0,3] ksize=2");
    using types = CellTypes;
    static constexpr auto retain_x = ports(1);

    static void infer(const auto& s) {
        const Windows w = infer_pooling(s, s.template attr<"cover_all">());
        const std::int64_t shape[] = {s.x(0)[0], s.x(0)[1], w.y.count, w.x.count};
        s.check(std::ranges::equal(s.x(1), shape), "at.shape", Shape(shape), s.x(1));
        s.check(same(s.dtype(1), cell_type(w)), "at.dtype",
                cell_type(w).bits == 8 ? "uint8" : "int32", "another", CATENA_E_DTYPE);
    }
    static void gradient(const auto& g) {
        g.gx(0, call_scatter(g, g.gy(0), g.x(1), g.x_shape(0).subspan(2)));
    }

    template <class T, class M>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        gather(call, windows_of(call, x.shape, y.shape), x.data, call.template x<M>(1).data, y.data,
               call.adds(0));
    }
    template <class T, class M>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        scatter(call, windows_of(call, gx.shape, gy.shape), gy.data, call.template x<M>(1).data,
                gx.data, call.adds(0));
    }
};

}  // namespace catena::plugins
