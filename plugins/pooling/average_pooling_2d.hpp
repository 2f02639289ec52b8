// Means over windows of images. The forward pass sums down the columns, then along the rows; the
// backward pass works in the reverse order.
#pragma once

#include <bit>

#include "windows.hpp"

namespace catena::plugins {

// The maximum total number of places in the rows that are processed at once.
inline constexpr std::int64_t most_places = 4096;
// Rows with fewer numbers are processed as if they had this many, if there is room: the next row
// overwrites the excess. Loops of this fixed length are vectorized; shorter ones would not be.
inline constexpr std::int64_t least_row = 32;
template <class T>
using Places = T[most_places + 4 * least_row];

// Adjacent targets in a row and `cells` places of each target's window, which are processed at
// once. Sources lie `spread` places apart; windows begin `step` places apart.
struct Stretch {
    std::int64_t extent() const { return (targets - 1) * step + cells; }

    std::int64_t spread;
    std::int64_t step;
    std::int64_t target = 0;  // the first target
    std::int64_t targets = 0;
    std::int64_t cells = 0;
    std::int64_t source = 0;  // the first source
    std::int64_t sources = 0;
    std::int64_t left = 0;  // places before the first source
    bool add = false;       // to the results of earlier cells
};

// Calls visit(stretch) for each stretch of a row; those with the same targets follow each other.
// Target i takes the sources on ksize places from start + i * step on; source i is on i * spread.
CATENA_KERNEL void for_each_stretch(std::int64_t sources, std::int64_t spread, std::int64_t targets,
                                    std::int64_t step, std::int64_t start, std::int64_t ksize,
                                    const auto& visit) {
    constexpr std::int64_t most_cells = most_places / 2;
    const auto behind = [&](std::int64_t place) CATENA_LAMBDA {  // number of sources before a place
        return place <= 0 ? 0 : std::min(sources, (place + spread - 1) / spread);
    };
    const std::int64_t most = (most_places - std::min(ksize, most_cells)) / step + 1;
    for (std::int64_t i = 0; i < targets; i += most) {
        Stretch s{spread, step, i, std::min(most, targets - i)};
        const std::int64_t place = start + i * step;
        const std::int64_t last = place + (s.targets - 1) * step;
        // No target takes a source from the cells outside [begin, end).
        const std::int64_t begin = std::clamp<std::int64_t>(-last, 0, ksize);
        const std::int64_t end = std::clamp((sources - 1) * spread - place + 1, begin, ksize);
        for (std::int64_t c = begin; c == begin || c < end; c += most_cells) {
            s.add = c > begin;
            s.cells = std::clamp<std::int64_t>(end - c, 1, most_cells);
            s.source = behind(place + c);
            s.sources = end == begin ? 0 : behind(place + c + s.extent()) - s.source;
            s.left = s.sources == 0 ? 0 : s.source * spread - place - c;
            visit(s);
        }
    }
}

// Calls row(n), or row() with a fixed length of at least n, `half` or least_row, if `room` permits.
template <std::int64_t half = 0>
CATENA_KERNEL void for_row(std::int64_t n, std::int64_t room, const auto& row) {
    if (n <= half && room >= half) row(half);
    else if (n <= least_row && room >= least_row) row(least_row);
    else row(n);
}

template <class T>
CATENA_KERNEL void clear(T* to, std::int64_t n) {
    if (n <= 0) return;
    for_row<16>(n, least_row, [&](std::int64_t all) CATENA_LAMBDA { std::fill_n(to, all, T(0)); });
}

// Sets to[i * spread] to share * from[i]. Places between must be 0 already unless spread is 2.
template <class T>
CATENA_KERNEL void put(const T* from, std::int64_t n, std::int64_t spread, T share, T* to) {
    if (spread == 1) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] = share * from[i];
    } else if (spread == 2) {  // contiguous stores
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) {
            to[2 * i] = share * from[i];
            to[2 * i + 1] = 0;
        }
    } else {
        for (std::int64_t i = 0; i < n; ++i) to[i * spread] = share * from[i];
    }
}
// Sets to[i] to share * from[i * step], or adds it to to[i].
template <class T>
CATENA_KERNEL void take(const T* from, std::int64_t n, std::int64_t step, T share, bool add,
                        T* to) {
    if (add) {
        for (std::int64_t i = 0; i < n; ++i) to[i] += share * from[i * step];
    } else if (step == 1) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] = share * from[i];
    } else if (step == 2) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] = share * from[2 * i];
    } else {
        for (std::int64_t i = 0; i < n; ++i) to[i] = share * from[i * step];
    }
}

