// Schedules the processes, limits their time, and turns their outcomes into results.
#include "runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace catena::check {
namespace {

// Returns the registered checks by file and line, which does not depend on the order of linking.
std::multimap<std::pair<std::string_view, unsigned>, Check>& registered() {
    static std::multimap<std::pair<std::string_view, unsigned>, Check> all;
    return all;
}

// Returns the place of a group; groups that need less of the plugin come first.
std::size_t rank(std::string_view group) {
    static constexpr std::string_view order[] = {"static",       "load",      "schema", "backend",
                                                 "communicator", "inference", "values", "gradients",
                                                 "determinism",  "faults",    "skew",   "fuzz"};
    return static_cast<std::size_t>(std::ranges::find(order, group) - std::begin(order));
}

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// A process and its outcome.
struct Task {
    std::vector<const Check*> checks;  // those that it reports on
    std::string function = {};
    // If the task repeats one check alone: the failure that ended the shared run. Else empty.
    std::string cut_by = {};
    Outcome outcome = {};
    bool done = false;
};

// Checks with the same run() share one task, or one task per function. A task also runs checks that
// are not wanted, but the results leave them out.
std::deque<Task> tasks_of(const Settings& settings, const Survey& survey) {
    std::deque<Task> tasks;
    std::vector<void (*)(const Subject&, Findings&)> seen;
    for (const Check* wanted : settings.checks) {
        if (wanted->loads && !survey.problem.empty()) continue;
        if (std::ranges::count(seen, wanted->run) > 0) continue;
        seen.push_back(wanted->run);
        const auto checks = together_with(*wanted);
        if (wanted->each == Each::plugin) {
            tasks.push_back({checks});
            continue;
        }
        for (const std::string& function : survey.functions)
            if (settings.subject.function.empty() || settings.subject.function == function)
                tasks.push_back({checks, function});
    }
    return tasks;
}

// Runs tasks in parallel, and repeats the checks of a function that a crash or time-out cut off.
class Team {
public:
    // `subject` includes the results of the survey. settings.total counts from `start`.
    Team(std::deque<Task> tasks, Subject subject, const Settings& settings, Clock::time_point start)
        : subject_(std::move(subject)),
          settings_(settings),
          start_(start),
          tasks_(std::move(tasks)) {
        for (int i = 0; i < settings.jobs; ++i) members_.emplace_back([this] { work(); });
    }
    ~Team() {
        const std::lock_guard lock(mutex_);
        stop_ = true;
        changed_.notify_all();
    }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Waits for the tasks that report on the check, and returns them by function. Rethrows the
    // error of a job that could not run.
    std::vector<const Task*> of(const Check& check) {
        std::vector<const Task*> result;
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
            result.clear();
            for (const Task& task : tasks_)
                if (std::ranges::count(task.checks, &check) > 0) result.push_back(&task);
            return error_ || std::ranges::all_of(result, &Task::done);
        });
        if (error_) std::rethrow_exception(error_);
        std::ranges::stable_sort(result, {}, &Task::function);
        return result;
    }

