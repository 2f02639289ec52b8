// Which processes there are, in which order, and what their outcomes mean.
#include "team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace catena::check {
namespace {

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

// Why the job says nothing of the check; empty: it says something.
std::string cut_off(const Task& task, const Check& check) {
    const Outcome& outcome = task.outcome;
    const std::string first = name_of(*together_with(check).front());
    if (outcome.finished || first == name_of(check)) return {};
    const std::string& cut_by = task.job.cut_by;
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
    std::vector<std::string> missed;  // functions of which the check knows nothing
    for (const Task* task : tasks) {
        const Job& job = task->job;
        const Outcome& outcome = task->outcome;
        if (job.checks.front() == &check) result.seconds += outcome.time.count();
        const std::string cut = cut_off(*task, check);
        bool good = true;
        for (const Finding& f : outcome.failures) {
            if (f.check != name || (!job.cut_by.empty() && !cut.empty())) continue;
            result.problems.push_back({job.function, f.text, f.of});
            good = false;
        }
        for (const Finding& f : outcome.notes)
            if (f.check == name)
                result.notes.push_back(job.function.empty() ? f.text
                                                            : job.function + ": " + f.text);
        if (!good && result.output.empty()) result.output = outcome.output;
        if (!cut.empty() && good) {
            result.why = cut;
            missed.push_back(job.function + ": " + cut);
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
    subject.doublings = settings.doublings;
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

    Team team(jobs_of(settings, report.survey), subject, settings, start);
    for (const Check* check : settings.checks) {
        report.results.push_back(put_together(*check, team.of(*check), report.survey));
        tell(report, report.results.back());
    }
    report.seconds = seconds_since(start);
    return report;
}

}  // namespace catena::check
