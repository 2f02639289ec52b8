// A group of ranks on GPUs: operations on NCCL, which the ranks compare through Peers.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "library.hpp"
#include "peers.hpp"

namespace catena_nccl {

// SEND and RECV have an order of their own for each pair (sender, receiver); the other operations
// of a group have one order, that of `collective`.
using Route = std::pair<int, int>;
constexpr Route collective = {-1, -1};

// The message of a rank to another one about an operation that it starts.
struct Told {
    std::uint64_t count;  // of elements for that rank
    char place[88];       // "[allreduce] l1/W"
    char text[160];       // "allreduce sum of float32 x 10"
};

// The message that each rank sends to all others a few times a second in the background.
struct Beat {
    std::int32_t leaves;    // it closes the group
    std::int32_t from, to;  // it needs the link of these ranks, or -1
    char id[128];           // NCCL's id for that link
};

class Group;

class Operation final : public catena::plugin::Work {
public:
    // On the device of the group.
    Operation(Group& group, const catena_operation& o);
    ~Operation() override;
    bool test() override;
    void wait() override;
    void wait_on(catena_stream* stream) override;

private:
    friend class Group;
    void compare() const;

    Group& group_;
    const Route route_;
    const std::string head_;  // "rank 1: [allreduce] l1/W"
    const double seconds_;    // its timeout
    const Clock::time_point limit_;
    std::vector<Told> told_, heard_;        // to and from each rank
    std::vector<std::uint64_t> expected_;   // counts from each rank, unless the text has them
    Peers::Started exchange_{nullptr, {}};  // of these
    bool agreed_ = false;
    std::unique_ptr<Event> end_;  // on the stream of NCCL
    std::atomic<bool> done_ = false;
};

class Group final : public catena::plugin::Group {
public:
    // Throws Error. peers: null for one rank.
    Group(std::unique_ptr<Peers> peers, int device, double timeout);
    ~Group() override { close(); }

    Info info() const noexcept override { return info_; }
    std::unique_ptr<catena::plugin::Group> split(std::int32_t color, std::int32_t key) override;
    std::shared_ptr<catena::plugin::Work> start(const catena_operation& o) override;
    void abort(std::string_view reason) noexcept override;

private:
    friend class Operation;

    void close();
    void check_here(const catena_operation& o) const;
    // Makes the group fail with this text; without one, messages_ or pulse_ has it.
    void fail_with(const std::string& text);
    void abort_peers(const std::string& reason) const;
    void throw_if_failed() const;
    Waiting until(Clock::time_point limit, const std::string& head) const;
    // The link of two ranks, which both make in the background once either of them needs it.
    Link& channel(Route route, const Waiting& waiting);
    void make_channel(Route route, const std::string& id);
    void announce(const catena_operation& o, Operation& operation);
    bool agreed(Operation& operation);
    void launch(const catena_operation& o, Link& link, const Waiting& waiting);
    void* scratch(std::uint64_t bytes);
    void step();  // of the group's thread
    void beat();

    const int device_;
    const double timeout_;
    Info info_{sizeof info_, 0, 1, 0, 1, 0};
    // For agreements, and for beats; null for one rank.
    std::unique_ptr<Peers> messages_, pulse_;
    mutable std::mutex messages_mutex_;  // guards the start of their operations
    char id_[sizeof(ncclUniqueId)] = {};

    mutable std::mutex failure_mutex_;  // guards the text
    std::string failure_;
    Peers* reporter_ = nullptr;  // has the text, if failure_ has none
    std::atomic<bool> failed_ = false;

    std::mutex links_mutex_;                        // guards the links, and NCCL's calls with them
    std::map<Route, std::unique_ptr<Link>> links_;  // at `collective` for all ranks
    std::mutex running_mutex_;                      // guards the operations, and their agreement
    std::vector<std::shared_ptr<Operation>> running_;
    Route wanted_ = collective;  // a channel, also guarded by running_mutex_
    std::vector<void*> scratch_;
    std::uint64_t scratch_bytes_ = 0;

    std::atomic<bool> leaves_ = false, stops_ = false;
    std::atomic<bool> silent_ = true;  // no more beats, as a rank has left
    Beat own_beat_ = {};
    std::vector<Beat> beats_;
    Peers::Started beating_{nullptr, {}};
    Clock::time_point next_beat_;
    bool aborted_ = false;
    std::map<Route, std::thread> making_;  // channels
    std::thread thread_;
};

}  // namespace catena_nccl