private:
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return stop_ || next_ < tasks_.size() || running_ == 0; });
            if (stop_ || next_ == tasks_.size()) return;
            Task& task = tasks_[next_++];
            const auto hung = hung_.find(task.function);
            const std::string other = hung != hung_.end() ? hung->second : "";
            ++running_;
            lock.unlock();
            Outcome outcome;
            std::exception_ptr error;
            try {
                outcome = run(task, other);
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
    Outcome run(const Task& task, const std::string& hung) const {
        Subject mine = subject_;
        mine.function = task.function;
        if (!task.cut_by.empty()) return run_alone(*task.checks.front(), mine, !hung.empty());
        Outcome none;  // for a task that does not run
        if (!hung.empty()) {
            none.finished = true;
            for (const Check* check : task.checks)
                none.skipped.push_back({name_of(*check), "the function hangs: see " + hung});
            return none;
        }
        if (no_time(none)) return none;
        if (const Check* one = only_one(task)) mine.only = name_of(*one);
        return run_check(mine, name_of(*task.checks.front()), settings_.timeout);
    }
    // Returns the wanted check if there is a single one, besides the first, which reports crashes; else null.
    const Check* only_one(const Task& task) const {
        const Check* one = nullptr;
        for (const Check* check : task.checks) {
            if (check == task.checks.front() || std::ranges::count(settings_.checks, check) == 0)
                continue;
            if (one != nullptr) return nullptr;
            one = check;
        }
        return one;
    }
    // Runs a check with all of its calls and, if it crashes, without long calls or gradients.
    Outcome run_alone(const Check& check, Subject subject, bool hung) const {
        subject.only = name_of(check);
        // If the shared run hung, each check gets a tenth of the time limit and no long calls.
        const double limit = hung ? settings_.timeout / 10 : settings_.timeout;
        subject.large = !hung;
        if (Outcome none; no_time(none)) return none;
        const auto once = [&] { return run_check(subject, subject.only, limit); };
        const auto without = [&](Outcome outcome, const std::string& what, const std::string& why) {
            outcome.notes.push_back(
                {subject.only, fmt::format("without {}, since {}", what, why), 1});
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
    void finish(Task& task, Outcome outcome) {
        if (outcome.timed_out && !task.function.empty())
            hung_.emplace(task.function, name_of(*task.checks.front()));
        task.outcome = std::move(outcome);
        task.done = true;
        const auto& failures = task.outcome.failures;
        const bool cut = !task.outcome.finished && !failures.empty();
        if (!cut || !task.cut_by.empty() || task.function.empty()) return;
        // Repeats the other checks of a function one by one. Checks of loading are not repeated.
        for (std::size_t i = 1; i < task.checks.size(); ++i)
            if (std::ranges::count(settings_.checks, task.checks[i]) > 0)
                tasks_.push_back({{task.checks[i]}, task.function, failures.back().text});
        task.checks.resize(1);
    }
    bool no_time(Outcome& outcome) const {
        if (seconds_since(start_) < settings_.total) return false;
        outcome.missed = fmt::format("not begun within {} s (--total)", settings_.total);
        return true;
    }

    const Subject subject_;
    const Settings& settings_;
    const Clock::time_point start_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> tasks_;  // grows; finished tasks do not change
    std::size_t next_ = 0;
    int running_ = 0;
    bool stop_ = false;
    std::map<std::string, std::string> hung_;  // functions that hang, and the check that found it
    std::exception_ptr error_;
    std::vector<std::jthread> members_;
};

// Returns why the task has no result for the check, or an empty text if it has one.
std::string cut_off(const Task& task, const Check& check) {
    const Outcome& outcome = task.outcome;
    if (!outcome.missed.empty()) return outcome.missed;
    const std::string first = name_of(*together_with(check).front());
    if (outcome.finished || first == name_of(check)) return {};
    const std::string& cut_by = task.cut_by;
    if (cut_by.empty() || outcome.failures.empty() || outcome.failures.back().text == cut_by)
        return "it did not come to it: see " + first;
    return (outcome.timed_out ? "the function hangs" : outcome.failures.back().text) + ": see " +
           first;
}

Result put_together(const Check& check, const std::vector<const Task*>& tasks,
                    const Survey& survey) {
    Result result;
    result.check = &check;
    const std::string name = name_of(check);
    bool passed = false;
    std::vector<std::string> missed;  // functions without a result
    for (const Task* task : tasks) {
        const Outcome& outcome = task->outcome;
        if (task->checks.front() == &check) result.seconds += outcome.time.count();
        const std::string cut = cut_off(*task, check);
        bool good = true;
        for (const Finding& f : outcome.failures) {
            if (f.check != name || (!task->cut_by.empty() && !cut.empty())) continue;
            result.problems.push_back({task->function, f.text, f.of});
            good = false;
        }
        for (const Finding& f : outcome.notes)
            if (f.check == name)
                result.notes.push_back(task->function.empty() ? f.text
                                                              : task->function + ": " + f.text);
        if (!good && result.output.empty()) result.output = outcome.output;
        if (!cut.empty() && good) {
            result.why = cut;
            missed.push_back(task->function + ": " + cut);
            continue;
        }
        for (const Finding& f : outcome.skipped) {
            if (f.check != name) continue;
            result.why = f.text;
            good = false;
        }
        passed = passed || good;
    }
    if (tasks.empty()) {
        result.why = check.loads && !survey.problem.empty()
                         ? "the plugin cannot be loaded: " + survey.problem
                         : "the plugin has no functions and no kernels";
    }
    if (passed) result.notes.insert(result.notes.end(), missed.begin(), missed.end());
    result.verdict = !result.problems.empty() ? Verdict::failed
                     : passed                 ? Verdict::passed
                                              : Verdict::skipped;
    return result;
}

void need_all(const Survey& survey, const std::string& function) {
    if (!survey.with_problem.empty())
        throw std::invalid_argument(
            "--with: expected plugins that can be loaded, got one that cannot: " +
            survey.with_problem);
    if (!function.empty() && std::ranges::count(survey.functions, function) == 0)
        throw std::invalid_argument(fmt::format(
            "--function: expected one of the plugin, got '{}'{}", function,
            survey.problem.empty() ? "" : "; the plugin cannot be loaded: " + survey.problem));
}

}  // namespace

Registered::Registered(const Check& check, std::source_location where) {
    registered().emplace(std::pair(where.file_name(), where.line()), check);
}

std::vector<const Check*> all_checks() {
    std::vector<const Check*> result;
    for (const auto& [where, check] : registered()) result.push_back(&check);
    std::ranges::stable_sort(result, {}, [](const Check* check) {
        return std::pair(rank(check->group), std::string_view(check->group));
    });
    return result;
}

std::vector<const Check*> together_with(const Check& check) {
    std::vector<const Check*> result;
    for (const auto& [where, other] : registered())
        if (other.run == check.run) result.push_back(&other);
    return result;
}

std::size_t PluginReport::count(Verdict verdict) const {
    return static_cast<std::size_t>(std::ranges::count(results, verdict, &Result::verdict));
}

PluginReport examine(const std::filesystem::path& file, const Settings& settings,
                     const std::function<void(const PluginReport&, const Result&)>& tell) {
    const auto start = Clock::now();
    Subject subject = settings.subject;
    subject.file = file;
    subject.function.clear();
    PluginReport report = {settings, file, survey(subject, settings.timeout), {}, 0};
    need_all(report.survey, settings.subject.function);
    subject.with = report.survey.with;
    subject.id = report.survey.id;

    Team team(tasks_of(settings, report.survey), subject, settings, start);
    for (const Check* check : settings.checks) {
        report.results.push_back(put_together(*check, team.of(*check), report.survey));
        tell(report, report.results.back());
    }
    report.seconds = seconds_since(start);
    return report;
}

}  // namespace catena::check
