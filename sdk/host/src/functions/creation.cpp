// New arrays: functions/creation.hpp.
#include <catena/fail.hpp>
#include <catena/functions/creation.hpp>

#include <cmath>

namespace catena::functions {

Array arange(Scalar start, Scalar stop, Scalar step, std::optional<Dtype> dtype, Device device) {
    thread_local constinit ThreadFunction numbers("catena.arange", {"n", "start", "step", "dtype"});
    const using_device scope{device ? device : Device::current()};
    const double by = step.value();
    const double n = std::ceil((stop.value() - start.value()) / by);
    if (by == 0 || std::isnan(n))
        fail<InvalidError>(
            "[arange] step: expected numbers and a step other than 0, got {}, {}, {}",
            start.value(), stop.value(), by);
    const auto check_size = [](auto size) {
        if (!(size <= static_cast<decltype(size)>(std::int64_t{1} << 40)))
            fail<InvalidError>("[arange] size: expected at most 2^40, got {}", size);
        return static_cast<std::int64_t>(size);
    };
    if (!start.is_integer() || !stop.is_integer() || !step.is_integer()) {
        const Array i = numbers({check_size(std::max(n, 0.0)), 0, 1, Dtype::float64})
                            .first(std::span<const Array>());
        return (start.value() + i * by).astype(dtype.value_or(Dtype::float32));
    }
    // Integers in unsigned arithmetic, since their difference may be beyond int64.
    const auto from = static_cast<std::uint64_t>(start.integer());
    const auto to = static_cast<std::uint64_t>(stop.integer());
    const auto pace = static_cast<std::uint64_t>(step.integer());
    const bool rises = step.integer() > 0;
    const bool none = rises ? start.integer() >= stop.integer() : start.integer() <= stop.integer();
    const std::uint64_t width = rises ? pace : 0 - pace;
    const std::uint64_t count = none ? 0 : ((rises ? to - from : from - to) - 1) / width + 1;
    return numbers({check_size(count), start.integer(), step.integer(),
                    dtype.value_or(Dtype::int64)})
        .first(std::span<const Array>());
}

}  // namespace catena::functions
