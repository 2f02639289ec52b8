// How much memory the process may have, for libraries that crash where they get none.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

namespace catena::plugin {

// Bytes by `ulimit -v` or `ulimit -d`, whichever is less; UINT64_MAX if neither is set. [any]
inline std::uint64_t memory_limit() noexcept {
    std::uint64_t least = UINT64_MAX;
    for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
        rlimit limit = {};
        if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
            least = std::min<std::uint64_t>(least, limit.rlim_cur);
    }
    return least;
}

// Below this a thread that asks for memory may well get none, as it takes 72 MiB for its own stack and heap.
inline constexpr std::uint64_t little_memory = std::uint64_t{4} << 30;

}  // namespace catena::plugin
