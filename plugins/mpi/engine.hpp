// MPI in this process: initialisation, the lock around all calls, and progress of all groups.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace catena_mpi {

using Clock = std::chrono::steady_clock;

// Throws Error(CATENA_E_DEVICE) with MPI's text unless code is MPI_SUCCESS.
void check_mpi(int code, const char* call);

class State;  // a group: see group.hpp

// A pause between two polls that grows while nothing happens. The first ones only yield the core.
class Pause {
public:
    explicit Pause(int yields) : yields_(yields), left_(yields) {}
    void reset() {
        left_ = yields_;
        sleep_ = shortest;
    }
    // Microseconds to sleep; 0: yield.
    std::chrono::microseconds next() {
        if (left_ > 0) return --left_, std::chrono::microseconds(0);
        return std::exchange(sleep_, std::min(sleep_ * 3 / 2, longest));
    }
    void operator()() {
        const auto time = next();
        if (time.count() == 0) std::this_thread::yield();
        else std::this_thread::sleep_for(time);
    }

private:
    static constexpr std::chrono::microseconds shortest{20}, longest{500};
    int yields_, left_;
    std::chrono::microseconds sleep_ = shortest;
};

// The only object of this class is never destroyed.
class Engine {
public:
    static Engine& get();

    // Initialises MPI at the first call, and starts the thread.
    void initialise();
    // Ends the thread, and MPI if no group has failed. Waits until all ranks have closed their
    // groups or, after a failure, until they have reported it too.
    void stop() noexcept;

    // All calls of MPI and all members of groups are under this lock.
    std::mutex mutex;

    // With the lock. Runs what can run; returns whether something did.
    bool poll();
    void add(std::shared_ptr<State> group);
    // With the lock: an operation was started. Wakes the thread if it sleeps for long.
    void started();

    // Polls until done() is true. done() is called with the lock.
    template <class Done>
    void poll_until(const Done& done) {
        waiting_.fetch_add(1, std::memory_order_relaxed);
        for (Pause pause(yields);; pause()) {
            const std::lock_guard lock(mutex);
            if (!done() && poll()) pause.reset();
            if (!done()) continue;
            waiting_.fetch_sub(1, std::memory_order_relaxed);
            if (resting_ && busy()) wake_.notify_one();  // it takes over
            return;
        }
    }

private:
    static constexpr int yields = 300;  // about 0.1 ms

    void run();
    bool busy() const;  // an operation runs

    std::vector<std::shared_ptr<State>> groups_;
    std::atomic<int> waiting_ = 0;  // callers that poll
    std::condition_variable wake_;
    bool asleep_ = false;   // the thread, for long
    bool resting_ = false;  // the thread, while a caller polls or nothing runs
    bool stopping_ = false;
    Clock::time_point last_start_;
    std::thread thread_;
    bool finalise_ = false;  // MPI was initialised here
};

}  // namespace catena_mpi
