// An operator new that first calls the test. Include this file in one source file of an executable:
// it replaces operator new of the whole process, including libraries and plugins.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace catena_test {

// Defined by the test. May throw, to make operator new throw. [any]
void on_allocation();

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sees_allocations = false;  // sanitizers define their own operator new
#else
inline constexpr bool sees_allocations = true;
#endif

}  // namespace catena_test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // false warning if both are inlined
#endif
void* operator new(std::size_t bytes) {
    catena_test::on_allocation();
    if (void* block = std::malloc(bytes ? bytes : 1)) return block;
    throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
#endif
