// The largest or smallest elements along an axis, in order; with all of them, a sort.
#pragma once

#include <catena/plugin/rows.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Integers that sort as x does, and as NumPy sorts: -0 equals 0, and all NaN are equal and last.
template <class T>
using Ordered = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
template <class T>
CATENA_FN Ordered<T> ordered(T x) {
    using O = Ordered<T>;
    constexpr O sign = ~(~O(0) >> 1);
    if constexpr (std::is_integral_v<T>) return static_cast<O>(x) ^ sign;
    else {
        if (x != x) return ~O(0);
        const O bits = std::bit_cast<O>(x + T(0));  // -0 becomes 0
        return (bits & sign) != 0 ? ~bits : bits | sign;
    }
}

struct Topk {
    static constexpr auto about =
        describe(
            "catena.topk",
            "y = the k largest or smallest elements along an axis, in order, and their indices "
            "in x, as int64\n\n"
            "Equal elements keep their order. NaN counts as the largest, as in NumPy.",
            in("x"), out("y", Port("indices").of("I").not_differentiable()),
            required<std::int64_t>("k", "number of elements"),
            attr("axis", -1, "the axis, negative: from the last"),
            attr("largest", true, "from the largest element on, otherwise from the smallest"))
            .example("x=(2,5) k=2")
            .example("x=(5,2) k=5 axis=0 largest=false")
            .example("x=(2,3,2) k=1 axis=1");
    using types =
        Rows<Row<float, std::int64_t>, Row<double, std::int64_t>, Row<std::int32_t, std::int64_t>,
             Row<std::int64_t, std::int64_t>, Row<std::uint8_t, std::int64_t>>;
    using isas = IsaList<Isa::baseline>;
    static constexpr auto retain_y = ports(1);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        const std::size_t axis = s.axis(s.template attr<"axis">(), x.size());
        const std::int64_t k = s.template attr<"k">();
        s.check(k >= 0 && k <= x[axis], "k", "0 to " + std::to_string(x[axis]), k,
                CATENA_E_INVALID);
        std::int64_t shape[CATENA_MAX_NDIM];
        std::copy(x.begin(), x.end(), shape);
        shape[axis] = k;
        s.y(0, Shape(shape, x.size()));
        s.y(1, Shape(shape, x.size()), dtype_of<std::int64_t>());
    }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.put_along_axis_add">({g.gy(0), g.y(1)},
                                                  {set("shape", g.x_shape(0)), g.same("axis")}));
    }

    template <class T, class I>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_FORWARD) return;
        plan.scratch_bytes =
            static_cast<std::uint64_t>(call.slots() * axis_of(call).length) * sizeof(Key<T>);
    }
    // Sorts keys of a value and its index, so that equal values keep their order.
    template <class T, class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const T* const x = call.template x<T>(0).data;
        T* const y = call.template y<T>(0).data;
        I* const indices = call.template y<I>(1).data;
        const Axis axis = axis_of(call);
        const std::int64_t k = call.template attr<"k">();
        constexpr int width = 8 * sizeof(Ordered<T>);
        const Ordered<T> flip = call.template attr<"largest">() ? ~Ordered<T>(0) : 0;
        const bool add = call.adds(0);
        Key<T>* const scratch = call.template scratch<Key<T>>();
        call.parallel(axis.count(), 8 * axis.length + 16,
                      [&](std::int64_t begin, std::int64_t end, std::int32_t slot) {
                          Key<T>* const keys = scratch + slot * axis.length;
                          for (std::int64_t line = begin; line < end; ++line) {
                              const std::int64_t outer = line / axis.inner;
                              const std::int64_t inner = line % axis.inner;
                              const T* const from = x + outer * axis.length * axis.inner + inner;
                              for (std::int64_t i = 0; i < axis.length; ++i) {
                                  const Key<T> value = ordered(from[i * axis.inner]) ^ flip;
                                  keys[i] = value << width | static_cast<Key<T>>(i);
                              }
                              if (k < axis.length)
                                  std::nth_element(keys, keys + k, keys + axis.length);
                              std::sort(keys, keys + k);
                              for (std::int64_t i = 0; i < k; ++i) {
                                  const auto at = static_cast<I>(static_cast<Ordered<T>>(keys[i]));
                                  const std::int64_t to = (outer * k + i) * axis.inner + inner;
                                  indices[to] = at;
                                  store(y[to], add, from[at * axis.inner]);
                              }
                          }
                      });
    }

    static Axis axis_of(const auto& call) {
        const Shape shape = call.template x<std::byte>(0).shape;
        return {shape, axis_index(call.template attr<"axis">(), shape.size())};
    }

private:
    __extension__ typedef unsigned __int128 Wide;
    template <class T>
    using Key = std::conditional_t<sizeof(T) <= 4, std::uint64_t, Wide>;
};

CATENA_FUNCTIONS(Topk);

}  // namespace catena::plugins
