#include "allocations.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CATENA_OWN_MALLOC 1
#else
#define CATENA_OWN_MALLOC 0
#endif

namespace catena::check {
namespace {

constinit thread_local bool in_plugin = false;
constinit std::atomic<long> left{0};  // allocations until the one that fails; 0: none will
constinit std::atomic<bool> lasts{false};
constinit std::atomic<bool> happened{false};

[[maybe_unused]] bool refused() {
    if (!in_plugin) return false;
    if (lasts && happened) return true;
    if (left == 0 || --left > 0) return false;
    happened = true;
    return true;
}

}  // namespace

bool allocations_fail() { return CATENA_OWN_MALLOC != 0; }
void fail_allocation(long n, bool lasting) {
    left = n;
    lasts = lasting;
    happened = false;
}
bool allocation_failed() { return happened; }

Inside::Inside(bool plugin) : before_(in_plugin) { in_plugin = plugin; }
Inside::~Inside() { in_plugin = before_; }

}  // namespace catena::check

#if CATENA_OWN_MALLOC

// The C library's own, under the names by which it lends them to replacements; free() stays its.
extern "C" {
void* __libc_malloc(std::size_t);                 // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void*, std::size_t);         // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT(bugprone-reserved-identifier)

#define CATENA_REPLACES __attribute__((visibility("default")))

CATENA_REPLACES void* malloc(std::size_t bytes) {
    if (!catena::check::refused()) return __libc_malloc(bytes);
    errno = ENOMEM;
    return nullptr;
}
CATENA_REPLACES void* calloc(std::size_t n, std::size_t bytes) {
    if (!catena::check::refused()) return __libc_calloc(n, bytes);
    errno = ENOMEM;
    return nullptr;
}
CATENA_REPLACES void* realloc(void* old, std::size_t bytes) {
    if (!catena::check::refused()) return __libc_realloc(old, bytes);
    errno = ENOMEM;
    return nullptr;
}
CATENA_REPLACES void* memalign(std::size_t alignment, std::size_t bytes) {
    if (!catena::check::refused()) return __libc_memalign(alignment, bytes);
    errno = ENOMEM;
    return nullptr;
}
CATENA_REPLACES void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    return memalign(alignment, bytes);
}
CATENA_REPLACES int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
    void* memory = memalign(alignment, bytes);
    if (memory == nullptr) return ENOMEM;
    *out = memory;
    return 0;
}
}

#endif
