// Switches stacks with Boost.Context and informs sanitizers.
#include "fiber.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace catena_emulator {
namespace {

namespace context = boost::context;
using context::detail::transfer_t;

constexpr std::size_t stack_bytes = std::size_t{256} << 10;  // pages are allocated on first use

// The data that a switch passes to the other fiber.
struct Switch {
    Fiber* from;
    Fiber* to;
};

}  // namespace

Fiber::Fiber() {
#if defined(__SANITIZE_THREAD__)
    sanitizer_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*entry)())
    : stack_(context::protected_fixedsize_stack(stack_bytes).allocate()), entry_(entry) {
    context_ = context::detail::make_fcontext(stack_.sp, stack_.size, start);
    bottom_ = static_cast<char*>(stack_.sp) - stack_.size;
    size_ = stack_.size;
#if defined(__SANITIZE_THREAD__)
    sanitizer_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
    if (stack_.sp == nullptr) return;
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(sanitizer_);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(bottom_, size_);
#endif
    context::protected_fixedsize_stack(stack_bytes).deallocate(stack_);
}

// Stores where the fiber that switched here continues later.
void Fiber::save(transfer_t transfer) {
    static_cast<const Switch*>(transfer.data)->from->context_ = transfer.fctx;
}

void Fiber::start(transfer_t transfer) {
    Fiber* const self = static_cast<const Switch*>(transfer.data)->to;
    save(transfer);
    self->entry_();
}

void Fiber::switch_to(Fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fake_, to.bottom_, to.size_);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(to.sanitizer_, 0);
#endif
    Switch way{this, &to};
    save(context::detail::jump_fcontext(to.context_, &way));
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
