// Switches by a few instructions on x86-64, by the C library elsewhere; sanitizers are told.
#include "fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace catena_emulator {
namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;  // touched where it is used

#if defined(__x86_64__)

// Pushes what a call preserves, leaves the stack pointer at *from, takes up the other stack.
extern "C" void catena_emulator_switch(void** from, void* to);
__asm__(R"(
    .text
    .hidden catena_emulator_switch
    .globl catena_emulator_switch
    .type catena_emulator_switch, @function
catena_emulator_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size catena_emulator_switch, .-catena_emulator_switch
)");

void* first_frame(char* stack, void (*entry)()) {
    auto* top = reinterpret_cast<std::uintptr_t*>(stack + stack_bytes);
    *--top = 0;  // the return address of entry, which is aligned as after a call
    *--top = reinterpret_cast<std::uintptr_t>(entry);
    for (int i = 0; i < 6; ++i) *--top = 0;
    return top;
}
void exchange_stacks(void** from, void* to) { catena_emulator_switch(from, to); }
void drop_frame(void*) {}

#else

void* first_frame(char* stack, void (*entry)()) {
    auto* context = new ucontext_t;
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = stack_bytes;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
    return context;
}
void exchange_stacks(void** from, void* to) {
    if (*from == nullptr) *from = new ucontext_t;
    swapcontext(static_cast<ucontext_t*>(*from), static_cast<ucontext_t*>(to));
}
void drop_frame(void* frame) { delete static_cast<ucontext_t*>(frame); }

#endif

}  // namespace

Fiber::Fiber() {
#if defined(__SANITIZE_THREAD__)
    sanitizer_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*entry)()) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* block = mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
    mprotect(block, page, PROT_NONE);  // an overflow traps
    stack_ = static_cast<char*>(block) + page;
    stack_pointer_ = first_frame(stack_, entry);
    bottom_ = stack_;
    size_ = stack_bytes;
#if defined(__SANITIZE_THREAD__)
    sanitizer_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
    drop_frame(stack_pointer_);
    if (stack_ == nullptr) return;
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(sanitizer_);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack_, stack_bytes);
#endif
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    munmap(stack_ - page, stack_bytes + page);
}

void Fiber::switch_to(Fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fake_, to.bottom_, to.size_);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(to.sanitizer_, 0);
#endif
    exchange_stacks(&stack_pointer_, to.stack_pointer_);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_, nullptr, nullptr);
#endif
}

void Fiber::entered([[maybe_unused]] Fiber& from) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &from.bottom_, &from.size_);
#endif
}

}  // namespace catena_emulator
