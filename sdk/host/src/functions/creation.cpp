// New arrays: functions/creation.hpp. Matrices and one-hot vectors are comparisons of indices, so
// that they are computed on their device.
#include "promotion.hpp"

#include <catena/functions/creation.hpp>
#include <catena/functions/logic.hpp>

#include <cmath>

namespace catena::functions {
namespace {

// Returns f(0), ..., f(n - 1) in the type of f(0).
template <class N, class F>
Array sequence(const char* what, N n, Dtype dtype, Device device, const F& f) {
    if (!(n <= static_cast<N>(std::int64_t{1} << 40)))
        fail<InvalidError>("{}: expected at most 2^40, got {}", what, n);
    std::vector<decltype(f(0))> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = f(static_cast<std::int64_t>(i));
    return Array::from(values, {static_cast<std::int64_t>(values.size())}, device).astype(dtype);
}
Array indices(std::int64_t n, Device device, std::int64_t first = 0) {
    constexpr std::int64_t most = 1 << 30;
    const bool is_short = n < most && first < most && first > -most;
    return arange(first, first + n, 1, is_short ? Dtype::int32 : Dtype::int64, device);
}
// Returns compare(i + k, j) for the elements (i, j) of a matrix.
template <class Compare>
Array matrix(const char* name, std::int64_t n, std::int64_t m, int k, Dtype dtype, Device device,
             const Compare& compare) {
    if (m == -1) m = n;
    if (n < 0 || m < 0)
        fail<InvalidError>("[{}] size: expected at least 0, got ({}, {})", name, n, m);
    const Array i = indices(n, device, k).reshape({n, 1});
    return compare(i, indices(m, device)).astype(dtype);
}

}  // namespace

Array arange(Scalar start, Scalar stop, Scalar step, std::optional<Dtype> dtype, Device device) {
    const double by = step.value();
    const double n = std::ceil((stop.value() - start.value()) / by);
    if (by == 0 || std::isnan(n))
        fail<InvalidError>(
            "[arange] step: expected numbers and a step other than 0, got {}, {}, {}",
            start.value(), stop.value(), by);
    if (!start.is_integer() || !stop.is_integer() || !step.is_integer())
        return sequence(
            "[arange] size", std::max(n, 0.0), dtype.value_or(Dtype::float32), device,
            [&](std::int64_t i) { return start.value() + static_cast<double>(i) * by; });
    // Integers in unsigned arithmetic, since their difference may be beyond int64.
    const auto from = static_cast<std::uint64_t>(start.integer());
    const auto to = static_cast<std::uint64_t>(stop.integer());
    const auto pace = static_cast<std::uint64_t>(step.integer());
    const bool rises = step.integer() > 0;
    const bool none = rises ? start.integer() >= stop.integer() : start.integer() <= stop.integer();
    const std::uint64_t width = rises ? pace : 0 - pace;
    const std::uint64_t count = none ? 0 : ((rises ? to - from : from - to) - 1) / width + 1;
    return sequence(
        "[arange] size", count, dtype.value_or(Dtype::int64), device, [&](std::int64_t i) {
            return static_cast<std::int64_t>(from + static_cast<std::uint64_t>(i) * pace);
        });
}

Array linspace(double start, double stop, std::int64_t n, bool endpoint, Dtype dtype,
               Device device) {
    if (n < 0) fail<InvalidError>("[linspace] n: expected at least 0, got {}", n);
    const auto last = static_cast<double>(endpoint ? n - 1 : n);
    // Weighted so that both ends are exact.
    return sequence("[linspace] n", n, dtype, device, [&](std::int64_t at) {
        const auto i = static_cast<double>(at);
        return i == 0 ? start : start * ((last - i) / last) + stop * (i / last);
    });
}

Array eye(std::int64_t n, std::int64_t m, int k, Dtype dtype, Device device) {
    return matrix("eye", n, m, k, dtype, device,
                  [](const Array& i, const Array& j) { return equal(i, j); });
}
Array tri(std::int64_t n, std::int64_t m, int k, Dtype dtype, Device device) {
    return matrix("tri", n, m, k, dtype, device,
                  [](const Array& i, const Array& j) { return i >= j; });
}

Array full_like(const Array& x, double value, std::optional<Dtype> dtype) {
    return Array::full(x.shape(), value, dtype.value_or(x.dtype()), x.device());
}

Array one_hot(const Array& t, std::int64_t depth, int axis, Dtype dtype) {
    if (is_floating(expect("one_hot", "t", t)) || t.dtype() == Dtype::bool8)
        fail<DtypeError>("[one_hot] t: expected integers, got {}", name(t.dtype()));
    if (depth < 0) fail<InvalidError>("[one_hot] depth: expected at least 0, got {}", depth);
    const Shape shape = t.shape();
    const int n = shape.ndim();
    if (axis < -n - 1 || axis > n)
        fail<ShapeError>("[one_hot] axis: expected {} to {} for t of shape {}, got {}", -n - 1, n,
                         to_string(shape), axis);
    const int at = axis < 0 ? axis + n + 1 : axis;
    std::vector<std::int64_t> wide(shape.begin(), shape.end());
    wide.insert(wide.begin() + at, 1);
    std::vector<std::int64_t> depths(static_cast<std::size_t>(n - at + 1), 1);
    depths[0] = depth;
    return equal(t.reshape(Shape(std::span<const std::int64_t>(wide))),
                 indices(depth, t.device()).reshape(Shape(std::span<const std::int64_t>(depths))))
        .astype(dtype);
}

}  // namespace catena::functions
