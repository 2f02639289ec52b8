// Which processes there are, in which order, and what their outcomes mean.
#include "runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace catena::check {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Checks with the same run() share a job: one, or one for each function. A check that is not wanted
// is left out of the results, not out of its job.
std::vector<Job> jobs_of(const Settings& settings, const Survey& survey) {
    std::vector<Job> jobs;
    std::vector<void (*)(const Subject&, Findings&)> seen;
    for (const Check* wanted : settings.checks) {
        if (wanted->loads && !survey.problem.empty()) continue;
        if (std::find(seen.begin(), seen.end(), wanted->run) != seen.end()) continue;
        seen.push_back(wanted->run);
        Job job;
        job.checks = together_with(*wanted);
        if (wanted->each == Each::plugin) {
            jobs.push_back(job);
            continue;
        }
        for (const std::string& function : survey.functions) {
            if (!settings.function.empty() && settings.function != function) continue;
            job.function = function;
            jobs.push_back(job);
        }
    }
    return jobs;
}

Result put_together(const Check& check, const std::vector<Job>& jobs,
                    const std::vector<Outcome>& outcomes, const Survey& survey) {
    Result result;
    result.check = &check;
    const std::string name = name_of(check);
    bool any = false;
    bool passed = false;
    std::vector<std::string> missed;  // functions of which the check knows nothing
    for (std::size_t i = 0; i < jobs.size(); ++i) {
        const Job& job = jobs[i];
        if (job.checks.front()->run != check.run) continue;
        any = true;
        const Outcome& outcome = outcomes[i];
        if (job.checks.front() == &check) result.seconds += outcome.time.count();
        bool good = true;
        for (const Finding& f : outcome.failures) {
            if (f.check != name) continue;
            result.problems.push_back({job.function, f.text, f.seed});
            good = false;
        }
        for (const Finding& f : outcome.notes)
            if (f.check == name)
                result.notes.push_back(job.function.empty() ? f.text
                                                            : job.function + ": " + f.text);
        // Of one that did not come to its end the others know nothing.
        const bool cut = !outcome.finished && job.checks.front() != &check;
        if (!good && result.output.empty()) result.output = outcome.output;
        if (cut && good) {
            result.why = "it did not come to it: see " + name_of(*job.checks.front());
            missed.push_back(job.function + ": " + result.why);
            continue;
        }
        for (const Finding& f : outcome.skipped) {
            if (f.check != name) continue;
            result.why = f.text;
            good = false;
        }
        passed = passed || good;
    }
    if (!any) {
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

void need_others(const Survey& survey) {
    if (survey.with_problem.empty()) return;
    throw std::invalid_argument(
        "--with: expected plugins that can be loaded, got one that cannot: " + survey.with_problem);
}
void need_function(const std::string& name, const Survey& survey) {
    const auto& all = survey.functions;
    if (name.empty() || std::find(all.begin(), all.end(), name) != all.end()) return;
    throw std::invalid_argument(fmt::format(
        "--function: expected one of the plugin, got '{}'{}", name,
        survey.problem.empty() ? "" : "; the plugin cannot be loaded: " + survey.problem));
}

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
         settings.seed});
    return outcome;
}

}  // namespace

bool PluginReport::good() const { return survey.problem.empty() && count(Verdict::failed) == 0; }
std::size_t PluginReport::count(Verdict verdict) const {
    return static_cast<std::size_t>(
        std::count_if(results.begin(), results.end(),
                      [&](const Result& result) { return result.verdict == verdict; }));
}

PluginReport examine(const std::filesystem::path& file, const Settings& settings,
                     const std::function<void(const PluginReport&, const Result&)>& tell) {
    const auto start = Clock::now();
    Subject subject;
    subject.file = file;
    subject.with = settings.with;
    subject.seed = settings.seed;
    subject.reproduce = settings.reproduce;
    PluginReport report;
    report.file = file;
    report.with = settings.with;
    report.timeout = settings.timeout;
    report.seed = settings.seed;
    report.survey = survey(subject, settings.timeout);
    need_others(report.survey);
    need_function(settings.function, report.survey);
    subject.with = report.survey.with;
    subject.id = report.survey.id;

    const std::vector<Job> jobs = jobs_of(settings, report.survey);
    std::vector<Outcome> outcomes(jobs.size());
    std::vector<bool> done(jobs.size());
    std::map<std::string, std::string> hung;  // functions, and the check that says so
    std::atomic<std::size_t> next{0};
    std::exception_ptr error;
    std::mutex mutex;
    std::condition_variable changed;
    const auto work = [&] {
        for (std::size_t i; (i = next++) < jobs.size();) {
            Outcome outcome;
            std::exception_ptr failed;
            std::string other;
            {
                const std::lock_guard lock(mutex);
                if (const auto it = hung.find(jobs[i].function); it != hung.end())
                    other = it->second;
            }
            try {
                Subject mine = subject;
                mine.function = jobs[i].function;
                const double left = settings.total - since(start);
                if (!other.empty()) outcome = left_out(jobs[i], other);
                else if (left <= 0) outcome = too_late(jobs[i], settings);
                else outcome = run_job(jobs[i], mine, std::min(settings.timeout, left));
            } catch (...) {
                failed = std::current_exception();
            }
            const std::lock_guard lock(mutex);
            if (outcome.timed_out && !jobs[i].function.empty())
                hung.emplace(jobs[i].function, name_of(*jobs[i].checks.front()));
            outcomes[i] = std::move(outcome);
            done[i] = true;
            if (failed && !error) error = failed;
            changed.notify_all();
        }
    };
    std::vector<std::jthread> team;
    for (int i = 0; i < settings.jobs; ++i) team.emplace_back(work);

    for (const Check* check : settings.checks) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] {
            for (std::size_t i = 0; i < jobs.size(); ++i)
                if (jobs[i].checks.front()->run == check->run && !done[i]) return false;
            return true;
        });
        if (error) {
            next = jobs.size();
            lock.unlock();
            team.clear();
            std::rethrow_exception(error);
        }
        Result result = put_together(*check, jobs, outcomes, report.survey);
        lock.unlock();
        report.results.push_back(std::move(result));
        tell(report, report.results.back());
    }
    report.seconds = since(start);
    return report;
}

}  // namespace catena::check
