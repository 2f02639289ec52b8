// Sums over windows, first down the columns and then along the rows, or the other way round.
#pragma once

#include <bit>

#include "windows.hpp"

namespace catena::plugins {

// Rows that are worked on at once have so many places in all, and this many more may be overwritten.
inline constexpr std::int64_t most_places = 4096;
// Shorter rows are worked on as if they had this many numbers, where there is room: what is too much
// is overwritten by the next row. (Always as many: shorter loops would not become vectors.)
inline constexpr std::int64_t least_row = 32;
template <class T>
using Places = T[most_places + 4 * least_row];

// Some targets along a row, and so many places of the window of each: what is worked on at once.
// Sources stand `spread` places apart, windows begin `step` places apart.
struct Stretch {
    std::int64_t extent() const { return (targets - 1) * step + cells; }

    std::int64_t spread;
    std::int64_t step;
    std::int64_t target = 0;  // the first
    std::int64_t targets = 0;
    std::int64_t cells = 0;
    std::int64_t source = 0;  // the first within
    std::int64_t sources = 0;
    std::int64_t left = 0;  // places before it
    bool add = false;       // to what other cells gave
};

// Calls visit(stretch) for stretches of a row that together are all of it, those with the same targets
// one after the other. Target i takes what stands on ksize places from start + i * step on; source i
// stands on place i * spread.
CATENA_KERNEL void for_each_stretch(std::int64_t sources, std::int64_t spread, std::int64_t targets,
                                    std::int64_t step, std::int64_t start, std::int64_t ksize,
                                    const auto& visit) {
    constexpr std::int64_t most_cells = most_places / 2;
    const auto behind = [&](std::int64_t place) CATENA_LAMBDA {  // sources before a place
        return place <= 0 ? 0 : std::min(sources, (place + spread - 1) / spread);
    };
    const std::int64_t most = (most_places - std::min(ksize, most_cells)) / step + 1;
    for (std::int64_t i = 0; i < targets; i += most) {
        Stretch s{spread, step, i, std::min(most, targets - i)};
        const std::int64_t place = start + i * step;
        const std::int64_t last = place + (s.targets - 1) * step;
        // Cells beyond these meet no source.
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

// Calls row(n) for a loop over n numbers, or over least_row or `half` of them if `room` is enough.
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

// to[i * spread] = share * from[i]; what lies between has to be 0 already unless spread is 2.
template <class T>
CATENA_KERNEL void put(const T* from, std::int64_t n, std::int64_t spread, T share, T* to) {
    if (spread == 1) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] = share * from[i];
    } else if (spread == 2) {  // stores without gaps
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) {
            to[2 * i] = share * from[i];
            to[2 * i + 1] = 0;
        }
    } else {
        for (std::int64_t i = 0; i < n; ++i) to[i * spread] = share * from[i];
    }
}
// to[i] = share * from[i * step], or added to it.
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

// to = the sum of `rows` rows of n numbers, or added to it.
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

// to[f] = sum of from[f] .. from[f + k - 1] for all f below n: sums of sums, in log2(k) passes and as
// exact as pairwise ones.
template <class T>
CATENA_KERNEL void add_shifted(const T* from, std::int64_t n, std::int64_t k, T* to) {
    const T* sums = from;  // of m
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

}  // namespace catena::plugins
