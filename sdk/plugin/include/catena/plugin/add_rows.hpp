// Sums of rows by id: adds rows to those of a table, as in the gradient of an embedding.
#pragma once

#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

// Adds n rows to a table with `table` rows, of `size` elements each, for each of `groups` tables.
struct AddedRows {
    std::int64_t groups = 1;
    std::int64_t n, table, size;
};

// Adds row i of each group to row row_of(i) of the group's table; a negative one is skipped. Each
// element of the table gets its summands in the order of i, so results are bit-identical for any
// number of threads: threads divide the groups, the columns, or the rows of the table.
template <class T, class RowOf>
CATENA_KERNEL void add_rows(const auto& call, const AddedRows& a, const T* rows, T* table,
                            const RowOf& row_of) {
    constexpr std::int64_t strip = 256;  // least number of columns for a thread
    constexpr int batch = 16;
    constexpr std::int64_t line = 64 / sizeof(T);  // elements of a cache line
    constexpr std::int64_t ahead = 8 * line;       // elements of a row to prefetch
    const std::int64_t work = a.n * a.size;
    if (a.groups * work == 0) return;
    const std::int64_t wanted = std::min(call.slots(), a.groups * work / serial_work + 1);
    const std::int64_t strips = std::clamp<std::int64_t>(a.size / strip, 1, wanted);
    const std::int64_t owners =
        a.groups * strips >= wanted ? 1 : (wanted + a.groups * strips - 1) / (a.groups * strips);
    const std::int64_t units = strips * owners;
    call.parallel(
        a.groups * units, std::max<std::int64_t>(work / units, 1),
        [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t u = begin; u < end; ++u) {
                const std::int64_t first = u % units / owners * a.size / strips;
                const std::int64_t count = (u % units / owners + 1) * a.size / strips - first;
                const T* const from = rows + u / units * work + first;
                T* const to = table + u / units * a.table * a.size + first;
                // An owner has the rows whose hashes are in its part of the 32-bit numbers, so that
                // frequent ids, which are often neighbours, have different owners.
                const auto owns = [&](std::int64_t row) {
                    const auto hash = static_cast<std::uint32_t>(row) * std::uint32_t{0x9e3779b1};
                    return static_cast<std::int64_t>(
                               (std::uint64_t{hash} * static_cast<std::uint64_t>(owners)) >> 32) ==
                           u % owners;
                };
                // Rows are collected first, so that memory is read ahead of the sums.
                for (std::int64_t i = 0; i < a.n;) {
                    const T* p[batch];
                    T* q[batch];
                    int m = 0;
                    for (; i < a.n && m < batch; ++i) {
                        const std::int64_t row = row_of(i);
                        if (row < 0 || (owners > 1 && !owns(row))) continue;
                        p[m] = from + i * a.size;
                        q[m] = to + row * a.size;
                        for (std::int64_t k = 0; k < std::min(count, ahead); k += line) {
                            __builtin_prefetch(p[m] + k);
                            __builtin_prefetch(q[m] + k, 1);
                        }
                        ++m;
                    }
                    for (int r = 0; r < m; ++r) {
                        const T* const source = p[r];
                        T* const sum = q[r];
                        CATENA_LOOP
                        for (std::int64_t k = 0; k < count; ++k) sum[k] += source[k];
                    }
                }
            }
        });
}

}  // namespace catena::plugin
