// Maxima over windows of images.
#pragma once

#include <limits>
#include <type_traits>

#include "windows.hpp"

namespace catena::plugins {

// Types of a value and of the position of a window's maximum: the row-major index of its cell, or
// all bits set if no cell lies within the image. A byte is enough for windows of up to 255 cells.
using CellTypes = Rows<Row<float, std::uint8_t>, Row<double, std::uint8_t>,
                       Row<float, std::int32_t>, Row<double, std::int32_t>>;
inline constexpr std::int64_t most_cells = std::numeric_limits<std::int32_t>::max();
inline catena_dtype cell_type(const Windows& w) {
    return w.cells() <= 255 ? dtype_of<std::uint8_t>() : dtype_of<std::int32_t>();
}
// Number of adjacent windows of a row that are processed together. It is fixed because GCC does not
// vectorize short loops with a remainder, nor shorter ones, which it unrolls.
inline constexpr std::int64_t lanes = 32;
template <class T>
using Cell = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// Compares `from`, the windows' values at cell `here`, with each window's largest value so far and
// updates that value and its cell. The first of equal values wins; a NaN wins over all numbers.
template <class T>
CATENA_KERNEL void compare(const T* from, Cell<T> here, T* best, Cell<T>* cell) {
    CATENA_LOOP
    for (std::int64_t k = 0; k < lanes; ++k) {
        const T v = from[k];
        const T b = best[k];
        const bool wins = !(v <= b) & (b == b);
        best[k] = wins ? v : b;
        cell[k] = wins ? here : cell[k];
    }
}

// Computes the maxima of n windows of row `oy` from window `begin` on. If windows reach beyond the
// image, or vector loads beyond `end` (the end of x), copies the image's row with -inf on both
// sides: as a whole, or cell by cell for windows that are large or far apart.
template <class T>
CATENA_KERNEL void max_row(const Windows& w, const T* plane, const T* end, std::int64_t oy,
                           std::int64_t begin, std::int64_t n, T* best, Cell<T>* cell) {
    constexpr T least = -std::numeric_limits<T>::infinity();
    const Side& x = w.x;
    const std::int64_t top = w.y.first(oy);
    const std::int64_t left = begin * x.stride - x.pad;  // the first window's column in the image
    const bool within = left >= 0 && left + (n - 1) * x.stride + x.ksize <= x.extent;
    const bool any = top < w.y.last(oy);
    std::fill_n(best, lanes, least);
    std::fill_n(cell, lanes, static_cast<Cell<T>>(any && within ? top * x.ksize : -1));
    for (std::int64_t k = 0; any && !within && k < n; ++k) {
        const std::int64_t first = x.first(begin + k);
        if (first < x.last(begin + k)) cell[k] = static_cast<Cell<T>>(top * x.ksize + first);
    }
    alignas(64) T line[4 * lanes];
    const std::int64_t reach = (n - 1) * x.stride + x.ksize;
    for (std::int64_t i = top; i < w.y.last(oy); ++i) {
        const T* const row = plane + (oy * w.y.stride - w.y.pad + i) * x.extent;
        const T* cells = row + left;
        bool gapless = within && x.stride <= 2 && end - cells >= x.ksize + lanes * x.stride;
        if (!gapless && x.stride <= 2 && x.ksize <= lanes) {
            std::fill_n(line, 4 * lanes, least);
            const std::int64_t first = std::max<std::int64_t>(0, left);
            const std::int64_t last = std::min(x.extent, left + reach);
            if (first < last) std::copy_n(row + first, last - first, line + first - left);
            cells = line;
            gapless = true;
        }
        if (!gapless && x.ksize > x.extent) {  // mostly padding: processes each window alone
            for (std::int64_t k = 0; k < n; ++k)
                for (std::int64_t j = x.first(begin + k); j < x.last(begin + k); ++j) {
                    const T v = row[left + k * x.stride + j];
                    if (v <= best[k] || best[k] != best[k]) continue;
                    best[k] = v;
                    cell[k] = static_cast<Cell<T>>(i * x.ksize + j);
                }
            continue;
        }
        for (std::int64_t j = 0; j < x.ksize; ++j) {
            const auto here = static_cast<Cell<T>>(i * x.ksize + j);
            const T* const from = cells + j;
            T even[lanes];
            T odd[lanes];
            if (!gapless) {
                for (std::int64_t k = 0; k < lanes; ++k) {
                    const std::int64_t at = left + k * x.stride + j;
                    even[k] = k < n && at >= 0 && at < x.extent ? row[at] : least;
                }
                compare(even, here, best, cell);
            } else if (x.stride == 1) {
                compare(from, here, best, cell);
            } else {  // two cells at once: contiguous loads
                CATENA_LOOP
                for (std::int64_t k = 0; k < lanes; ++k) {
                    even[k] = from[2 * k];
                    odd[k] = from[2 * k + 1];
                }
                compare(even, here, best, cell);
                if (++j < x.ksize) compare(odd, here + 1, best, cell);
            }
        }
    }
}

// Whether 2 x 2 windows tile the images. The rows of windows of all planes then lie behind each other,
// as do the pairs of rows of their pixels, so that vectors can extend over several short rows.
inline bool is_tiled(const Windows& w) {
    const auto tiled = [](const Side& s) {
        return s.ksize == 2 && s.stride == 2 && s.pad == 0 && s.extent == 2 * s.count;
    };
    return tiled(w.y) && tiled(w.x);
}
// Calls visit(window, pixel, n, rows) for up to `lanes` windows of the planes [begin, end): `rows`
// rows of n windows each, from a window and its first pixel on.
CATENA_KERNEL void for_each_tile(const Windows& w, std::int64_t begin, std::int64_t end,
                                 const auto& visit) {
    const std::int64_t width = w.x.count;
    const std::int64_t most = std::max<std::int64_t>(lanes / width, 1), last = end * w.y.count;
    for (std::int64_t row = begin * w.y.count; row < last; row += most)
        for (std::int64_t i = 0; i < width; i += lanes)
            visit(row * width + i, 4 * row * width + 2 * i, std::min(lanes, width - i),
                  std::min(most, last - row));
}
// maxima() and scatter() for such windows.
template <class T, class M>
CATENA_KERNEL void maxima_of_tiles(const Windows& w, std::int64_t begin, std::int64_t end,
                                   const T* x, T* y, M* at, bool add) {
    alignas(64) T line[2][2 * lanes] = {};
    alignas(64) T even[lanes], odd[lanes], best[lanes];
    alignas(64) Cell<T> cell[lanes];
    for_each_tile(w, begin, end,
                  [&](std::int64_t window, std::int64_t pixel, std::int64_t n, std::int64_t rows)
                      CATENA_LAMBDA {
                          for (std::int64_t r = 0; r < 2 * rows; ++r)
                              std::copy_n(x + pixel + r * w.x.extent, 2 * n,
                                          line[r % 2] + r / 2 * 2 * n);
                          std::fill_n(best, lanes, -std::numeric_limits<T>::infinity());
                          std::fill_n(cell, lanes, Cell<T>(0));
                          for (Cell<T> i = 0; i < 2; ++i) {
                              CATENA_LOOP
                              for (std::int64_t k = 0; k < lanes; ++k) {
                                  even[k] = line[i][2 * k];
                                  odd[k] = line[i][2 * k + 1];
                              }
                              compare(even, static_cast<Cell<T>>(2 * i), best, cell);
                              compare(odd, static_cast<Cell<T>>(2 * i + 1), best, cell);
                          }
                          for (std::int64_t k = 0; k < n * rows; ++k) {
                              store(y[window + k], add, best[k]);
                              at[window + k] = static_cast<M>(cell[k]);
                          }
                      });
}
template <class T, class M>
CATENA_KERNEL void scatter_to_tiles(const Windows& w, std::int64_t begin, std::int64_t end,
                                    const T* gy, const M* at, T* gx, bool add) {
    alignas(64) T g[lanes] = {};
    alignas(64) M narrow[lanes] = {};
    alignas(64) T line[2][2 * lanes];
    for_each_tile(w, begin, end,
                  [&](std::int64_t window, std::int64_t pixel, std::int64_t n, std::int64_t rows)
                      CATENA_LAMBDA {
                          std::copy_n(gy + window, n * rows, g);
                          std::copy_n(at + window, n * rows, narrow);
                          for (Cell<T> i = 0; i < 2; ++i) {
                              CATENA_LOOP
                              for (std::int64_t k = 0; k < lanes; ++k) {
                                  const auto cell = static_cast<Cell<T>>(narrow[k]);
                                  line[i][2 * k] = cell == 2 * i ? g[k] : T(0);
                                  line[i][2 * k + 1] = cell == 2 * i + 1 ? g[k] : T(0);
                              }
                          }
                          for (std::int64_t r = 0; r < 2 * rows; ++r) {
                              const T* const from = line[r % 2] + r / 2 * 2 * n;
                              T* const to = gx + pixel + r * w.x.extent;
                              CATENA_LOOP
                              for (std::int64_t k = 0; k < 2 * n; ++k) store(to[k], add, from[k]);
                          }
                      });
}

template <class T, class M>
CATENA_KERNEL void maxima(const auto& call, const Tensor<const T>& x, const Tensor<T>& most, M* at,
                          bool add) {
    const Windows w = windows_of(call, x.shape, most.shape);
    T* const y = most.data;
    const bool tiled = is_tiled(w);
    call.parallel(w.planes, w.work(), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        if (tiled) return maxima_of_tiles(w, begin, end, x.data, y, at, add);
        alignas(64) T best[lanes];
        alignas(64) Cell<T> cell[lanes];
        alignas(64) M narrow[lanes];
        for (std::int64_t p = begin; p < end; ++p) {
            const T* const plane = x.data + p * w.image();
            for (std::int64_t oy = 0; oy < w.y.count; ++oy) {
                for (std::int64_t ox = 0; ox < w.x.count; ox += lanes) {
                    const std::int64_t n = std::min(lanes, w.x.count - ox);
                    max_row(w, plane, x.data + w.planes * w.image(), oy, ox, n, best, cell);
                    for (std::int64_t k = 0; k < lanes; ++k) narrow[k] = static_cast<M>(cell[k]);
                    const std::int64_t out = p * w.count() + oy * w.x.count + ox;
                    if (add)
                        for (std::int64_t k = 0; k < n; ++k) y[out + k] += best[k];
                    else std::copy_n(best, n, y + out);
                    std::copy_n(narrow, n, at + out);
                }
            }
        }
    });
}

