// Concatenation of arrays along an axis.
#pragma once

#include <catena/plugin/rows.hpp>

#include "runs.hpp"

namespace catena::plugins {

struct Concat {
    static constexpr auto about =
        describe("catena.concat", "y = all x, concatenated along an axis",
                 in(Port("x", "arrays whose shapes differ only in that axis").variadic()),
                 out("y", Port("ends", "where each x ends along the axis").of("I").hidden()),
                 attr("axis", 1, "the axis to join along; negative: from the last"))
            .promotes()
            .example("x=(2,3) x=(2,1) x=(2,2)")
            .example("x=(2,3) x=(1,3) axis=0")
            .example("x=(2,1,2) x=(2,1,3) axis=-1")
            .example("x=(4)[0,1] axis=0");
    using isas = IsaList<Isa::baseline>;
    using types = Rows<Row<float, std::int64_t>, Row<double, std::int64_t>,
                       Row<std::int32_t, std::int64_t>, Row<std::int64_t, std::int64_t>,
                       Row<bool, std::int64_t>, Row<std::uint8_t, std::int64_t>>;
    static constexpr auto retain_y = ports(1);  // backward gets shapes of wanted gx only

    static void infer(const auto& s) {
        const Shape first = s.x(0);
        const std::size_t axis = s.axis(s.template attr<"axis">(), first.size());
        std::int64_t shape[CATENA_MAX_NDIM];
        std::copy(first.begin(), first.end(), shape);
        for (std::size_t i = 1; i < s.n_x(); ++i) {
            const Shape x = s.x(i);
            bool fits = x.size() == first.size();
            for (std::size_t d = 0; fits && d < x.size(); ++d) fits = d == axis || x[d] == first[d];
            if (!fits) [[unlikely]]
                s.check(false, ("x[" + std::to_string(i) + "].shape").c_str(),
                        text_of(first) + " but for axis " + std::to_string(axis), x);
            if (__builtin_add_overflow(shape[axis], x[axis], &shape[axis])) [[unlikely]]
                s.check(false, "x", "at most 2^63 - 1 elements along the axis", "more");
        }
        s.y(0, Shape(shape, first.size()));
        const auto n = static_cast<std::int64_t>(s.n_x());
        s.y(1, Shape(&n, 1), dtype_of<std::int64_t>());
    }
    static void gradient(const auto& g) {
        std::int64_t begin[CATENA_MAX_NDIM] = {};
        std::int64_t end[CATENA_MAX_NDIM];
        for (std::size_t i = 0; i < g.n_x(); ++i) {
            const Shape x = g.x_shape(i);
            const std::size_t axis = axis_of(g, x.size());
            end[axis] = begin[axis] + x[axis];
            std::fill_n(end, axis, std::numeric_limits<std::int64_t>::max());
            if (g.wants(i))
                g.gx(i, call<"catena.get_item">({g.gy(0)}, {set("begin", Ints(begin, axis + 1)),
                                                            set("end", Ints(end, axis + 1))}));
            begin[axis] = end[axis];
        }
    }

    template <class T, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        std::int64_t* const ends = call.template y<std::int64_t>(1).data;
        std::int64_t end = 0;
        for (std::size_t i = 0; i < call.raw().n_x; ++i) {
            const auto x = call.template x<T>(i);
            ends[i] = end += x.dim(axis_of(call, x.ndim()));
            for_each_run(call, x.shape, y.shape, end,
                         [&](std::int64_t from, std::int64_t to, std::int64_t n) {
                             move_run(x.data + from, 1, y.data + to, 1, n, call.adds(0));
                         });
        }
    }
    template <class T, class>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const std::int64_t* const ends = call.template y<std::int64_t>(1).data;
        for (std::size_t i = 0; i < call.raw().n_x; ++i) {
            const auto gx = call.template gx<T>(i);
            if (!gx) continue;
            for_each_run(call, gx.shape, gy.shape, ends[i],
                         [&](std::int64_t to, std::int64_t from, std::int64_t n) {
                             move_run(gy.data + from, 1, gx.data + to, 1, n, call.adds(i));
                         });
        }
    }

private:
    static std::size_t axis_of(const auto& call, std::size_t ndim) {
        return axis_index(call.template attr<"axis">(), ndim);
    }
    // Calls body(offset in x, offset in y, n) in parallel for runs of n elements that are
    // contiguous in x and in y. x ends at `end` along the axis of y.
    static void for_each_run(const auto& call, Shape x, Shape y, std::int64_t end,
                             const auto& body) {
        const std::size_t axis = axis_of(call, y.size());
        const Axis whole(y, axis);
        const std::int64_t length = x[axis] * whole.inner;
        for_each_piece(call, whole.outer, length,
                       [&](std::int64_t row, std::int64_t first, std::int64_t n) {
                           const std::int64_t begin = row * whole.length + end - x[axis];
                           body(row * length + first, begin * whole.inner + first, n);
                       });
    }
};

CATENA_FUNCTIONS(Concat);

}  // namespace catena::plugins
