// Fibers: stacks that one OS thread switches between. They run the threads of a block.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <cstddef>

namespace catena_emulator {

class Fiber {
public:
    Fiber();                          // for the calling OS thread
    explicit Fiber(void (*entry)());  // entry never returns; it finally switches to another fiber
    ~Fiber();                         // does not destroy objects on the stack
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Continues `to`; returns when a fiber switches back to this one.
    void switch_to(Fiber& to);
    // entry() must call this first. from: the fiber that switched here.
    static void entered(Fiber& from);

private:
    static void start(boost::context::detail::transfer_t transfer);
    static void save(boost::context::detail::transfer_t transfer);

    boost::context::detail::fcontext_t context_ = nullptr;
    boost::context::stack_context stack_;  // empty for the OS thread
    void (*entry_)() = nullptr;
    void* sanitizer_ = nullptr;
    // Bounds of the stack; AddressSanitizer reports those of the OS thread's.
    const void* bottom_ = nullptr;
    std::size_t size_ = 0;
    void* fake_ = nullptr;
};

}  // namespace catena_emulator
