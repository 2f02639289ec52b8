// Interrupt: lets a loop end between two steps after Ctrl-C, SIGTERM or SIGHUP.
#pragma once

#include <chrono>
#include <csignal>

namespace catena {

// While it lives, the first SIGINT, SIGTERM or SIGHUP only sets a flag; the next SIGINT or SIGTERM ends
// the process as usual. A signal that was ignored stays ignored (nohup). At most one at a time.
//
// The process then has some time to end by itself: `grace` after SIGTERM, `hangup_grace` after SIGHUP,
// also if Ctrl-C came before it. Then the signal ends it, even in the middle of a kernel or of a file
// (AtomicFile keeps the file that was there). 0 means no limit. There is no limit after Ctrl-C: the user sees what happens, and may press it
// again.
class Interrupt {
public:
    explicit Interrupt(std::chrono::milliseconds grace = {},
                       std::chrono::milliseconds hangup_grace = {});
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;
    ~Interrupt();

    bool requested() const noexcept;
    // The exit code that shells know: 128 + the signal's number; 130 for Ctrl-C.
    int exit_code() const noexcept;

private:
    struct sigaction before_[3];
};

}  // namespace catena
