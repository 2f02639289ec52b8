// Permutation of axes.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Writes x's strides by y's axes: axis d of y is axis axes[d] of x; if inverted, the reverse.
template <class T>
void permuted_strides(const auto& call, Tensor<T> x, bool inverted, std::int64_t* strides) {
    const Ints axes = call.template attr<"axes">();
    const std::size_t n = x.ndim();
    for (std::size_t d = 0; d < n; ++d) {
        const std::size_t from = axes.empty() ? n - 1 - d : axis_index(axes[d], n);
        if (inverted) strides[from] = x.count(d + 1, n);
        else strides[d] = x.count(from + 1, n);
    }
}
// Sets y to x with permuted axes, or adds that to y.
template <class T>
void permute(const auto& call, Tensor<const T> x, Tensor<T> y, bool inverted, bool add) {
    const std::size_t n = y.ndim();
    if (n == 0) return store(y[0], add, x[0]);
    if (y.size() == 0) return;
    std::int64_t strides[CATENA_MAX_NDIM];
    permuted_strides(call, x, inverted, strides);
    // Tiles span two axes: `fast`, which has the smallest stride in x, and y's last axis.
    std::size_t fast = 0;
    for (std::size_t d = 0; d < n; ++d)
        if (y.dim(d) != 1 && (y.dim(fast) == 1 || strides[d] < strides[fast])) fast = d;
    const std::size_t last = n - 1;
    const std::int64_t width = y.dim(last);
    const std::int64_t step = strides[last];
    const std::int64_t tall = fast == last ? 1 : y.dim(fast);
    const std::int64_t jump = fast == last ? 0 : strides[fast];
    const std::int64_t leap = fast == last ? 0 : y.count(fast + 1, n);
    // A unit of work: a row of tiles along y's last axis, at one index of all other axes.
    constexpr std::int64_t tile = 32;
    const std::int64_t tiles = (tall + tile - 1) / tile;
    const std::int64_t others = y.size() / (width * tall);
    call.parallel(
        others * tiles, width * std::min(tile, tall), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t u = begin; u < end; ++u) {
                std::int64_t from = 0;
                std::int64_t to = 0;
                std::int64_t rest = u / tiles;
                std::int64_t stride = width;
                for (std::size_t d = last; d-- > 0; stride *= y.dim(d)) {
                    if (d == fast) continue;
                    from += rest % y.dim(d) * strides[d];
                    to += rest % y.dim(d) * stride;
                    rest /= y.dim(d);
                }
                const std::int64_t top = u % tiles * tile;
                const std::int64_t bottom = std::min(top + tile, tall);
                for (std::int64_t left = 0; left < width; left += tile) {
                    const std::int64_t right = tall == 1 ? width : std::min(left + tile, width);
                    for (std::int64_t i = top; i < bottom; ++i)
                        for (std::int64_t j = left; j < right; ++j)
                            store(y[to + i * leap + j], add, x[from + i * jump + j * step]);
                    if (tall == 1) break;
                }
            }
        });
}

struct Transpose {
    static constexpr auto about =
        describe("catena.transpose", "y = x with its axes in another order", in("x"), out("y"),
                 attr("axes", Ints{}, "axis of x for each axis of y; empty: reversed"))
            .example("x=(2,3)")
            .example("x=(2,3,4) axes=[2,0,1]")
            .example("x=(2,3) axes=[-1,0]");
    using isas = IsaList<Isa::baseline>;
    using types = Elements;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const Ints axes = s.template attr<"axes">();
        const Shape x = s.x(0);
        s.check(axes.empty() || axes.size() == x.size(), "axes", text_of(x.size()) + " axes", axes,
                CATENA_E_INVALID);
        std::int64_t shape[CATENA_MAX_NDIM];
        std::uint32_t seen = 0;
        for (std::size_t d = 0; d < x.size(); ++d) {
            const std::size_t a =
                axes.empty() ? x.size() - 1 - d : s.axis(axes[d], x.size(), "axes");
            s.check((seen >> a & 1) == 0, "axes", "each axis once", axes, CATENA_E_INVALID);
            seen |= 1u << a;
            shape[d] = x[a];
        }
        s.y(0, Shape(shape, x.size()));
    }
    static void gradient(const auto& g) {
        const Ints axes = g.template attr<"axes">();
        std::int64_t inverse[CATENA_MAX_NDIM];
        for (std::size_t d = 0; d < axes.size(); ++d)
            inverse[axis_index(axes[d], axes.size())] = static_cast<std::int64_t>(d);
        g.gx(0, transpose(g.gy(0), Ints(inverse, axes.size())));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        permute(call, call.template x<T>(0), call.template y<T>(0), false, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        permute(call, call.template gy<T>(0), call.template gx<T>(0), true, call.adds(0));
    }
};

CATENA_FUNCTIONS(Transpose);

}  // namespace catena::plugins
