// MPI in this process: initialisation, the lock around all calls, and progress of all groups.
#pragma once

#include <mpi.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <catena/plugin/communicator.hpp>

namespace catena_mpi {

using catena::plugin::Clock, catena::plugin::rank_text;

// Throws Error(CATENA_E_DEVICE) with MPI's text unless code is MPI_SUCCESS.
void check_mpi(int code, const char* call);

class State;  // a group: see group.hpp
class Operation;

// The host and the process of a rank.
struct Member {
    int machine;  // the first rank of its machine, in MPI_COMM_WORLD
    int rank;     // its own, in MPI_COMM_WORLD
    int pid;      // of another process that can be watched, else 0
    int fd;       // of that process, or -1 if the system has no such files
};
// Whether each process has ended. A zombie has, too. False for those that cannot be watched.
std::vector<bool> ended(const std::vector<Member>& members);
// "the end of its process (pid 123)"
std::string end_of(const Member& member);

// A pause between two polls that grows while nothing happens. The first ones only yield the core.
class Pause {
public:
    Pause(int yields, std::chrono::microseconds longest)
        : yields_(yields), left_(yields), longest_(longest) {}
    void reset() {
        left_ = yields_;
        sleep_ = shortest;
    }
    // Microseconds to sleep; 0: yield.
    std::chrono::microseconds next() {
        if (left_ > 0) return --left_, std::chrono::microseconds(0);
        return std::exchange(sleep_, std::min(sleep_ * 3 / 2, longest_));
    }
    void operator()() {
        const auto time = next();
        if (time.count() == 0) std::this_thread::yield();
        else std::this_thread::sleep_for(time);
    }

private:
    static constexpr std::chrono::microseconds shortest{20};
    int yields_, left_;
    std::chrono::microseconds sleep_ = shortest, longest_;
};

// The only object of this class is never destroyed.
class Engine {
public:
    static Engine& get();

    // Starts the thread at the first call, and waits until it has initialised MPI, which waits for
    // all ranks. Throws Error after the timeout, in seconds.
    void initialise(double timeout);
    // Ends the thread, and MPI if no group has failed. Waits until all ranks have closed their
    // groups or, after a failure, until they have reported it too.
    void stop() noexcept;

    // All calls of MPI and all members of groups are under this lock. Throws Error if a process of
    // this machine has ended and the holder does not return from MPI: Open MPI never returns when it
    // cannot read the memory of that process.
    using Lock = std::unique_lock<std::timed_mutex>;
    Lock lock();
    // Processes whose end lock() may report.
    void watch(const std::vector<Member>& members);
    const std::vector<Member>& watched() const { return watched_; }  // with the lock
    // With the lock: the operation that its holder waits for.
    void waits_for(const Operation* op) { waited_ = op; }

    // With the lock. Runs what can run; returns whether something did.
    bool poll();
    void add(std::shared_ptr<State> group);
    // With the lock: an operation was started. Wakes the thread if it sleeps for long.
    void started();

    // Polls until done() is true. done() is called with the lock.
    template <class Done>
    void poll_until(const Done& done) {
        const Waiting waiting(waiting_);
        for (Pause pause(yields, longest_wait);; pause()) {
            const Lock held = lock();
            if (!done() && poll()) pause.reset();
            if (!done()) continue;
            if (resting_ && busy()) wake();  // the thread takes over
            return;
        }
    }
    // With the lock: the same, for functions that end a group. At most for a time.
    template <class Done>
    bool poll_until(const Done& done, Clock::duration most) {
        const auto until = Clock::now() + most;
        for (Pause pause(yields, longest_wait); !done(); pause()) {
            if (Clock::now() > until) return false;
            poll();
        }
        return true;
    }
    // With the lock: ends the use of MPI, as it would use memory of callers. All groups fail.
    void halt();
    bool halted() const { return halted_; }

private:
    static constexpr int yields = 300;  // about 0.1 ms
    static constexpr std::chrono::microseconds longest_wait{200};

    // Counts a caller that polls.
    struct Waiting {
        explicit Waiting(std::atomic<int>& callers) : n(callers) { ++n; }
        ~Waiting() { --n; }
        std::atomic<int>& n;
    };

    void run();
    void initialise_mpi();
    void end();
    void wake();
    bool busy() const;  // an operation runs

    std::vector<std::shared_ptr<State>> groups_;
    std::atomic<int> waiting_ = 0;  // callers that poll
    std::timed_mutex mutex_;
    std::atomic<const Operation*> waited_ = nullptr;
    std::mutex watch_mutex_;
    std::vector<Member> watched_;

    // Ends the thread's sleep.
    std::mutex wake_mutex_;
    std::condition_variable wake_;
    bool woken_ = false;
    bool asleep_ = false;   // the thread, for long
    bool resting_ = false;  // the thread, while a caller polls or nothing runs
    bool stopping_ = false, halted_ = false;
    Clock::time_point last_start_;
    std::thread thread_;

    // Guarded by start_mutex_. MPI wants its first and last call from the same thread.
    std::mutex start_mutex_;
    std::condition_variable start_;
    bool initialised_ = false, late_ = false;  // late_: not within a timeout
    std::exception_ptr problem_;
    bool finalise_ = false;  // MPI was initialised here
};

}  // namespace catena_mpi
