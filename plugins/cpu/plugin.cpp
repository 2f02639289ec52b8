// The plugin table of cpu.catena: the backend "cpu", its memory, threads, matrix products and compiler.
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

constexpr int32_t default_devices = 8;
constexpr int32_t max_devices = 4096;

// All devices share the memory and threads of the machine; a device is only an address in this array.
char devices[max_devices];

catena_status count(catena_ctx* ctx, int32_t* n) {
    *n = default_devices;
    const char* text = std::getenv("CATENA_CPU_DEVICES");  // NOLINT(concurrency-mt-unsafe)
    if (text == nullptr) return CATENA_OK;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < 1 || value > max_devices)
        return fail(ctx, CATENA_E_INVALID,
                    "[cpu count] CATENA_CPU_DEVICES: expected a number from 1 to %d, got '%s'",
                    max_devices, text);
    *n = static_cast<int32_t>(value);
    return CATENA_OK;
}

catena_status open(catena_ctx* ctx, int32_t ordinal, void** dev) {
    int32_t n = 0;
    if (const catena_status status = count(ctx, &n); status != CATENA_OK) return status;
    if (ordinal < 0 || ordinal >= n)
        return fail(ctx, CATENA_E_DEVICE, "[cpu open] ordinal: expected 0 to %d, got %d", n - 1,
                    ordinal);
    *dev = &devices[ordinal];
    return CATENA_OK;
}

// ---- memory: aligned blocks from malloc, so that sanitizers and heap profilers see them

constexpr uint64_t cache_line = 64;
constexpr uint64_t huge_page = uint64_t{2} << 20;
constexpr uint64_t huge_from = 2 * huge_page;  // smaller blocks would waste too much of a page
constexpr int64_t copy_grain = int64_t{256} << 10;
constexpr uint64_t parallel_copy_from = uint64_t{2} << 20;

catena_status alloc(catena_ctx* ctx, void*, catena_stream*, uint64_t bytes, void** data) {
    *data = nullptr;
    if (bytes == 0) return CATENA_OK;
    const bool huge = bytes >= huge_from;
    if (bytes > PTRDIFF_MAX || posix_memalign(data, huge ? huge_page : cache_line, bytes) != 0)
        *data = nullptr;
    if (*data == nullptr)
        return fail(ctx, CATENA_E_NOMEM, "[cpu alloc] out of memory: expected %" PRIu64 " bytes",
                    bytes);
    // Huge pages cause fewer page faults and TLB misses. This is only a hint; failure is ignored.
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
    // MemAvailable, if the system reports it, includes memory that can be reclaimed without swapping.
    std::ifstream file("/proc/meminfo");
    uint64_t kib = 0;
    for (std::string line; std::getline(file, line);)
        if (std::sscanf(line.c_str(), "MemAvailable: %" SCNu64, &kib) == 1)
            *free_bytes = kib * 1024;
    return CATENA_OK;
}

const void* get_extension(void*, const char* id) {
    return std::strcmp(id, CATENA_THREADS_1) == 0 ? &threads_table : nullptr;
}

const catena_backend backend = {
    .struct_size = sizeof(catena_backend),
    .flags = CATENA_BACKEND_HOST_MEMORY,
    .name = "cpu",
    .doc = "The processors of this machine. Devices share its memory and threads.",
    .dlpack_type = 1,  // kDLCPU
    .reserved = 0,
    .count = count,
    .open = open,
    .close = [](void*) {},
    .supports_isa = [](void*, const char* isa) -> int32_t { return supports_isa(isa) ? 1 : 0; },
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .memory = memory,
    .stream_create = nullptr,
    .stream_destroy = nullptr,
    .stream_sync = nullptr,
    .event_create = nullptr,
    .event_destroy = nullptr,
    .event_record = nullptr,
    .event_wait = nullptr,
    .sync = [](catena_ctx*, void*) -> catena_status { return CATENA_OK; },
    .get_extension = get_extension,
};
const catena_backend* const backends[] = {&backend};

using catena::plugin::extension;
constexpr catena_extension blas = extension(CATENA_BLAS_1, "cpu", &blas_table);
constexpr catena_extension rounded =
    extension(CATENA_BLAS_1, "cpu", &bfloat16_table, CATENA_PRIORITY_TUNED);
constexpr catena_extension compiler = extension(CATENA_COMPILER_1, "cpu", &compiler_table);
constexpr catena_extension targets =
    extension(CATENA_TARGETS_1, "cpu", &targets_table, CATENA_PRIORITY_PORTABLE);
const catena_extension* const extensions[] = {&blas, &compiler, &targets, &rounded};

// Reads the environment and loads OpenBLAS while only one thread runs. Without OpenBLAS, memory and
// threads still work, and matrix products fail with a message that names what is missing.
catena_status init(const catena_host*, catena_ctx* ctx) {
    return catena::plugin::guarded(ctx, [&] {
        if (const std::string& problem = openblas_problem(); !problem.empty())
            host().log(ctx, CATENA_LOG_WARNING, problem.c_str());
    });
}

constexpr catena_plugin plugin = catena::plugin::table_of(
    {.kernels = {}, .backends = backends, .extensions = extensions, .init = init, .deinit = [] {
         pool.stop();
     }});

}  // namespace
}  // namespace catena_cpu

CATENA_EXPORT_PLUGIN("org.catena.cpu", CATENA_VERSION, "cpu", catena_cpu::plugin);
