// An operator new that calls the test first. Include this in one source file of an executable: it replaces the
// operator of the whole process, its libraries and plugins included.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace catena_test {

// The test defines this. What it throws, operator new throws. [any]
void on_allocation();

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sees_allocations = false;  // a sanitizer has its own operator new
#else
inline constexpr bool sees_allocations = true;
#endif

}  // namespace catena_test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // inlined, they look unrelated
#endif
void* operator new(std::size_t bytes) {
    catena_test::on_allocation();
    if (void* block = std::malloc(bytes ? bytes : 1)) return block;
    throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
#endif
