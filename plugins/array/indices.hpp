// Indices along an axis: reading elements of the axis, and adding to them.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/add_rows.hpp>

#include "runs.hpp"

namespace catena::plugins {

// The type of the elements, then that of the indices.
using IndexedTypes = decltype(Pairs<std::int32_t, std::int64_t>::With<float>() +
                              Pairs<std::int32_t, std::int64_t>::With<double>() +
                              Pairs<std::int32_t, std::int64_t>::With<std::int32_t>() +
                              Pairs<std::int32_t, std::int64_t>::With<std::int64_t>());
// Reading also moves bytes: masks and images.
using ReadTypes = decltype(IndexedTypes() + Pairs<std::int32_t, std::int64_t>::With<bool>() +
                           Pairs<std::int32_t, std::int64_t>::With<std::uint8_t>());

// An array (outer, length, inner) whose middle axis is indexed, and n indices for each index
// before it: y[o, j, i] belongs to x[o, index, i]. The index is ids[j] if all lines share the n
// indices (take), otherwise ids[o, j, i] (take_along_axis). A negative one counts from the end.
struct Picked {
    CATENA_FN std::int64_t index(std::int64_t k) const {
        const std::int64_t id = wide ? static_cast<const std::int64_t*>(ids)[k]
                                     : std::int64_t{static_cast<const std::int32_t*>(ids)[k]};
        return id < 0 ? id + length : id;
    }
    CATENA_FN std::int64_t size() const { return outer * n * inner; }

    const void* ids;
    std::int64_t outer, length, n, inner;
    std::int32_t wide, shared;
};

// Throws CATENA_E_VALUE for the first index that is not in [-length, length).
template <class I>
void check_indices(const char* function, const char* name, const I* ids, Shape shape,
                   std::int64_t length) {
    const std::int64_t n = size_of(shape);
    const auto is_wrong = [&](std::int64_t i) {
        return std::int64_t{ids[i]} < -length || std::int64_t{ids[i]} >= length;
    };
    bool wrong = false;
    for (std::int64_t i = 0; i < n; ++i) wrong |= is_wrong(i);
    if (!wrong) [[likely]]
        return;
    std::int64_t i = 0;
    while (!is_wrong(i)) ++i;
    fail(CATENA_E_VALUE, function, text_of_element(name, i, shape).c_str(),
         length == 0
             ? "no index, for the axis has no elements"
             : "an index from -" + std::to_string(length) + " to " + std::to_string(length - 1),
         ids[i]);
}

// The indices of a call that reads or adds to an array of shape x.
template <class I>
Picked picked(const auto& call, Shape x, Tensor<const I> indices, bool shared) {
    const std::size_t axis = axis_index(call.template attr<"axis">(), x.size());
    const Picked p = {.ids = indices.data,
                      .outer = size_of(x.first(axis)),
                      .length = x[axis],
                      .n = shared ? indices.size() : indices.dim(axis),
                      .inner = size_of(x.subspan(axis + 1)),
                      .wide = sizeof(I) == 8,
                      .shared = shared};
    check_picked(call, p, indices);
    return p;
}
template <class F, Isa isa, class I>
void check_picked(const Call<F, isa>&, const Picked& p, Tensor<const I> indices) {
    check_indices(F::about.name, "indices", indices.data, indices.shape, p.length);
}

// Sets y to the elements of x at the indices, or adds them to y.
template <class T>
CATENA_KERNEL void read_picked(const auto& call, const Picked& p, const T* x, T* y, bool add) {
    call.parallel(p.outer * p.n, p.inner, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end;) {
            const std::int64_t o = row / p.n;
            const std::int64_t j = row % p.n;
            const std::int64_t rows = std::min(end - row, p.n - j);
            const T* const from = x + o * p.length * p.inner;
            T* const to = y + row * p.inner;
            const std::int64_t first = p.shared ? j : row * p.inner;
            if (p.inner == 1) {
                for (std::int64_t k = 0; k < rows; ++k) store(to[k], add, from[p.index(first + k)]);
            } else if (p.shared) {
                for (std::int64_t k = 0; k < rows; ++k)
                    move_run(from + p.index(first + k) * p.inner, 1, to + k * p.inner, 1, p.inner,
                             add);
            } else {
                for (std::int64_t k = 0; k < rows; ++k)
                    for (std::int64_t i = 0; i < p.inner; ++i) {
                        const std::int64_t at = k * p.inner + i;
                        store(to[at], add, from[p.index(first + at) * p.inner + i]);
                    }
            }
            row += rows;
        }
    });
}

