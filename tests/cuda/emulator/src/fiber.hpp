// Stacks that one OS thread switches between: the threads of a block.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <cstddef>

namespace catena_emulator {

class Fiber {
public:
    Fiber();                          // of the calling OS thread itself
    explicit Fiber(void (*entry)());  // entry never returns: it switches to another fiber for good
    ~Fiber();                         // what is on the stack is not destroyed
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Continues `to`; returns when somebody switches back here.
    void switch_to(Fiber& to);
    // The first thing that entry() calls. from: the fiber that switched here.
    static void entered(Fiber& from);

private:
    static void start(boost::context::detail::transfer_t transfer);
    static void save(boost::context::detail::transfer_t transfer);

    boost::context::detail::fcontext_t context_ = nullptr;
    boost::context::stack_context stack_;  // empty: the OS thread's
    void (*entry_)() = nullptr;
    void* sanitizer_ = nullptr;
    // What AddressSanitizer told of the OS thread's own stack.
    const void* bottom_ = nullptr;
    std::size_t size_ = 0;
    void* fake_ = nullptr;
};

}  // namespace catena_emulator
