// Phases of operations, waits and failures.
#include "team.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace catena_threads {

using namespace catena::plugin;

std::string seconds_text(double seconds) { return text_of(seconds) + " seconds"; }

Link Link::from_environment() {
    const auto number = [](const char* name) {
        const char* const text = std::getenv(name);
        if (text == nullptr || *text == '\0') return 0.0;
        char* end = nullptr;
        const double value = std::strtod(text, &end);
        if (*end != '\0' || !std::isfinite(value) || value < 0)
            fail(CATENA_E_INVALID, "threads", name, "a number, 0 or more", text);
        return value;
    };
    return {.bytes_per_second = number("CATENA_THREADS_BYTES_PER_SECOND"),
            .latency = number("CATENA_THREADS_LATENCY")};
}

void Job::finish(bool success) noexcept {
    const std::lock_guard guard(mutex_);
    int running = 0;
    state_.compare_exchange_strong(running, success ? 1 : 2);
    changed_.notify_all();
}

void Job::await() {
    if (spin([&] { return finished(); })) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished(); });
}

Team::Team(std::int32_t ranks, const Link& link_between)
    : size(ranks), link(link_between), ranks_(static_cast<std::size_t>(ranks)) {}

void Team::fail_locked(std::string text) noexcept {
    if (!failed()) text_ = std::move(text);
    failed_.store(true);
    changed_.notify_all();
    for (Rank& rank : ranks_) rank.mail.notify_all();
}
void Team::fail(std::string text) noexcept {
    const std::lock_guard guard(mutex_);
    fail_locked(std::move(text));
}
void Team::throw_if_failed() {
    if (!failed()) return;
    const std::lock_guard guard(mutex_);
    throw Error(CATENA_E_DEVICE, text_);
}

void Team::begin(std::int32_t rank, const JobPtr& job) {
    const std::lock_guard guard(mutex_);
    if (failed()) throw Error(CATENA_E_DEVICE, text_);
    Rank& own = at(rank);
    own.last = job;
    job->sequence = own.begun.fetch_add(1);
}

bool Team::all_reached(std::uint64_t phase) const {
    return std::ranges::all_of(ranks_, [&](const Rank& r) { return r.phase.load() >= phase; });
}

void Team::reach(std::int32_t rank, std::uint64_t phase) {
    at(rank).phase.store(phase);
    if (sleepers_.load() == 0) return;  // one that comes later sees the phase
    const std::lock_guard guard(mutex_);
    changed_.notify_all();
}

std::string Team::last_of(std::int32_t rank) {
    const JobPtr& last = at(rank).last;
    return last == nullptr ? "which started nothing" : "whose last was " + last->text();
}

// With the mutex: fails if ranks have not started the job in time.
void Team::fail_if_late(const Job& job) {
    std::string late;
    std::int32_t first = -1;
    for (std::int32_t r = 0; r < size; ++r) {
        if (at(r).begun.load() > job.sequence) continue;
        if (first < 0) first = r;
        late += (late.empty() ? "" : ", ") + rank_text(r) + ", " + last_of(r);
    }
    if (first < 0) return;
    catena_comm_info info = job.info;
    info.rank = first;
    fail_locked(failure(info, job.o, job.agreement + " within " + seconds_text(job.o.timeout),
                        "no start by " + late));
}

// Returns whether all ranks have reached a phase of this job; else the group has failed.
bool Team::wait_for(std::uint64_t phase, const Job& job) {
    if (spin([&] { return all_reached(phase) || failed(); })) return all_reached(phase);
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    bool timed = phase % 2 == 1;
    while (!all_reached(phase) && !failed()) {
        for (std::int32_t r = 0; r < size; ++r)  // closed is read first: then the phase is final
            if (at(r).closed.load() && at(r).phase.load() < phase) {
                catena_comm_info info = job.info;
                info.rank = r;
                fail_locked(failure(info, job.o, job.agreement,
                                    "close() by " + rank_text(r) + ", " + last_of(r)));
            }
        if (failed()) break;
        if (timed && Clock::now() >= job.deadline) {
            fail_if_late(job);
            timed = false;  // if all have started it, earlier operations delay it
        } else if (timed) {
            changed_.wait_until(lock, job.deadline);
        } else {
            changed_.wait(lock);
        }
    }
    sleepers_.fetch_sub(1);
    return all_reached(phase);
}

bool Team::delay(Clock::time_point& link_end, Clock::time_point started, std::uint64_t bytes) {
    if (size == 1 || (link.latency <= 0 && link.bytes_per_second <= 0)) return true;
    double seconds = link.latency;
    if (link.bytes_per_second > 0) seconds += static_cast<double>(bytes) / link.bytes_per_second;
    link_end = std::max(started, link_end) + duration_of(seconds);
    std::unique_lock lock(mutex_);
    return !changed_.wait_until(lock, link_end, [&] { return failed(); });
}

// Returns whether the operation succeeded; else the group has failed.
bool Team::run(std::int32_t rank, const JobPtr& job) {
    if (failed()) return false;
    const std::uint64_t sequence = job->sequence;
    Rank& own = at(rank);
    own.current[sequence % 2] = job;  // others read the job before last no more
    reach(rank, 2 * sequence + 1);
    if (!wait_for(2 * sequence + 1, *job)) return false;
    compare(sequence);
    Clock::time_point started = job->started;
    for (std::int32_t r = 0; r < size; ++r)
        started = std::max(started, job_of(r, sequence).started);
    std::uint64_t bytes = 0;
    if (job->o.kind != CATENA_OP_BARRIER) {
        bytes = link_bytes(*job);
        std::vector<std::byte> later;  // results that replace data that others read
        own.reads.store(true);         // before failed(): see leave_memory()
        struct End {
            std::atomic<bool>& reads;
            ~End() { reads.store(false); }
        } end{own.reads};
        if (job->o.kind == split_kind) form_part(rank, *job);
        else transfer(rank, *job, later);
        if (failed()) return false;
        reach(rank, 2 * sequence + 2);
        if (!wait_for(2 * sequence + 2, *job)) return false;
        if (job->o.kind == split_kind) take_part(*job);
        if (!later.empty()) std::ranges::copy(later, job->recv());
    }
    return delay(own.link_end, started, bytes);
}

void Team::execute(std::int32_t rank, const JobPtr& job) noexcept {
    bool success = false;
    try {
        success = run(rank, job);
    } catch (const std::exception& e) {
        fail(e.what());
    }
    job->finish(success);
}

void Team::leave(std::int32_t rank, const Job* unfinished) {
    const std::lock_guard guard(mutex_);
    if (unfinished != nullptr)
        fail_locked(failure(unfinished->info, unfinished->o, unfinished->agreement,
                            "close() by " + rank_text(rank)));
    Rank& own = at(rank);
    own.unmatched.clear();
    for (Rank& r : ranks_)
        for (const Message& m : r.to_receive)
            for (const Job* end : {m.send.get(), m.recv.get()})
                if (end->info.rank == rank)
                    fail_locked(failure(end->info, end->o, end->agreement,
                                        "close() by " + rank_text(rank)));
    own.closed.store(true);
    changed_.notify_all();
    for (Rank& r : ranks_) r.mail.notify_all();
}

// A rank that reads others' memory sets `reads` and then looks whether the group has failed. So
// either it sees that this rank left, or this rank waits for it here.
void Team::leave_memory(std::int32_t rank) {
    for (Rank& r : ranks_)
        while (failed() && r.reads.load()) std::this_thread::yield();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return at(rank).copies == 0; });
}

}  // namespace catena_threads
