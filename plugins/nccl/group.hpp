// A group of ranks on GPUs: operations on NCCL, compared by Control.
#pragma once

#include <atomic>

#include "control.hpp"
#include "library.hpp"

namespace catena_nccl {

using Info = catena_comm_info;

class Group;

class Operation final : public catena::plugin::Work {
public:
    // On the device of the group. seconds: its timeout.
    Operation(Group& group, Route route, std::string head, double seconds)
        : group_(group), route_(route), head_(std::move(head)), seconds_(seconds) {}
    ~Operation() override;
    bool test() override;
    void wait() override;
    void wait_on(catena_stream* stream) override;

private:
    friend class Group;
    Group& group_;
    const Route route_;
    const std::string head_;
    const double seconds_;
    const Clock::time_point limit_ = after(seconds_);
    std::int64_t number_ = 0;
    std::unique_ptr<Event> end_;  // on the stream of NCCL
    std::atomic<bool> done_ = false;
    bool late_ = false;  // rank 0 was asked why
};

class Group final : public catena::plugin::Group {
public:
    // Throws Error.
    Group(Control::Place place, int device, double timeout);
    ~Group() override;

    Info info() const noexcept override { return info_; }
    std::unique_ptr<catena::plugin::Group> split(std::int32_t color, std::int32_t key) override;
    std::shared_ptr<catena::plugin::Work> start(const catena_operation& o) override;
    void abort(std::string_view reason) noexcept override;

private:
    friend class Operation;
    using Links = std::map<Route, std::unique_ptr<Link>>;

    void check_here(const catena_operation& o) const;
    Waiting until(Clock::time_point limit, const std::string& head) const;
    // The link of two ranks, which both make in the background once either of them needs it.
    Link& channel(Route route, const Waiting& waiting);
    void make_channel(Route route, const std::string& id);
    void launch(const catena_operation& o, Link& link, const Waiting& waiting);
    void* scratch(std::uint64_t bytes);
    void step();  // of Control's thread
    bool busy();
    bool all_done();

    const int device_;
    const double timeout_;
    Info info_;
    Control control_;
    std::mutex links_mutex_;  // guards the links, and NCCL's calls with them
    Links links_;             // at `collective` for all ranks
    std::mutex running_mutex_;
    std::vector<std::shared_ptr<Operation>> running_;
    std::map<Route, std::thread> making_;  // channels; of Control's thread
    std::atomic<bool> closing_ = false;
    bool aborted_ = false;  // of Control's thread
    std::vector<void*> scratch_;
    std::uint64_t scratch_bytes_ = 0;
};

}  // namespace catena_nccl
