// Labels: class indices for scores of shape (N, classes, ...); labels may be ignored.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/rows.hpp>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr Attribute ignore_label =
    attr("ignore_label", -1, "rows with this label are ignored");
using LabelTypes = Rows<Row<float, std::int32_t>, Row<float, std::int64_t>,
                        Row<double, std::int32_t>, Row<double, std::int64_t>>;

// Checks that t has the shape of x without axis 1. classes: the name of that axis in errors.
inline void check_labels(const auto& s, const char* classes) {
    const Shape x = s.x(0);
    s.check_least_ndim(0, 2);
    s.check(x[1] >= 1, classes, "at least 1 class", x[1]);
    std::int64_t shape[CATENA_MAX_NDIM];
    shape[0] = x[0];
    std::copy(x.begin() + 2, x.end(), shape + 1);
    s.check_shape(1, Shape(shape, x.size() - 1));
}

// Returns how many labels are not ignored. Throws CATENA_E_VALUE for the first one out of range.
template <class I>
std::int64_t count_labels(const auto& call, Tensor<const I> t, std::int64_t classes,
                          std::int64_t ignored) {
    std::int64_t count = 0;
    bool right = true;
    const std::int64_t n = t.size();
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t label = t[i];
        const bool counts = label != ignored;
        count += counts;
        right = right && (!counts || (label >= 0 && label < classes));
    }
    if (right) [[likely]]
        return count;
    std::int64_t i = 0;
    while (t[i] == ignored || (t[i] >= 0 && t[i] < classes)) ++i;
    call.fail(CATENA_E_VALUE, text_of_element("t", i, t.shape).c_str(),
              "a label from 0 to " + std::to_string(classes - 1) + ", or " +
                  std::to_string(ignored) + " to ignore",
              t[i]);
}

}  // namespace catena::plugins