// Calls visit(element of the image, element of the windows) for each window with a maximum. Skips
// numbers of cells outside the window or the image, which can only come from a caller's own `at`.
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

// Sets gx to gy at the maxima and to 0 elsewhere, or adds gy to gx at the maxima.
template <class T, class M>
CATENA_KERNEL void scatter(const auto& call, const Tensor<const T>& windows, const M* at,
                           const Tensor<T>& images, bool add) {
    const Windows w = windows_of(call, images.shape, windows.shape);
    const T* const gy = windows.data;
    T* const gx = images.data;
    const bool tiled = is_tiled(w);
    call.parallel(w.planes, w.work(), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        if (tiled) return scatter_to_tiles(w, begin, end, gy, at, gx, add);
        for (std::int64_t p = begin; p < end; ++p) {
            T* const out = gx + p * w.image();
            if (!add) std::fill_n(out, w.image(), T(0));
            for_each_maximum(w, at, p, [&](std::int64_t pixel, std::int64_t window) CATENA_LAMBDA {
                gx[pixel] += gy[window];
            });
        }
    });
}

// y = x at the maxima, 0 for windows without one; or added to y. The adjoint of scatter().
template <class T, class M>
CATENA_KERNEL void gather(const auto& call, const Tensor<const T>& images, const M* at,
                          const Tensor<T>& windows, bool add) {
    const Windows w = windows_of(call, images.shape, windows.shape);
    const T* const x = images.data;
    T* const y = windows.data;
    call.parallel(w.planes, w.work(), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t p = begin; p < end; ++p) {
            if (!add) std::fill_n(y + p * w.count(), w.count(), T(0));
            for_each_maximum(w, at, p, [&](std::int64_t pixel, std::int64_t window) CATENA_LAMBDA {
                y[window] += x[pixel];
            });
        }
    });
}

