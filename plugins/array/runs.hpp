// Parallel copies of runs, which are equally spaced elements; and checks of shapes.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Sets to[i * to_step] to from[i * from_step] for i < n, or adds it.
template <class T>
CATENA_KERNEL void move_run(const T* from, std::int64_t from_step, T* to, std::int64_t to_step,
                            std::int64_t n, bool add) {
    if (from_step == 1 && to_step == 1) {
        if (!add) return void(std::copy_n(from, n, to));
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
        return;
    }
    for (std::int64_t i = 0; i < n; ++i) store(to[i * to_step], add, from[i * from_step]);
}

// Calls body(row, first, n) in parallel for pieces of rows: n elements of a row from `first` on.
template <class Call, class Body>
void for_each_piece(const Call& call, std::int64_t rows, std::int64_t length, const Body& body) {
    constexpr std::int64_t most = piece_work;
    const std::int64_t pieces = (length + most - 1) / most;
    auto run = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t u = begin; u < end; ++u) {
            const std::int64_t first = u % pieces * most;
            body(u / pieces, first, std::min(most, length - first));
        }
    };
    parallel<Call::isa>(call.context(), rows * pieces, std::min(length, most), run);
}

template <class T>
void fill_zeros(const auto& call, Tensor<T> y) {
    for_each_piece(call, 1, y.size(),
                   [&](std::int64_t, std::int64_t first, std::int64_t n)
                       CATENA_LAMBDA { std::fill_n(y.data + first, n, T(0)); });
}

// Returns the attribute `shape`, checked.
inline Ints shape_attribute(const auto& s) {
    const Ints shape = s.template attr<"shape">();
    const bool fits = shape.size() <= CATENA_MAX_NDIM &&
                      std::ranges::all_of(shape, [](std::int64_t d) { return d >= 0; });
    s.check(fits, "shape", "one that an array can have", shape, CATENA_E_INVALID);
    return shape;
}

}  // namespace catena::plugins