// Calls body(o, first, last) in parallel for lanes first .. last of each o: no two bodies share a
// line of the axis, so each can change its lines in the order of the indices.
template <class Body>
void for_each_lanes(const auto& call, const Picked& p, const Body& body) {
    constexpr std::int64_t most = 64;
    const std::int64_t strips = (p.inner + most - 1) / most;
    call.parallel(p.outer * strips, p.n * std::min(most, p.inner),
                  [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t u = begin; u < end; ++u) {
                          const std::int64_t first = u % strips * most;
                          body(u / strips, first, std::min(first + most, p.inner));
                      }
                  });
}

// Adds src to the elements of y at the indices, in their order. Without `add`, y is 0 before.
template <class T>
CATENA_KERNEL void add_picked(const auto& call, const Picked& p, const T* src, Tensor<T> y,
                              bool add) {
    if (!add) fill_zeros(call, y);
    if (p.shared)
        return add_rows(call, {.groups = p.outer, .n = p.n, .table = p.length, .size = p.inner},
                        src, y.data, [&](std::int64_t j) CATENA_LAMBDA { return p.index(j); });
    for_each_lanes(call, p, [&](std::int64_t o, std::int64_t first, std::int64_t last) {
        T* const to = y.data + o * p.length * p.inner;
        for (std::int64_t j = 0; j < p.n; ++j)
            for (std::int64_t i = first; i < last; ++i) {
                const std::int64_t at = (o * p.n + j) * p.inner + i;
                to[p.index(at) * p.inner + i] += src[at];
            }
    });
}

// Sets each element of y to 1 + the last position whose index is the element's, or to 0.
template <class I>
CATENA_KERNEL void set_last(const auto& call, const Picked& p, Tensor<I> y) {
    fill_zeros(call, y);
    for_each_lanes(call, p, [&](std::int64_t o, std::int64_t first, std::int64_t last) {
        I* const to = y.data + o * p.length * p.inner;
        for (std::int64_t j = 0; j < p.n; ++j)
            for (std::int64_t i = first; i < last; ++i)
                to[p.index((o * p.n + j) * p.inner + i) * p.inner + i] = static_cast<I>(j + 1);
    });
}

// Functions of x and indices that read x at the indices (axis: of x), and their gradients.
template <bool shared>
struct ReadsPicked {
    using isas = IsaList<Isa::baseline>;
    using types = ReadTypes;
    static constexpr auto retain_x = ports(1);
    static constexpr bool one_for_all = shared;  // the indices of a line
    static constexpr int adds_in = CATENA_PHASE_BACKWARD;

    template <class T, class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        read_picked(call, picked(call, x.shape, call.template x<I>(1), shared), x.data,
                    call.template y<T>(0).data, call.adds(0));
    }
    template <class T, class I>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        add_picked(call, picked(call, gx.shape, call.template x<I>(1), shared),
                   call.template gy<T>(0).data, gx, call.adds(0));
    }
};
// Functions of x and indices that add x to zeros at the indices (axis: of y), and their gradients.
template <bool shared>
struct AddsPicked {
    using isas = IsaList<Isa::baseline>;
    using types = IndexedTypes;
    static constexpr auto retain_x = ports(1);
    static constexpr bool one_for_all = shared;  // the indices of a line
    static constexpr int adds_in = CATENA_PHASE_FORWARD;

    template <class T, class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        add_picked(call, picked(call, y.shape, call.template x<I>(1), shared),
                   call.template x<T>(0).data, y, call.adds(0));
    }
    template <class T, class I>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        read_picked(call, picked(call, gy.shape, call.template x<I>(1), shared), gy.data,
                    call.template gx<T>(0).data, call.adds(0));
    }
};

}  // namespace catena::plugins
