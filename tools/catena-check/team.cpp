// Which job runs next, for how long, and what is left out.
#include "team.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace catena::check {
namespace {

// Of a job that is left out, since a call of its function did not end in another one's.
Outcome left_out(const Job& job, const std::string& other) {
    Outcome outcome;
    outcome.finished = true;
    for (const Check* check : job.checks)
        outcome.skipped.push_back({name_of(*check), "the function hangs: see " + other});
    return outcome;
}

// Of a job that is not begun, since the time for all of them is over.
Outcome too_late(const Job& job, const Settings& settings) {
    Outcome outcome;
    outcome.failures.push_back(
        {name_of(*job.checks.front()),
         fmt::format("it was not begun: expected all checks to end within {} s (--total)",
                     settings.total),
         {settings.seed, {}}});
    return outcome;
}

}  // namespace

Team::Team(std::vector<Job> jobs, Subject subject, const Settings& settings,
           Clock::time_point start)
    : subject_(std::move(subject)), settings_(settings), start_(start) {
    for (Job& job : jobs) tasks_.push_back({std::move(job), {}, false});
    for (int i = 0; i < settings.jobs; ++i) members_.emplace_back([this] { work(); });
}

Team::~Team() {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
}

std::vector<const Task*> Team::of(const Check& check) {
    std::vector<const Task*> result;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
        result.clear();
        for (const Task& task : tasks_)
            if (const auto& about = task.job.checks;
                std::find(about.begin(), about.end(), &check) != about.end())
                result.push_back(&task);
        return error_ || std::all_of(result.begin(), result.end(),
                                     [](const Task* task) { return task->done; });
    });
    if (error_) std::rethrow_exception(error_);
    std::stable_sort(result.begin(), result.end(), [](const Task* a, const Task* b) {
        return a->job.function < b->job.function;
    });
    return result;
}

void Team::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return stop_ || next_ < tasks_.size() || running_ == 0; });
        if (stop_ || next_ == tasks_.size()) return;
        Task& task = tasks_[next_++];
        const auto hung = hung_.find(task.job.function);
        const std::string other = hung != hung_.end() ? hung->second : "";
        ++running_;
        lock.unlock();
        Outcome outcome;
        std::exception_ptr error;
        try {
            outcome = run(task.job, other);
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        --running_;
        if (!error) finish(task, std::move(outcome));
        else if (!error_) error_ = error;
        stop_ = stop_ || error_;
        changed_.notify_all();
    }
}

Outcome Team::run(const Job& job, const std::string& hung) const {
    Subject mine = subject_;
    mine.function = job.function;
    if (!job.cut_by.empty()) return run_alone(job, mine, !hung.empty());
    if (!hung.empty()) return left_out(job, hung);
    const double time = left();
    if (time <= 0) return too_late(job, settings_);
    return run_job(job, mine, std::min(settings_.timeout, time));
}

// Once with all of its calls; if it crashes there, too, without some of them.
Outcome Team::run_alone(const Job& job, Subject subject, bool hung) const {
    const Check& check = *job.checks.front();
    subject.only = name_of(check);
    // It hung where all together had this time: each gets a part of it, and no long calls.
    const double limit = hung ? settings_.timeout / 10 : settings_.timeout;
    subject.large = !hung;
    const auto once = [&] {
        const double time = left();
        return time > 0 ? run_job(job, subject, std::min(limit, time)) : Outcome();
    };
    const auto without = [&](Outcome outcome, const std::string& what, const std::string& why) {
        outcome.notes.push_back({subject.only, fmt::format("without {}, since {}", what, why), 1});
        return outcome;
    };
    Outcome all = once();
    if (hung) return all.finished ? without(all, "long calls", "the function hangs") : all;
    if (all.finished || all.timed_out || all.failures.empty()) return all;
    const std::string why = all.failures.back().text;
    subject.large = false;
    if (const Outcome some = once(); some.finished) return without(some, "long calls", why);
    subject.large = true;
    subject.gradients = false;
    if (check.group == std::string("gradients")) return all;
    if (const Outcome some = once(); some.finished) return without(some, "gradients", why);
    return all;
}

void Team::finish(Task& task, Outcome outcome) {
    Job& job = task.job;
    if (outcome.timed_out && !job.function.empty())
        hung_.emplace(job.function, name_of(*job.checks.front()));
    task.outcome = std::move(outcome);
    task.done = true;
    const auto& failures = task.outcome.failures;
    const bool cut = !task.outcome.finished && !failures.empty();
    if (!cut || !job.cut_by.empty() || job.function.empty()) return;
    // Of loading all of a job's checks have one look; of a function's calls each may have its own.
    for (std::size_t i = 1; i < job.checks.size(); ++i)
        if (const auto& wanted = settings_.checks;
            std::find(wanted.begin(), wanted.end(), job.checks[i]) != wanted.end())
            tasks_.push_back({{{job.checks[i]}, job.function, failures.back().text}, {}, false});
    job.checks.resize(1);
}

}  // namespace catena::check
