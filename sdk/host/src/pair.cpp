// Places of windows along a side.
#include <catena/core/error.hpp>
#include <catena/pair.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

std::int64_t get_conv_outsize(std::int64_t size, std::int64_t k, std::int64_t s, std::int64_t p,
                              bool cover_all) {
    if (size < 0 || k < 1 || s < 1 || p < 0) {
        throw InvalidError(
            fmt::format("[get_conv_outsize] sizes: expected size >= 0, k >= 1, "
                        "s >= 1, p >= 0, got {}, {}, {}, {}",
                        size, k, s, p));
    }
    const std::int64_t room = size + 2 * p - k + (cover_all ? s - 1 : 0);
    return room < 0 ? 0 : room / s + 1;
}

}  // namespace catena
