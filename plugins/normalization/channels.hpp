// Channels of arrays (N, C, ...), processed in groups: sums and maps over all axes except axis 1.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Dtypes of the values and of their statistics. float16 and bfloat16 have float32 statistics.
using StatisticTypes = Rows<Row<float, float>, Row<double, double>>;

// The maximum number of columns of a group: see Channels.
inline constexpr std::int64_t most_columns = 256;

// Splits the channels into groups. Channels with few elements per image are grouped with their
// neighbours, and each of their elements is a column. A channel with more than most_columns elements
// per image is a group of its own, and all its elements are in column 0.
struct Channels {
    explicit Channels(Shape x) : n(x[0]), channels(x[1]) {
        rest = size_of(x.subspan(2));
        if (rest == 0) n = 0;  // skips images without pixels
    }
    std::int64_t size() const { return n * rest; }  // elements of one channel in all images
    bool alone() const { return rest > most_columns; }
    std::int64_t width() const {  // channels per group; the last group may have fewer
        return alone() ? 1 : most_columns / std::max<std::int64_t>(rest, 1);
    }

    std::int64_t n;
    std::int64_t channels;
    std::int64_t rest = 1;
};

// The channels [first, first + width) of x, and loops over their elements.
struct Group {
    const Channels& x;
    std::int64_t first;
    std::int64_t width;

    // Index of the group's first element in image i.
    std::int64_t at(std::int64_t i) const { return (i * x.channels + first) * x.rest; }
    // Expands lists with one value per channel, in place, to one value per column.
    template <class... T>
    void spread(T*... values) const {
        if (x.alone() || x.rest == 1) return;
        for (std::int64_t c = width - 1; c >= 0; --c)
            (std::fill_n(values + c * x.rest, x.rest, T(values[c])), ...);
    }
    // Calls f(element, column) for each element of the group.
    template <class F>
    CATENA_KERNEL void map(const F& f) const {
        const std::int64_t columns = width * x.rest;
        for (std::int64_t i = 0; i < x.n; ++i) {
            const std::int64_t from = at(i);
            if (x.alone()) {
                CATENA_LOOP
                for (std::int64_t k = 0; k < columns; ++k) f(from + k, std::int64_t{0});
            } else {
                CATENA_LOOP
                for (std::int64_t k = 0; k < columns; ++k) f(from + k, k);
            }
        }
    }
    // sums[s][c] = sum of f(element, column)[s] over the elements of the group's channel c.
    template <class T, std::size_t n_sums, class F>
    CATENA_KERNEL void sum(double (&sums)[n_sums][most_columns], const F& f) const {
        for (auto& row : sums) std::fill_n(row, most_columns, 0.0);
        if (x.alone()) return sum_alone<T>(sums, f);
        constexpr std::int64_t block = 16;  // images summed in T before adding to double sums
        const std::int64_t columns = width * x.rest;
        for (std::int64_t from = 0; from < x.n; from += block) {
            T part[n_sums][most_columns] = {};
            for (std::int64_t i = from; i < std::min(from + block, x.n); ++i) {
                CATENA_LOOP
                for (std::int64_t k = 0; k < columns; ++k) {
                    const std::array<T, n_sums> v = f(at(i) + k, k);
                    for (std::size_t s = 0; s < n_sums; ++s) part[s][k] += v[s];
                }
            }
            for (std::size_t s = 0; s < n_sums; ++s)
                for (std::int64_t k = 0; k < columns; ++k)
                    sums[s][k] += static_cast<double>(part[s][k]);
        }
        for (std::size_t s = 0; s < n_sums && x.rest > 1; ++s)
            for (std::int64_t c = 0; c < width; ++c) {
                double total = 0;
                for (std::int64_t r = 0; r < x.rest; ++r) total += sums[s][c * x.rest + r];
                sums[s][c] = total;
            }
    }

private:
    template <class T, std::size_t n_sums, class F>
    CATENA_KERNEL void sum_alone(double (&sums)[n_sums][most_columns], const F& f) const {
        constexpr std::int64_t lanes = 32;
        for (std::int64_t i = 0; i < x.n; ++i) {
            for (std::int64_t from = 0; from < x.rest; from += 4096) {
                const std::int64_t to = std::min(from + 4096, x.rest);
                T lane[n_sums][lanes] = {};
                std::int64_t r = from;
                for (; r + lanes <= to; r += lanes)
                    for (std::int64_t j = 0; j < lanes; ++j) {
                        const std::array<T, n_sums> v = f(at(i) + r + j, 0);
                        for (std::size_t s = 0; s < n_sums; ++s) lane[s][j] += v[s];
                    }
                for (; r < to; ++r) {
                    const std::array<T, n_sums> v = f(at(i) + r, 0);
                    for (std::size_t s = 0; s < n_sums; ++s) lane[s][r % lanes] += v[s];
                }
                for (std::size_t s = 0; s < n_sums; ++s)
                    for (std::int64_t j = 0; j < lanes; ++j)
                        sums[s][0] += static_cast<double>(lane[s][j]);
            }
        }
    }
};

// Calls body(group) for each group of channels, in parallel.
template <class Body>
void for_each_group(const auto& call, const Channels& x, const Body& body) {
    const std::int64_t width = x.width();
    const std::int64_t groups = (x.channels + width - 1) / width;
    call.parallel(groups, 4 * x.size() * std::min(width, x.channels),
                  [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                      for (std::int64_t g = begin; g < end; ++g)
                          body(Group{x, g * width, std::min(width, x.channels - g * width)});
                  });
}

// Sums and means over all axes except axis 1. shape() is (1, C, 1, ...): spread() reshapes a vector
// with one value per channel to it, so that the vector broadcasts to x.
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

// Checks that x has at least two axes, and that each other input has one value per channel.
template <class F>
void check_channels(const Inference<F>& s) {
    s.check_least_ndim(0, 2);
    for (std::size_t i = 1; i < n_inputs<F>; ++i) s.check_shape(i, s.x(0).subspan(1, 1));
}

inline constexpr Attribute eps_attr = attr("eps", 1e-5, "added to the variance").range(0, 1e30);

}  // namespace catena::plugins
