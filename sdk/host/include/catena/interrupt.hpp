// Interrupt: Ctrl-C and SIGTERM as a question that a loop asks when it suits it.
#pragma once

#include <csignal>

namespace catena {

// While it lives, the first SIGINT or SIGTERM only sets a flag; the next one ends the program as
// usual. A signal that was ignored stays ignored. At most one at a time.
class Interrupt {
public:
    Interrupt();
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;
    ~Interrupt();

    bool requested() const noexcept;
    // The exit code that shells know: 128 + the signal's number; 130 for Ctrl-C.
    int exit_code() const noexcept;

private:
    struct sigaction before_int_;
    struct sigaction before_term_;
};

}  // namespace catena