// Calls max_pooling_2d_grad with the attributes of g's function, for images of this size.
template <class G>
Var call_scatter(const G& g, const Var& gy, const Var& at, Shape size) {
    return call<"catena.max_pooling_2d_grad">(
        {gy, at},
        {g.same("ksize"), g.same("stride"), g.same("pad"), g.same("cover_all"), set("size", size)});
}

inline void check_cells(const auto& s, const Windows& w) {
    s.check(same(s.dtype(1), cell_type(w)), "at.dtype", text_of(cell_type(w)), text_of(s.dtype(1)),
            CATENA_E_DTYPE);
}

struct MaxPooling2D {
    static constexpr auto about =
        describe("catena.max_pooling_2d",
                 "y = maximum of each window of x\n\n"
                 "Of equal values the first, row by row, gets the gradient; a NaN is the maximum. "
                 "A window completely outside the image gives -inf and gets no gradient.",
                 in(Port("x", "(N, C, H, W)")),
                 out(Port("y", "(N, C, oh, ow)"), Port("at").of("M").hidden()), ksize_attr,
                 stride_attr, pad_attr, cover_all_attr)
            .example("x=(2,2,4,6) ksize=2")
            .example("x=(1,2,5,4) ksize=3 stride=2 pad=1")
            .example("x=(2,1,5,4) ksize=[3,2] stride=[2,1] pad=[1,0] cover_all=false")
            .example("x=(1,1,17,17) ksize=16 stride=1");
    using types = CellTypes;
    static constexpr auto retain_y = ports(1);
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const Windows w = infer_pooling(s, s.template attr<"cover_all">());
        if (w.cells() > most_cells) [[unlikely]]
            s.check(false, "ksize", "at most " + std::to_string(most_cells) + " cells", w.cells(),
                    CATENA_E_INVALID);
        const Shape x = s.x(0);
        s.y(1, {x[0], x[1], w.y.count, w.x.count}, cell_type(w));
    }
    static void gradient(const auto& g) {
        g.gx(0, call_scatter(g, g.gy(0), g.y(1), g.x_shape(0).subspan(2)));
    }

    template <class T, class M>
    CATENA_KERNEL static void forward(const auto& call) {
        maxima(call, call.template x<T>(0), call.template y<T>(0), call.template y<M>(1).data,
               call.adds(0));
    }
    template <class T, class M>
    CATENA_KERNEL static void backward(const auto& call) {
        scatter(call, call.template gy<T>(0), call.template y<M>(1).data, call.template gx<T>(0),
                call.adds(0));
    }
};

