// The shared state of the ranks of a group: the operations that they have started, and their progress.
//
// A rank executes its operations in order, on one thread at a time. Each operation except a barrier
// has two phases: a rank reaches the first when it begins the operation, and the second when it has
// read the memory of the others. It waits until all ranks have reached a phase.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <catena/plugin/communicator.hpp>

namespace catena_threads {

using catena::plugin::Clock, catena::plugin::Error;

inline constexpr std::int32_t split_kind = -1;  // an operation of Group::split()

std::string seconds_text(double seconds);

// A simulated connection between the ranks: see README.md.
struct Link {
    double bytes_per_second = 0;  // 0: no limit
    double latency = 0;           // seconds
    // Reads the environment. Throws Error if a variable is not a number.
    static Link from_environment();
};

class Team;

// An operation that one rank has started.
struct Job : catena::plugin::OperationCopy {
    Job(const catena_operation& operation, const catena_comm_info& own, std::string agreed,
        double timeout)
        : OperationCopy(operation, own, timeout), info(own), agreement(std::move(agreed)) {}

    const catena_comm_info info;  // of the rank
    const std::string agreement;
    std::uint64_t sequence = 0;       // among the rank's operations without SEND and RECV
    std::int32_t color = 0, key = 0;  // of split()
    std::shared_ptr<Team> part;       // its result
    std::int32_t part_rank = 0;

    // "allreduce sum of float32 x 10 (l1/W)"
    std::string text() const { return agreement + (label.empty() ? "" : " (" + label + ")"); }

    bool finished() const { return state_.load(std::memory_order_acquire) != 0; }
    bool failed() const { return state_.load(std::memory_order_acquire) == 2; }
    void finish(bool success) noexcept;
    void await();

private:
    std::atomic<int> state_ = 0;  // 1: done, 2: failed
    std::mutex mutex_;
    std::condition_variable changed_;
};
using JobPtr = std::shared_ptr<Job>;

class Team {
public:
    Team(std::int32_t ranks, const Link& link_between);

    // Makes all ranks fail with this text. The first text is kept.
    void fail(std::string text) noexcept;
    bool failed() const { return failed_.load(std::memory_order_seq_cst); }
    void throw_if_failed();

    // Registers an operation at its start.
    void begin(std::int32_t rank, const JobPtr& job);
    // Executes a registered operation, on the rank's one executing thread.
    void execute(std::int32_t rank, const JobPtr& job) noexcept;

    // SEND and RECV: the rank's thread for messages runs serve_messages() until it leaves.
    void post(std::int32_t rank, const JobPtr& job);
    void serve_messages(std::int32_t rank);

    // Called before a rank joins its threads, which then end their waits.
    void leave(std::int32_t rank, const Job* unfinished);
    // Called at the end: returns when no other rank reads this rank's memory.
    void leave_memory(std::int32_t rank);

    const std::int32_t size;
    const Link link;

private:
    struct Message {
        JobPtr send, recv;
    };
    struct alignas(64) Rank {
        std::atomic<std::uint64_t> phase = 0;  // two for each operation
        std::atomic<std::uint64_t> begun = 0;  // operations that start() has registered
        std::atomic<bool> reads = false;       // it reads others' memory
        std::atomic<bool> closed = false;
        JobPtr current[2];           // begun by the executor; of even and odd sequence
        Clock::time_point link_end;  // the executor's
        // With the team's mutex:
        JobPtr last;                   // of begin() and post()
        std::deque<JobPtr> unmatched;  // SEND and RECV that wait for the other end
        std::deque<Message> to_receive;
        Clock::time_point message_end;  // its thread's for messages
        int copies = 0;                 // messages to or from its memory that are being copied
        std::condition_variable mail;
    };

    Rank& at(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    const Job& job_of(std::int32_t rank, std::uint64_t sequence) {
        return *at(rank).current[sequence % 2];
    }
    void reach(std::int32_t rank, std::uint64_t phase);
    bool all_reached(std::uint64_t phase) const;
    bool wait_for(std::uint64_t phase, const Job& job);
    void fail_if_late(const Job& job);
    std::string last_of(std::int32_t rank);
    void fail_locked(std::string text) noexcept;
    bool run(std::int32_t rank, const JobPtr& job);
    // Waits as long as the link needs; returns false if the group has failed.
    bool delay(Clock::time_point& link_end, Clock::time_point started, std::uint64_t bytes);

    // transfer.cpp
    void compare(std::uint64_t sequence);
    void compare_pieces(std::uint64_t sequence);
    void transfer(std::int32_t rank, const Job& job, std::vector<std::byte>& later);
    void reduce(std::int32_t rank, const Job& job, std::vector<std::byte>& later);
    void copy(std::byte* to, const std::byte* from, std::uint64_t bytes);
    std::uint64_t link_bytes(const Job& job);
    void form_part(std::int32_t rank, Job& job);
    void take_part(Job& job);

    // messages.cpp, with the mutex
    bool match(std::int32_t rank, const JobPtr& job);
    void receive(std::int32_t rank, std::unique_lock<std::mutex>& lock);
    void fail_messages(std::int32_t rank);
    Clock::time_point check_unmatched(std::int32_t rank);

    std::vector<Rank> ranks_;
    std::mutex mutex_;
    std::condition_variable changed_;  // of phases, failed_ and copies
    std::atomic<int> sleepers_ = 0;
    std::atomic<bool> failed_ = false;
    std::string text_;
};

// Waits briefly for a condition that another thread is about to fulfil.
template <class Condition>
bool spin(const Condition& condition) {
    for (int i = 0; i < 1000; ++i) {
        if (condition()) return true;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    return condition();
}

}  // namespace catena_threads
