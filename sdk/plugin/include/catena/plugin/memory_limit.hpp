// The limit on the process's memory, for plugins whose libraries crash if an allocation fails.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

namespace catena::plugin {

// Returns the smaller of `ulimit -v` and `ulimit -d` in bytes; UINT64_MAX if neither is set. [any]
inline std::uint64_t memory_limit() noexcept {
    std::uint64_t least = UINT64_MAX;
    for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
        rlimit limit = {};
        if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
            least = std::min<std::uint64_t>(least, limit.rlim_cur);
    }
    return least;
}

// Below this, allocations are likely to fail: a thread reserves 8 MiB of stack and 64 MiB of heap.
inline constexpr std::uint64_t little_memory = std::uint64_t{4} << 30;

}  // namespace catena::plugin
