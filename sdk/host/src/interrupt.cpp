// Interrupt: the signal handler.
#include <catena/interrupt.hpp>

namespace catena {
namespace {

volatile std::sig_atomic_t received = 0;

extern "C" void catena_host_interrupt(int signal) { received = signal; }

// What the parent had ignored stays so: nohup, a shell's background jobs.
void handle(int signal, const struct sigaction& action, struct sigaction& before) {
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
    received = 0;
    struct sigaction action {};
    action.sa_handler = catena_host_interrupt;
    // One shot: the second signal finds the default action.
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    sigemptyset(&action.sa_mask);
    handle(SIGINT, action, before_int_);
    handle(SIGTERM, action, before_term_);
}

Interrupt::~Interrupt() {
    sigaction(SIGINT, &before_int_, nullptr);
    sigaction(SIGTERM, &before_term_, nullptr);
}

bool Interrupt::requested() const noexcept { return received != 0; }

int Interrupt::exit_code() const noexcept { return 128 + received; }

}  // namespace catena
