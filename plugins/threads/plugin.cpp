// threads.catena: its groups, and the table.
#include <algorithm>
#include <map>

#include <catena/plugin/communicator.hpp>

#include "team.hpp"

namespace catena_threads {
namespace {

using namespace catena::plugin;

class Member;

// A started operation. The job also belongs to the threads that execute it.
class StartedWork : public Work {
public:
    StartedWork(Member& member, Team& team, JobPtr job)
        : member_(member), team_(team), job_(std::move(job)) {}
    bool test() override {
        if (job_->failed()) team_.throw_if_failed();
        return job_->finished();
    }
    void wait() override;

private:
    Member& member_;  // is closed after the works were released
    Team& team_;
    JobPtr job_;
};

class Member : public Group {
public:
    Member(std::shared_ptr<Team> team, std::int32_t rank, double timeout)
        : team_(std::move(team)), rank_(rank), timeout_(timeout) {}
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    ~Member() override;

    catena_comm_info info() const noexcept override {
        return {.struct_size = sizeof(catena_comm_info),
                .rank = rank_,
                .size = team_->size,
                .local_rank = rank_,
                .local_size = team_->size,
                .reserved = 0};
    }
    std::unique_ptr<Group> split(std::int32_t color, std::int32_t key) override;
    std::shared_ptr<Work> start(const catena_operation& operation) override;
    void abort(std::string_view reason) noexcept override {
        team_->fail(rank_text(rank_) + ": aborted: " + std::string(reason));
    }

    // Executes operations up to this one, unless another thread does so.
    void execute_until(const Job& job);

private:
    void enqueue(const JobPtr& job);
    void execute_queue(std::unique_lock<std::mutex>& lock, const Job* until);
    void serve();

    const std::shared_ptr<Team> team_;
    const std::int32_t rank_;
    const double timeout_;

