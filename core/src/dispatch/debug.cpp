// Looks for NaN in arrays of any device.
#include "dispatch/debug.hpp"

#include "array/array_ops.hpp"
#include "dispatch/stack_trace.hpp"

#include <fmt/format.h>

#include <cstring>

namespace catena {
namespace {

// By the bits: every exponent bit and one of the mantissa. No flag of the compiler changes that.
template <class Bits>
std::int64_t count(const void* data, std::int64_t n, Bits infinity) {
    const auto* bytes = static_cast<const char*>(data);
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        Bits bits;
        std::memcpy(&bits, bytes + static_cast<std::size_t>(i) * sizeof(Bits), sizeof(Bits));
        constexpr Bits no_sign = static_cast<Bits>(~Bits{0}) >> 1;
        found += (bits & no_sign) > infinity;
    }
    return found;
}

}  // namespace

std::int64_t count_nan(const Array& array) {
    if (!array || !is_floating(array.dtype()) || !has_memory(*array.body())) return 0;
    const std::int64_t n = array.size();
    if (n == 0) return 0;
    const ArrayBody& body = *array.body();
    std::unique_ptr<char[]> copy;
    const void* const data = on_host(body, copy);
    switch (array.dtype()) {
        case Dtype::float16: return count<std::uint16_t>(data, n, 0x7c00);
        case Dtype::bfloat16: return count<std::uint16_t>(data, n, 0x7f80);
        case Dtype::float64: return count<std::uint64_t>(data, n, 0x7ff0000000000000);
        default: return count<std::uint32_t>(data, n, 0x7f800000);
    }
}

std::string place(std::span<void* const> trace) {
    const std::string frames = to_string(trace);
    return frames.empty() ? "" : "; the call was made at" + frames;
}

void check_numbers(const Array& array, std::string_view function, std::string_view what,
                   std::span<void* const> trace) {
    const std::int64_t n = count_nan(array);
    if (n == 0) return;
    throw NanError(fmt::format("[{}] {}: expected numbers, got NaN in {} of {} elements{}",
                               function, what, n, array.size(), place(trace)));
}

}  // namespace catena
