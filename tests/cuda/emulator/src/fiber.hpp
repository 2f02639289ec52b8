// Stacks that one OS thread switches between: the threads of a block.
#pragma once

#include <cstddef>

namespace catena_emulator {

class Fiber {
public:
    Fiber();                          // of the calling OS thread itself
    explicit Fiber(void (*entry)());  // entry never returns: it switches away for good
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    // Goes on where to was left; returns when somebody switches back here.
    void switch_to(Fiber& to);
    // The first thing that entry() calls. from: the fiber that switched here.
    static void entered(Fiber& from);

private:
    void* stack_pointer_ = nullptr;
    char* stack_ = nullptr;  // nullptr: the OS thread's
    void* sanitizer_ = nullptr;
    // Of the OS thread's own stack: what AddressSanitizer told of it.
    const void* bottom_ = nullptr;
    std::size_t size_ = 0;
    void* fake_ = nullptr;
};

}  // namespace catena_emulator