// Sets `to` to the sum of `rows` rows of n numbers, or adds the sum to it.
template <class T>
CATENA_KERNEL void add_rows(const T* from, std::int64_t pitch, std::int64_t rows, std::int64_t n,
                            bool add, T* to) {
    const T* const second = from + pitch;
    const T* const third = second + pitch;
    std::int64_t i = 0;
    if (add) {
        i = rows % 2;
        for (std::int64_t f = 0; i == 1 && f < n; ++f) to[f] += from[f];
    } else if (rows == 0) {
        std::fill_n(to, n, T(0));
    } else if (rows == 1) {
        CATENA_LOOP
        for (std::int64_t f = 0; f < n; ++f) to[f] = from[f];
        i = 1;
    } else if (rows % 2 == 0) {
        CATENA_LOOP
        for (std::int64_t f = 0; f < n; ++f) to[f] = from[f] + second[f];
        i = 2;
    } else {
        CATENA_LOOP
        for (std::int64_t f = 0; f < n; ++f) to[f] = from[f] + second[f] + third[f];
        i = 3;
    }
    for (; i < rows; i += 2) {
        const T* const even = from + i * pitch;
        const T* const odd = even + pitch;
        CATENA_LOOP
        for (std::int64_t f = 0; f < n; ++f) to[f] += even[f] + odd[f];
    }
}

// Sets to[f] to the sum of from[f] .. from[f + k - 1] for each f below n. Each of log2(k) passes
// adds sums of the previous pass, so the result is as exact as pairwise summation.
template <class T>
CATENA_KERNEL void add_shifted(const T* from, std::int64_t n, std::int64_t k, T* to) {
    const T* sums = from;  // each of m numbers
    if (k == 1) std::copy_n(from, n, to);
    std::int64_t m = 1;
    for (int bit = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k))) - 1;
         bit-- > 0;) {
        const bool odd = (k >> bit & 1) != 0;
        const T* const second = sums + m;
        const T* const third = from + 2 * m;
        m = 2 * m + odd;
        const std::int64_t count = n + k - m;
        if (odd) {
            CATENA_LOOP
            for (std::int64_t f = 0; f < count; ++f) to[f] = sums[f] + second[f] + third[f];
        } else {
            CATENA_LOOP
            for (std::int64_t f = 0; f < count; ++f) to[f] = sums[f] + second[f];
        }
        sums = to;
    }
}

inline std::int64_t averaging_work(const Windows& w) {  // for one plane
    return w.image() + w.count() * (w.y.ksize / w.y.stride + 4);
}

// Sets y to the mean of each window of x, or adds it: sums down the columns, then along the rows.
template <class T>
CATENA_KERNEL void average(const auto& call, const Tensor<const T>& images, const Tensor<T>& means,
                           bool add) {
    const Windows w = windows_of(call, images.shape, means.shape);
    const T* const x = images.data;
    T* const y = means.data;
    const T share = T(1) / static_cast<T>(w.cells());
    const T* const x_end = x + w.planes * w.image();
    const std::int64_t work = averaging_work(w);
    call.parallel(w.planes, work, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        alignas(64) Places<T> columns;
        alignas(64) Places<T> sums;
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
                add_shifted(columns, n * pitch - s.cells + 1, s.cells, sums);
                for (std::int64_t r = 0; r < n; ++r) {
                    T* const to = y + (q + r) * w.x.count + s.target;
                    // With a longer step, excess elements would be read beyond the end of `sums`.
                    const bool whole = s.targets == w.x.count && !adds && s.step <= 4;
                    for_row(s.targets, whole ? y_end - to : 0,
                            [&](std::int64_t width) CATENA_LAMBDA {
                                take(sums + r * pitch, width, s.step, share, adds, to);
                            });
                }
            }
        };
        for_each_stretch(w.x.extent, 1, w.x.count, w.x.stride, -w.x.pad, w.x.ksize, visit);
    });
}

// Adds rows [a, b) of the windows' sums to the image rows that these windows cover. Earlier calls
// have added the rows before a. Image rows that no window covers become 0.
template <class T>
CATENA_KERNEL void spread_down(const Windows& w, const Stretch& s, const T* sums, std::int64_t a,
                               std::int64_t b, bool add, T* gx, T* gx_end) {
    const Side& side = w.y;
    const auto after = [&](std::int64_t o) {
        return (o - 1) * side.stride + side.ksize - side.pad;
    };
    const std::int64_t top = a == 0 ? 0 : std::min(a * side.stride - side.pad, after(a));
    const std::int64_t bottom = b == side.count ? side.extent : std::min(side.extent, after(b));
    std::int64_t begin = a;  // window rows [begin, end) cover image row y
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

// The adjoint of average(). Distributes the windows' gradients along rows, then down columns.
template <class T>
CATENA_KERNEL void spread(const auto& call, const Tensor<const T>& means, const Tensor<T>& images,
                          bool add) {
    const Windows w = windows_of(call, images.shape, means.shape);
    const T* const gy = means.data;
    T* const gx = images.data;
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
                // Whole planes, or equal parts of each: results do not depend on the thread count.
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
                    // Rows [a, b) of the windows of plane p are among the n rows.
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
