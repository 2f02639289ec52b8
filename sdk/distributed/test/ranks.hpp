// Helpers of tests with several ranks.
#pragma once

#include <catena/catena.hpp>
#include <catena/distributed.hpp>

#include <mutex>

#include <doctest/doctest.h>

namespace catena::distributed {

namespace F = catena::functions;

// Different values for each seed, from N(0, 1).
inline Array numbers(const Shape& shape, std::uint64_t seed, Dtype dtype = Dtype::float64) {
    std::vector<double> values(static_cast<std::size_t>(shape.size()));
    Generator(seed).normal(values);
    return Array::from(std::span<const double>(values), shape).astype(dtype);
}

// The result of each rank, in the order of ranks.
inline std::vector<Array> on_ranks(int n, const std::function<Array(const Communicator&)>& body) {
    std::vector<Array> results(static_cast<std::size_t>(n));
    run_ranks(
        n,
        [&](const Communicator& comm) {
            results[static_cast<std::size_t>(comm.rank())] = body(comm);
        },
        {}, 20);
    return results;
}

inline void check_close(const Array& got, const Array& expected, double bound = 1e-10) {
    CHECK(got.dtype() == expected.dtype());
    REQUIRE(to_string(got.shape()) == to_string(expected.shape()));
    const auto a = got.to_vector<double>(), b = expected.to_vector<double>();
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        worst = std::max(worst, std::abs(a[i] - b[i]) / std::max(1.0, std::abs(b[i])));
    CHECK(worst <= bound);
}

// The rows of rank r of n.
inline Array rows_of(const Array& x, std::int64_t r, std::int64_t n) {
    const Range rows = part_of(x.shape()[0], r, n);
    return F::get_item(x, {slice(rows.begin, rows.end)});
}

}  // namespace catena::distributed
