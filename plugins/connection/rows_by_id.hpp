// Rows by id: gathered from a table, and added up into one.
#pragma once

#include <algorithm>

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

using IdTypes = Rows<Row<std::int32_t, float>, Row<std::int64_t, float>, Row<std::int32_t, double>,
                     Row<std::int64_t, double>>;

inline constexpr Attribute ignore_label_attribute =
    attr("ignore_label", Ints{}, "one or several ids, whose row is 0 and gets no gradient");

// The ids of a call: which rows they name.
template <class I>
class Ids {
public:
    // CATENA_E_VALUE names the first id that is neither a row nor ignored.
    Ids(const auto& call, Tensor<const I> x, std::int64_t rows)
        : ids_(x.data), ignored_(call.template attr<"ignore_label">()) {
        const std::int64_t n = x.size();
        bool right = true;
        for (std::int64_t i = 0; i < n; ++i) right = right && ids_[i] >= 0 && ids_[i] < rows;
        if (right) [[likely]] {
            all_ = ignored_.empty();
            return;
        }
        for (std::int64_t i = 0; i < n; ++i)
            if (!ignores(i) && (ids_[i] < 0 || ids_[i] >= rows)) refuse(call, x, i, rows);
    }
    std::int64_t operator[](std::int64_t i) const { return ids_[i]; }
    bool ignores(std::int64_t i) const {
        return !all_ && std::ranges::find(ignored_, std::int64_t{ids_[i]}) != ignored_.end();
    }

private:
    [[noreturn]] static void refuse(const auto& call, Tensor<const I> x, std::int64_t i,
                                    std::int64_t rows) {
        call.fail(
            CATENA_E_VALUE, text_of_element("x", i, x.shape).c_str(),
            rows == 0 ? "no id, for W has no rows" : "an id from 0 to " + std::to_string(rows - 1),
            x[i]);
    }

    const I* ids_;
    Ints ignored_;
    bool all_ = false;
};

// y[i] = table[ids[i]], rows of `width` elements, or added to y.
template <class I, class T>
CATENA_KERNEL void gather_rows(const auto& call, const Ids<I>& ids, std::int64_t n, const T* table,
                               std::int64_t width, T* y, bool add) {
    call.parallel(n, width, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t i = begin; i < end; ++i) {
            T* const to = y + i * width;
            if (ids.ignores(i)) {
                if (!add) std::fill_n(to, width, T(0));
                continue;
            }
            const T* const from = table + ids[i] * width;
            if (!add) {
                std::copy_n(from, width, to);
                continue;
            }
            CATENA_LOOP
            for (std::int64_t k = 0; k < width; ++k) to[k] += from[k];
        }
    });
}

// table[ids[i]] += rows[i], in the order of i: columns are shared out among threads, rows are not,
// so that an id may come several times. Without `add` the table starts as zeros.
template <class I, class T>
CATENA_KERNEL void scatter_rows(const auto& call, const Ids<I>& ids, std::int64_t n, const T* rows,
                                Tensor<T> table, bool add) {
    const std::int64_t width = table.dim(1);
    if (!add)
        call.parallel(table.dim(0), width, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            std::fill_n(table.data + begin * width, (end - begin) * width, T(0));
        });
    if (rows == nullptr) return;
    constexpr std::int64_t strip = 128;
    call.parallel((width + strip - 1) / strip, n * std::min(strip, width),
                  [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                      const std::int64_t first = begin * strip;
                      const std::int64_t count = std::min(end * strip, width) - first;
                      for (std::int64_t i = 0; i < n; ++i) {
                          if (ids.ignores(i)) continue;
                          const T* const from = rows + i * width + first;
                          T* const to = table.data + ids[i] * width + first;
                          CATENA_LOOP
                          for (std::int64_t k = 0; k < count; ++k) to[k] += from[k];
                      }
                  });
}

}  // namespace catena::plugins
