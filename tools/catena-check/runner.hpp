// Runs checks of one plugin, some at a time, puts together what their processes tell, and reports
// it.
#pragma once

#include "job.hpp"

#include <functional>

namespace catena::check {

enum class Verdict { passed, failed, skipped };

struct Result {
    const Check* check = nullptr;
    Verdict verdict = Verdict::passed;
    struct Problem {
        std::string function;  // empty: of the whole plugin
        std::string text;
        Case of;
    };
    std::vector<Problem> problems;
    std::string why;                 // skipped
    std::vector<std::string> notes;  // no faults
    std::string output;              // what the plugin printed meanwhile, if it failed
    double seconds = 0;              // of processes; shared runs count for their first check
};

inline constexpr double usual_timeout = 30;  // seconds of a process
inline constexpr double usual_total = 110;   // of all of a plugin: those that begin end soon after

struct Settings {
    std::vector<const Check*> checks;
    Subject subject;  // all but the file; its `function`, if any, is the only one
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
    // It could be loaded, and no check failed.
    bool good() const { return survey.problem.empty() && count(Verdict::failed) == 0; }
};

// `tell` gets the results in order. Throws std::invalid_argument before the first one if the plugin
// does not have the function that the settings name, or if one of `with` cannot be loaded.
PluginReport examine(const std::filesystem::path& file, const Settings& settings,
                     const std::function<void(const PluginReport&, const Result&)>& tell);

// The report as text, in parts, and as one object of JSON.
std::string head_of(const PluginReport& report);
std::string text_of(const PluginReport& report, const Result& result);
std::string summary_of(const PluginReport& report);
std::string json_of(const std::vector<PluginReport>& reports);

}  // namespace catena::check
