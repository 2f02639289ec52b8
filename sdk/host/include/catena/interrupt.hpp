// Interrupt: lets a loop ask between its steps whether Ctrl-C, SIGTERM or SIGHUP came.
#pragma once

#include <chrono>
#include <csignal>

namespace catena {

// While it lives, the first SIGINT, SIGTERM or SIGHUP only sets a flag; the next SIGINT or SIGTERM ends
// the process as usual. A signal that was ignored stays ignored (nohup). At most one at a time.
//
// After SIGTERM or SIGHUP the process has `grace` to end by itself. Then the signal ends it, wherever it
// is: in a long kernel, or reading. 0: there is no limit. After Ctrl-C there is none either: the user
// sees what happens, and may press it again. A SIGHUP after Ctrl-C counts as the first signal.
class Interrupt {
public:
    explicit Interrupt(std::chrono::milliseconds grace = {});
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;
    ~Interrupt();

    bool requested() const noexcept;
    // The exit code that shells know: 128 + the signal's number; 130 for Ctrl-C.
    int exit_code() const noexcept;

    // While it lives, `grace` does not end the process: for a file that should be written to its end.
    // Then the process has `grace` anew.
    class Pause {
    public:
        Pause() noexcept;
        Pause(const Pause&) = delete;
        Pause& operator=(const Pause&) = delete;
        ~Pause();
    };

private:
    struct sigaction before_[3];
};

}  // namespace catena
