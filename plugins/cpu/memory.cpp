// Aligned blocks from malloc, so that sanitizers and heap profilers see them.
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "cpu.hpp"

namespace catena_cpu {
namespace {

constexpr uint64_t cache_line = 64;
constexpr uint64_t huge_page = uint64_t{2} << 20;
constexpr uint64_t huge_from = 2 * huge_page;  // smaller blocks would waste too much of a page
constexpr int64_t copy_grain = int64_t{256} << 10;
constexpr uint64_t parallel_copy_from = uint64_t{2} << 20;

}  // namespace

catena_status alloc(catena_ctx* ctx, void*, catena_stream*, uint64_t bytes, void** data) {
    *data = nullptr;
    if (bytes == 0) return CATENA_OK;
    const bool huge = bytes >= huge_from;
    if (bytes > PTRDIFF_MAX || posix_memalign(data, huge ? huge_page : cache_line, bytes) != 0)
        *data = nullptr;
    if (*data == nullptr)
        return fail(ctx, CATENA_E_NOMEM, "[cpu alloc] out of memory: expected %" PRIu64 " bytes",
                    bytes);
    // Fewer page faults and TLB misses; it is a hint, so a refusal does not matter.
    if (huge) madvise(*data, bytes / huge_page * huge_page, MADV_HUGEPAGE);
    return CATENA_OK;
}

void release(void*, catena_stream*, void* data, uint64_t) { std::free(data); }

catena_status copy(catena_ctx*, void*, catena_stream*, void* dst, const void* src, uint64_t bytes,
                   int32_t) {
    if (bytes == 0 || dst == src) return CATENA_OK;
    struct Copy {
        char* dst;
        const char* src;
    } job = {static_cast<char*>(dst), static_cast<const char*>(src)};
    const auto copy_piece = [](void* user, int64_t begin, int64_t end, int32_t) {
        const Copy& copy = *static_cast<const Copy*>(user);
        std::memcpy(copy.dst + begin, copy.src + begin, static_cast<size_t>(end - begin));
    };
    if (bytes < parallel_copy_from) std::memcpy(dst, src, bytes);
    else pool.parallel_for(static_cast<int64_t>(bytes), copy_grain, copy_piece, &job);
    return CATENA_OK;
}

catena_status memory(catena_ctx*, void*, uint64_t* free_bytes, uint64_t* total_bytes) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    *total_bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
    *free_bytes = static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES)) * page;
    // What can be had without swapping is more than what lies idle, where the system tells it.
    std::ifstream file("/proc/meminfo");
    uint64_t kib = 0;
    for (std::string line; std::getline(file, line);)
        if (std::sscanf(line.c_str(), "MemAvailable: %" SCNu64, &kib) == 1)
            *free_bytes = kib * 1024;
    return CATENA_OK;
}

}  // namespace catena_cpu