struct MaxPooling2DGrad {
    static constexpr auto about =
        describe("catena.max_pooling_2d_grad", "gx = gy where the maxima were, 0 elsewhere",
                 in(Port("gy", "(N, C, oh, ow)"), Port("at").of("M").not_differentiable()),
                 out(Port("gx", "(N, C, H, W)")), ksize_attr, stride_attr, pad_attr, cover_all_attr,
                 size_attr)
            .internal()
            .example("gy=(2,2,2,3) at=(2,2,2,3)[0,3] ksize=2 size=[4,6]")
            .example("gy=(1,1,2,2) at=(1,1,2,2)[0,255] ksize=16 stride=1 size=[17,17]");
    using types = CellTypes;
    static constexpr auto retain_x = ports(1);
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        infer_images(s, s.template attr<"cover_all">());
        s.check_shape(1, s.x(0));
        const Ints size = s.template attr<"size">();
        check_cells(s, windows_of(s, size[0], size[1]));
    }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.max_pooling_2d_at">(
                    {g.gy(0), g.x(1)},
                    {g.same("ksize"), g.same("stride"), g.same("pad"), g.same("cover_all")}));
    }

    template <class T, class M>
    CATENA_KERNEL static void forward(const auto& call) {
        scatter(call, call.template x<T>(0), call.template x<M>(1).data, call.template y<T>(0),
                call.adds(0));
    }
    template <class T, class M>
    CATENA_KERNEL static void backward(const auto& call) {
        gather(call, call.template gy<T>(0), call.template x<M>(1).data, call.template gx<T>(0),
               call.adds(0));
    }
};

struct MaxPooling2DAt {
    static constexpr auto about =
        describe("catena.max_pooling_2d_at", "y = x where the maxima of other images were",
                 in(Port("x", "(N, C, H, W)"), Port("at").of("M").not_differentiable()),
                 out(Port("y", "(N, C, oh, ow)")), ksize_attr, stride_attr, pad_attr,
                 cover_all_attr)
            .internal()
            .example("x=(2,2,4,6) at=(2,2,2,3)[0,3] ksize=2")
            .example("x=(1,1,17,17) at=(1,1,2,2)[0,255] ksize=16 stride=1");
    using types = CellTypes;
    static constexpr auto retain_x = ports(1);
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const Windows w = infer_pooling(s, s.template attr<"cover_all">());
        s.check_shape(1, {s.x(0)[0], s.x(0)[1], w.y.count, w.x.count});
        check_cells(s, w);
    }
    static void gradient(const auto& g) {
        g.gx(0, call_scatter(g, g.gy(0), g.x(1), g.x_shape(0).subspan(2)));
    }

    template <class T, class M>
    CATENA_KERNEL static void forward(const auto& call) {
        gather(call, call.template x<T>(0), call.template x<M>(1).data, call.template y<T>(0),
               call.adds(0));
    }
    template <class T, class M>
    CATENA_KERNEL static void backward(const auto& call) {
        scatter(call, call.template gy<T>(0), call.template x<M>(1).data, call.template gx<T>(0),
                call.adds(0));
    }
};

CATENA_FUNCTIONS(MaxPooling2D, MaxPooling2DAt, MaxPooling2DGrad);

}  // namespace catena::plugins
