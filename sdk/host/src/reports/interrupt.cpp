// Interrupt: the signal handler, and the timer that ends the process.
#include <catena/interrupt.hpp>

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <iterator>

namespace catena {
namespace {

constexpr int signals[] = {SIGINT, SIGHUP, SIGTERM};

// State that the signal handler reads. It may run in any thread at any time.
std::atomic<int> received = 0;
std::atomic<bool> has_timer = false;
timer_t timer;                            // sends SIGTERM, or SIGHUP if SIGTERM is ignored
itimerspec deadline, deadline_of_hangup;  // from the start of the timer

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

void start_timer() {
    if (has_timer)
        timer_settime(timer, 0, received == SIGHUP ? &deadline_of_hangup : &deadline, nullptr);
}

itimerspec once(std::chrono::milliseconds time) {
    return {{}, {time.count() / 1000, time.count() % 1000 * 1'000'000}};
}

// Raises the signal with its default action, which ends the process.
void end_by(int signal) {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    ::raise(signal);
}

extern "C" void catena_host_interrupt(int signal, siginfo_t* info, void*) {
    const int before = errno;
    int none = 0, interrupt = SIGINT;
    if (info->si_code == SI_TIMER) {
        if (received != 0) end_by(received);
    } else if (received.compare_exchange_strong(none, signal)) {
        if (signal != SIGINT) start_timer();
    } else if (signal != SIGHUP) {
        end_by(signal);
    } else if (received.compare_exchange_strong(interrupt, signal)) {
        start_timer();  // only once: a terminal that closes may send SIGHUP twice
    }
    errno = before;
}

// A thread that receives signals while all others block them, as kernels may do as long as they run.
pthread_t listener;
bool has_listener = false;

void* listen(void*) {
    for (;;) pause();  // until it is cancelled
}

void start_listener() {
    sigset_t set, before;
    sigfillset(&set);
    for (const int signal : signals) sigdelset(&set, signal);
    pthread_sigmask(SIG_SETMASK, &set, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    has_listener = pthread_create(&listener, &attributes, listen, nullptr) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void stop_listener() {
    if (!has_listener) return;
    has_listener = false;
    pthread_cancel(listener);
    pthread_join(listener, nullptr);
}

}  // namespace

Interrupt::Interrupt(std::chrono::milliseconds grace, std::chrono::milliseconds hangup_grace) {
    received = 0;
    struct sigaction action {};
    action.sa_sigaction = catena_host_interrupt;
    action.sa_flags = SA_RESTART | SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    int last = 0;
    for (std::size_t i = 0; i < std::size(signals); ++i) {
        sigaction(signals[i], nullptr, &before_[i]);
        if (before_[i].sa_handler == SIG_IGN) continue;
        if (signals[i] != SIGINT) last = signals[i];
    }
    deadline = once(grace);
    deadline_of_hangup = once(hangup_grace);
    struct sigevent event {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = last;
    has_timer = std::max(grace, hangup_grace).count() > 0 && last != 0 &&
                timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    for (std::size_t i = 0; i < std::size(signals); ++i) {
        if (before_[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
    }
    if (has_timer) start_listener();
}

Interrupt::~Interrupt() {
    stop_listener();
    if (has_timer.exchange(false)) timer_delete(timer);  // while its signal still has a handler
    for (std::size_t i = 0; i < std::size(signals); ++i)
        sigaction(signals[i], &before_[i], nullptr);
}

bool Interrupt::requested() const noexcept { return received != 0; }

int Interrupt::exit_code() const noexcept { return 128 + received; }

}  // namespace catena