    std::mutex mutex_;  // of the following
    std::condition_variable changed_;
    std::deque<JobPtr> queue_;  // the first is being executed, if executing_
    bool executing_ = false, closing_ = false;
    std::thread engine_, messenger_;  // started when they are needed
};

void StartedWork::wait() {
    if (!job_->finished()) {
        member_.execute_until(*job_);
        job_->await();
    }
    if (job_->failed()) team_.throw_if_failed();
}

std::shared_ptr<Work> Member::start(const catena_operation& operation) {
    const auto job =
        std::make_shared<Job>(operation, info(), agreement(operation, info()), timeout_);
    auto work = std::make_shared<StartedWork>(*this, *team_, job);
    if (is_pair(operation.kind)) {
        if (!messenger_.joinable())
            messenger_ = std::thread([this] { team_->serve_messages(rank_); });
        team_->post(rank_, job);
    } else {
        enqueue(job);
    }
    return work;
}

void Member::enqueue(const JobPtr& job) {
    if (!engine_.joinable()) engine_ = std::thread([this] { serve(); });
    const std::lock_guard guard(mutex_);
    queue_.push_back(job);
    try {
        team_->begin(rank_, job);
    } catch (...) {
        queue_.pop_back();
        throw;
    }
    changed_.notify_one();
}

// The first job stays in the queue while it is executed.
void Member::execute_queue(std::unique_lock<std::mutex>& lock, const Job* until) {
    executing_ = true;
    while (!queue_.empty() && !closing_ && !(until != nullptr && until->finished())) {
        const JobPtr job = queue_.front();
        lock.unlock();
        team_->execute(rank_, job);
        lock.lock();
        queue_.pop_front();
    }
    executing_ = false;
    if (!queue_.empty()) changed_.notify_one();
}

void Member::execute_until(const Job& job) {
    std::unique_lock lock(mutex_);
    const bool mine = std::ranges::any_of(queue_, [&](const JobPtr& j) { return j.get() == &job; });
    if (mine && !executing_) execute_queue(lock, &job);
}

// The engine. It leaves the caller some time to call wait(), which is faster than to wake a thread.
void Member::serve() {
    std::unique_lock lock(mutex_);
    while (!closing_) {
        changed_.wait(lock, [&] { return closing_ || (!executing_ && !queue_.empty()); });
        changed_.wait_for(lock, std::chrono::microseconds(20), [&] { return closing_; });
        if (!executing_) execute_queue(lock, nullptr);
    }
}

std::unique_ptr<Group> Member::split(std::int32_t color, std::int32_t key) {
    catena_operation operation = {};
    operation.kind = split_kind;
    operation.label = "split";
    const auto job = std::make_shared<Job>(operation, info(), "split", timeout_);
    job->color = color;
    job->key = key;
    enqueue(job);
    execute_until(*job);
    job->await();
    if (job->failed()) team_->throw_if_failed();
    if (job->part == nullptr) return nullptr;
    return std::make_unique<Member>(job->part, job->part_rank, timeout_);
}

Member::~Member() {
    JobPtr unfinished;
    {
        const std::lock_guard guard(mutex_);
        closing_ = true;
        for (const JobPtr& job : queue_)  // the first may be finished and not yet removed
            if (unfinished == nullptr && !job->finished()) unfinished = job;
    }
    team_->leave(rank_, unfinished.get());
    changed_.notify_all();
    if (engine_.joinable()) engine_.join();
    if (messenger_.joinable()) messenger_.join();
    team_->leave_memory(rank_);
}

// ---- open()

// A group whose ranks are opening it.
struct Opening {
    std::shared_ptr<Team> team;
    std::vector<bool> joined;
    std::int32_t missing;
};

struct Openings {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, std::shared_ptr<Opening>> by_name;
};
Openings& openings() {
    static auto* all = new Openings;
    return *all;
}

std::string missing_ranks(const Opening& opening) {
    std::string text;
    for (std::size_t r = 0; r < opening.joined.size(); ++r)
        if (!opening.joined[r]) text += (text.empty() ? "" : ", ") + rank_text(r);
    return text;
}

std::unique_ptr<Group> open(const catena_comm_options& options) {
    const std::int32_t size = std::max(options.size, 1), rank = std::max(options.rank, 0);
    if (options.rank < 0 && options.size > 0)
        fail(CATENA_E_INVALID, "open", "rank", "0 to " + std::to_string(size - 1), options.rank);
    if (rank >= size) fail(CATENA_E_INVALID, "open", "size", "above the rank", size);
    const Link link = Link::from_environment();
    const std::string name =
        options.address == nullptr || *options.address == '\0' ? "default" : options.address;
    Openings& all = openings();
    std::unique_lock lock(all.mutex);
    std::shared_ptr<Opening>& entry = all.by_name[name];
    if (entry == nullptr)
        entry = std::make_shared<Opening>(Opening{std::make_shared<Team>(size, link),
                                                  std::vector<bool>(static_cast<std::size_t>(size)),
                                                  size});
    const std::shared_ptr<Opening> opening = entry;
    if (opening->team->size != size)
        fail(CATENA_E_INVALID, "open", ("size of " + name).c_str(), opening->team->size, size);
    const auto own = static_cast<std::size_t>(rank);
    if (opening->joined[own])
        fail(CATENA_E_INVALID, "open", ("rank of " + name).c_str(), missing_ranks(*opening),
             rank_text(rank) + " again");
    opening->joined[own] = true;
    if (--opening->missing == 0) {
        all.by_name.erase(name);
        all.changed.notify_all();
    } else if (!all.changed.wait_until(lock, after(options.timeout),
                                       [&] { return opening->missing == 0; })) {
        const std::string missing = missing_ranks(*opening);
        opening->joined[own] = false;
        if (++opening->missing == size) all.by_name.erase(name);
        throw Error(CATENA_E_DEVICE, rank_text(rank) + ": [open] " + name + ": expected " +
                                         std::to_string(size) + " ranks within " +
                                         seconds_text(options.timeout) + ", got none of " +
                                         missing);
    }
    return std::make_unique<Member>(opening->team, rank, options.timeout);
}

const catena_plugin& table() {
    static const catena_communicator communicator =
        communicator_table<open>("threads", "ranks that are threads of one process", "cpu");
    static const catena_extension entry = extension(CATENA_COMMUNICATOR_1, "", &communicator);
    static const catena_extension* const extensions[] = {&entry};
    static const catena_plugin plugin = table_of({.extensions = extensions});
    return plugin;
}

}  // namespace
}  // namespace catena_threads

CATENA_EXPORT_PLUGIN("org.catena.threads", CATENA_VERSION, "", catena_threads::table());
