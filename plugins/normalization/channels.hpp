// Channels: arrays (N, C, rest...) walked channel by channel, for sums and maps over all but axis 1.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// A value and statistics: halves keep their statistics in float32.
using StatisticTypes = Rows<Row<float, float>, Row<double, double>>;

struct Channels {
    explicit Channels(Shape x) : n(x[0]), channels(x[1]) {
        for (const std::int64_t d : x.subspan(2)) rest *= d;
    }
    std::int64_t size() const { return n * rest; }  // of a channel
    // Channels that are worked on side by side: neighbours where a channel's elements are not.
    std::int64_t width() const { return rest == 1 ? 64 : 1; }

    std::int64_t n;
    std::int64_t channels;
    std::int64_t rest = 1;
};

// Calls body(first channel, number of channels) for all, in parallel.
template <class Body>
void for_each_group(const auto& call, const Channels& x, const Body& body) {
    const std::int64_t width = x.width();
    const std::int64_t groups = (x.channels + width - 1) / width;
    call.parallel(groups, 4 * x.size() * std::min(width, x.channels),
                  [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                      for (std::int64_t g = begin; g < end; ++g)
                          body(g * width, std::min(width, x.channels - g * width));
                  });
}

// sums[k][c] = sum of f(element, c)[k] over the elements of channel first + c.
template <class T, std::size_t k_sums, class F>
CATENA_KERNEL void sum_channels(const Channels& x, std::int64_t first, std::int64_t width,
                                double (&sums)[k_sums][64], const F& f) {
    for (auto& row : sums) std::fill_n(row, 64, 0.0);
    if (x.rest == 1) {
        for (std::int64_t i = 0; i < x.n; ++i) {
            const std::int64_t at = i * x.channels + first;
            CATENA_LOOP
            for (std::int64_t c = 0; c < width; ++c) {
                const std::array<T, k_sums> v = f(at + c, c);
                for (std::size_t k = 0; k < k_sums; ++k) sums[k][c] += static_cast<double>(v[k]);
            }
        }
        return;
    }
    constexpr std::int64_t lanes = 32;
    for (std::int64_t i = 0; i < x.n; ++i) {
        const std::int64_t at = (i * x.channels + first) * x.rest;
        for (std::int64_t from = 0; from < x.rest; from += 4096) {
            const std::int64_t to = std::min(from + 4096, x.rest);
            T lane[k_sums][lanes] = {};
            std::int64_t r = from;
            for (; r + lanes <= to; r += lanes)
                for (std::int64_t j = 0; j < lanes; ++j) {
                    const std::array<T, k_sums> v = f(at + r + j, 0);
                    for (std::size_t k = 0; k < k_sums; ++k) lane[k][j] += v[k];
                }
            for (; r < to; ++r) {
                const std::array<T, k_sums> v = f(at + r, 0);
                for (std::size_t k = 0; k < k_sums; ++k) lane[k][r % lanes] += v[k];
            }
            for (std::size_t k = 0; k < k_sums; ++k)
                for (std::int64_t j = 0; j < lanes; ++j)
                    sums[k][0] += static_cast<double>(lane[k][j]);
        }
    }
}

// f(element, c) for all elements of channels first + c.
template <class F>
CATENA_KERNEL void map_channels(const Channels& x, std::int64_t first, std::int64_t width,
                                const F& f) {
    for (std::int64_t i = 0; i < x.n; ++i) {
        const std::int64_t at = (i * x.channels + first) * x.rest;
        if (x.rest == 1) {
            CATENA_LOOP
            for (std::int64_t c = 0; c < width; ++c) f(at + c, c);
        } else {
            CATENA_LOOP
            for (std::int64_t r = 0; r < x.rest; ++r) f(at + r, std::int64_t{0});
        }
    }
}

// All axes but 1, and a channel vector's shape for broadcasting: (1, C, 1 ...).
struct AllButChannels {
    explicit AllButChannels(Shape x) : ndim(x.size()) {
        std::size_t k = 0;
        for (std::size_t d = 0; d < ndim; ++d) {
            shape_[d] = d == 1 ? x[1] : 1;
            if (d == 1) continue;
            axes_[k++] = static_cast<std::int64_t>(d);
            count *= x[d];
        }
    }
    Ints axes() const { return {axes_, ndim - 1}; }
    Shape shape() const { return {shape_, ndim}; }
    Var spread(const Var& v) const { return reshape(v, shape()); }
    Var total(const Var& v, bool keepdims) const { return sum(v, axes(), keepdims); }
    Var mean(const Var& v) const {
        return total(v, true) * (1.0 / static_cast<double>(std::max<std::int64_t>(count, 1)));
    }

    std::size_t ndim;
    std::int64_t count = 1;

private:
    std::int64_t axes_[CATENA_MAX_NDIM];
    std::int64_t shape_[CATENA_MAX_NDIM];
};

// x has channels, and the other inputs [from, to) one value for each.
inline void check_channels(const auto& s, std::size_t to, const char* const* names) {
    const Shape x = s.x(0);
    s.check(x.size() >= 2, "x.ndim", "at least 2", x.size());
    for (std::size_t i = 1; i < to; ++i)
        s.check(std::ranges::equal(s.x(i), x.subspan(1, 1)), names[i], x.subspan(1, 1), s.x(i));
}

inline constexpr Attribute eps_attr =
    attr("eps", 1e-5, "added to the variance").range(0, 1e30);

}  // namespace catena::plugins
