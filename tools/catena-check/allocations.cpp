// Replaces malloc and operator new. They call the C library unless fail_allocation() applies.
#include "control.hpp"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string_view>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CATENA_OWN_MALLOC 1
#else
#define CATENA_OWN_MALLOC 0
#endif

namespace catena::check {
namespace {

constinit thread_local bool in_plugin = false;
constinit std::atomic<long> left{0};  // allocations up to the failing one; 0: none fails
constinit std::atomic<bool> lasts{false};
constinit std::atomic<bool> happened{false};

// The addresses of code of a plugin, or of the standard libraries, which work for it.
struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
};
constinit std::array<Range, 64> own{};
constinit std::size_t n_own = 0;

// Returns the function of the C library that registers thread_local destructors. Its allocations
// never fail, because it aborts without memory, which plugins cannot prevent.
Range aborting() {
    const void* const code = dlsym(RTLD_DEFAULT, "__cxa_thread_atexit_impl");
    Dl_info info = {};
    void* symbol = nullptr;
    if (code == nullptr || dladdr1(code, &info, &symbol, RTLD_DL_SYMENT) == 0 || symbol == nullptr)
        return {0, 0};
    const auto begin = reinterpret_cast<std::uintptr_t>(code);
    return {begin, begin + static_cast<const ElfW(Sym)*>(symbol)->st_size};
}
constinit Range spared{0, 0};

int add_module(dl_phdr_info* info, std::size_t, void*) {
    const std::string_view path = info->dlpi_name;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const bool mine = path.starts_with("/proc/self/fd/") || name.ends_with(".catena") ||
                      name.starts_with("libstdc++.") || name.starts_with("libc.");
    for (int i = 0; mine && i < info->dlpi_phnum; ++i) {
        const auto& header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0 || n_own == own.size())
            continue;
        const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
        own[n_own++] = {begin, begin + header.p_memsz};
    }
    return 0;
}
bool is_own(const void* code) {
    const auto at = reinterpret_cast<std::uintptr_t>(code);
    if (spared.begin <= at && at < spared.end) return false;
    for (std::size_t i = 0; i < n_own; ++i)
        if (own[i].begin <= at && at < own[i].end) return true;
    return false;
}

[[maybe_unused]] bool refused(const void* caller) {
    if (!in_plugin || (left == 0 && !lasts) || !is_own(caller)) return false;
    if (lasts && happened) return true;
    if (left == 0 || --left > 0) return false;
    happened = true;
    return true;
}

}  // namespace

bool allocations_fail() { return CATENA_OWN_MALLOC != 0; }
void fail_allocation(long n, bool lasting) {
    n_own = 0;
    if (spared.end == 0) spared = aborting();
    if (n > 0) dl_iterate_phdr(add_module, nullptr);
    left = n;
    lasts = lasting;
    happened = false;
}
bool allocation_failed() { return happened; }
std::int64_t heap_in_use() {
#if CATENA_OWN_MALLOC
    const struct mallinfo2 now = mallinfo2();
    return static_cast<std::int64_t>(now.uordblks + now.hblkhd);
#else
    return 0;
#endif
}

Inside::Inside(bool plugin) : before_(in_plugin) { in_plugin = plugin; }
Inside::~Inside() { in_plugin = before_; }

}  // namespace catena::check

#if CATENA_OWN_MALLOC

// The C library's functions under the names for use by replacements. free() is not replaced.
extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void*, std::size_t);         // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT(bugprone-reserved-identifier)

#define CATENA_REPLACES __attribute__((visibility("default"), noinline))
#define CATENA_REFUSED catena::check::refused(__builtin_return_address(0))

static void* no_memory() {
    errno = ENOMEM;
    return nullptr;
}
CATENA_REPLACES void* malloc(std::size_t bytes) {
    return CATENA_REFUSED ? no_memory() : __libc_malloc(bytes);
}
CATENA_REPLACES void* calloc(std::size_t n, std::size_t bytes) {
    return CATENA_REFUSED ? no_memory() : __libc_calloc(n, bytes);
}
CATENA_REPLACES void* realloc(void* old, std::size_t bytes) {
    return CATENA_REFUSED ? no_memory() : __libc_realloc(old, bytes);
}
CATENA_REPLACES void* memalign(std::size_t alignment, std::size_t bytes) {
    return CATENA_REFUSED ? no_memory() : __libc_memalign(alignment, bytes);
}
CATENA_REPLACES void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return CATENA_REFUSED ? no_memory() : __libc_memalign(alignment, bytes);
}
CATENA_REPLACES int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
    void* memory = CATENA_REFUSED ? nullptr : __libc_memalign(alignment, bytes);
    if (memory == nullptr) return ENOMEM;
    *out = memory;
    return 0;
}
}

// Replaces operator new, too, since its return address shows which code allocates.
static void* allocated(bool refused, std::size_t bytes, std::align_val_t alignment = {}) {
    const auto align = static_cast<std::size_t>(alignment);
    void* memory = refused      ? nullptr
                   : align == 0 ? __libc_malloc(bytes == 0 ? 1 : bytes)
                                : __libc_memalign(align, bytes);
    return memory != nullptr ? memory : throw std::bad_alloc();
}
CATENA_REPLACES void* operator new(std::size_t bytes) { return allocated(CATENA_REFUSED, bytes); }
CATENA_REPLACES void* operator new[](std::size_t bytes) { return allocated(CATENA_REFUSED, bytes); }
CATENA_REPLACES void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocated(CATENA_REFUSED, bytes, alignment);
}
CATENA_REPLACES void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return allocated(CATENA_REFUSED, bytes, alignment);
}
CATENA_REPLACES void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return CATENA_REFUSED ? nullptr : __libc_malloc(bytes == 0 ? 1 : bytes);
}
CATENA_REPLACES void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return CATENA_REFUSED ? nullptr : __libc_malloc(bytes == 0 ? 1 : bytes);
}

#endif
