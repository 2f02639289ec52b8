// Windows along the axes of images (N, C, ...), for compositions.
#pragma once

#include "catena/plugin/compose.hpp"

namespace catena::plugin {

// The numbers of a list attribute for n axes, of which it has one for each or one for all;
// `otherwise` if it is empty.
template <Name name>
List per_axis(const auto& g, std::size_t n, const List& otherwise = {}) {
    const Ints numbers = g.template attr<name>();
    if (numbers.empty() && !otherwise.empty()) return otherwise;
    g.check(numbers.size() == 1 || numbers.size() == n, name.text, "one number or " + text_of(n),
            numbers, CATENA_E_INVALID);
    return numbers.size() == n ? list_of(numbers) : List(n, numbers[0]);
}

// The number of axes of x (N, C, ...) behind C; at least 1. wanted: 0 for any.
inline std::size_t image_axes(const auto& g, std::size_t wanted = 0) {
    if (wanted > 0) g.check_ndim(0, wanted + 2);
    else g.check_least_ndim(0, 3);
    return g.x_meta(0).shape().size() - 2;
}

// For compositions that make calls for each element of a filter.
inline void check_parts(const auto& g, const char* what, const IntList& ksize) {
    constexpr std::int64_t most = 1 << 12;
    g.check(size_of(ksize) <= most, what, "a product of at most " + text_of(most), ksize,
            CATENA_E_INVALID);
}

// n elements along an axis, from the first one on, `step` places apart.
inline Var every(const Var& x, std::int64_t axis, std::int64_t first, std::int64_t step,
                 std::int64_t n) {
    const auto d = static_cast<std::size_t>(axis);
    List from(d + 1), to(d + 1, std::numeric_limits<std::int64_t>::max()), steps(d + 1, 1);
    from[d] = first;
    to[d] = first + (n > 0 ? step * (n - 1) + 1 : 0);
    steps[d] = step;
    return get_item(x, from, to, steps);
}

}  // namespace catena::plugin
