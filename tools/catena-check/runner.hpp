// Runs the checks of a plugin in parallel processes, merges their results and reports them.
#pragma once

#include "job.hpp"

#include <functional>

namespace catena::check {

enum class Verdict { passed, failed, skipped };

struct Result {
    const Check* check = nullptr;
    Verdict verdict = Verdict::passed;
    struct Problem {
        std::string function;  // empty: the whole plugin
        std::string text;
        Case of;
    };
    std::vector<Problem> problems;
    std::string why;                 // why it was skipped
    std::vector<std::string> notes;  // remarks that are not failures
    std::string output;              // what the plugin printed, if the check failed
    double seconds = 0;              // of its processes; a shared run counts for its first check
};

inline constexpr double usual_timeout = 30;  // seconds for a process
inline constexpr double usual_total = 110;   // seconds for all processes of a plugin

struct Settings {
    std::vector<const Check*> checks;
    Subject subject;  // without the file; its `function`, if set, is the only one checked
    double timeout = usual_timeout;
    double total = usual_total;
    int jobs = 1;
};

struct PluginReport {
    Settings settings;
    std::filesystem::path file;
    Survey survey;
    std::vector<Result> results;
    double seconds = 0;
    std::size_t count(Verdict verdict) const;
    // Whether the plugin could be loaded and no check failed.
    bool good() const { return survey.problem.empty() && count(Verdict::failed) == 0; }
};

// Runs the checks and calls `tell` with each result, in order. Throws std::invalid_argument before
// the first one if the plugin lacks the function of the settings, or one in `with` fails to load.
PluginReport examine(const std::filesystem::path& file, const Settings& settings,
                     const std::function<void(const PluginReport&, const Result&)>& tell);

// Return the parts of a report as text, and all reports as one JSON object.
std::string head_of(const PluginReport& report);
std::string text_of(const PluginReport& report, const Result& result);
std::string summary_of(const PluginReport& report);
std::string json_of(const std::vector<PluginReport>& reports);

}  // namespace catena::check
