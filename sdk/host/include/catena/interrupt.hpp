// Interrupt: lets a loop stop between two steps after Ctrl-C, SIGTERM or SIGHUP.
#pragma once

#include <chrono>
#include <csignal>

namespace catena {

// While an Interrupt exists, the first SIGINT, SIGTERM or SIGHUP only sets a flag; the next SIGINT
// or SIGTERM ends the process. An ignored signal stays ignored (nohup). Only one may exist.
//
// The process then has limited time to end by itself: `grace` after SIGTERM, `hangup_grace` after
// SIGHUP, also if Ctrl-C came first. After that the signal ends it, even during a kernel or while a
// file is written (AtomicFile keeps the old file). 0 means no limit, as after Ctrl-C.
class Interrupt {
public:
    [[nodiscard]] explicit Interrupt(std::chrono::milliseconds grace = {},
                                     std::chrono::milliseconds hangup_grace = {});
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;
    ~Interrupt();

    bool requested() const noexcept;
    // The exit code that shells use: 128 + the signal's number; 130 for Ctrl-C.
    int exit_code() const noexcept;

private:
    struct sigaction before_[3];
};

}  // namespace catena
