// Formats results as text and JSON.
#include "runner.hpp"

#include <fmt/format.h>
#include <command_line.hpp>
#include <nlohmann/json.hpp>

#include <sstream>

namespace catena::check {
namespace {

constexpr std::size_t most_problems = 3;    // shown per function and check, as text
constexpr std::size_t most_functions = 10;  // shown per check, as text

constexpr const char* words[] = {"ok", "FAILED", "skipped"};  // indexed by Verdict
const char* word(Verdict verdict) { return words[static_cast<std::size_t>(verdict)]; }

std::string indented(const std::string& text, const char* by) {
    std::string result;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) result += by + line + "\n";
    return result;
}

// Returns the command that repeats a failed check with the same random numbers.
std::string again(const PluginReport& report, const Result& result,
                  const Result::Problem& problem) {
    const Settings& s = report.settings;
    std::string text = "catena-check --only " + name_of(*result.check);
    if (!problem.function.empty()) text += " --function " + shell_word(problem.function);
    for (const auto& path : s.subject.with) text += " --with " + shell_word(path);
    if (s.timeout != usual_timeout) text += fmt::format(" --timeout {}", s.timeout);
    text += fmt::format(" --reproduce {}", problem.of.seed);
    if (!problem.of.doublings.empty()) text += ":" + problem.of.doublings;
    return text + " " + shell_word(report.file);
}

using nlohmann::json;

json json_of(const PluginReport& report) {
    json checks = json::array();
    for (const Result& result : report.results) {
        json entry = {
            {"check", name_of(*result.check)},
            {"verdict", result.verdict == Verdict::failed ? "failed" : word(result.verdict)},
            {"seconds", result.seconds}};
        if (result.verdict == Verdict::skipped) entry["why"] = result.why;
        for (const Result::Problem& p : result.problems) {
            json problem = {
                {"text", p.text}, {"seed", p.of.seed}, {"again", again(report, result, p)}};
            if (!p.function.empty()) problem["function"] = p.function;
            entry["problems"].push_back(problem);
        }
        if (!result.notes.empty()) entry["notes"] = result.notes;
        if (!result.output.empty()) entry["output"] = result.output;
        checks.push_back(entry);
    }
    const std::string& problem = report.survey.problem;
    return {{"plugin", report.file.string()},
            {"id", report.survey.id},
            {"version", report.survey.version},
            {"problem", problem.empty() ? json() : json(problem)},  // why it cannot be loaded
            {"seed", report.settings.subject.seed},
            {"seconds", report.seconds},
            {"ok", report.count(Verdict::passed)},
            {"failed", report.count(Verdict::failed)},
            {"skipped", report.count(Verdict::skipped)},
            {"checks", checks}};
}

}  // namespace

std::string head_of(const PluginReport& report) {
    const Survey& s = report.survey;
    return fmt::format("{}: {}{}{}, seed {}\n", report.file.string(),
                       s.id.empty() ? "cannot be loaded" : s.id, s.version.empty() ? "" : " ",
                       s.version, report.settings.subject.seed);
}

std::string text_of(const PluginReport& report, const Result& result) {
    const bool left_out = result.verdict == Verdict::skipped && result.check->loads;
    if (left_out && !report.survey.problem.empty()) return "";  // the summary gives the reason
    std::string text = fmt::format("{:<8}{}", word(result.verdict), name_of(*result.check));
    if (result.verdict == Verdict::skipped) return text + ": " + result.why + "\n";
    text += "\n";
    for (const std::string& note : result.notes) text += indented(note, "    ");
    if (result.verdict == Verdict::passed) return text;
    std::size_t functions = 0;
    for (std::size_t i = 0; i < result.problems.size();) {
        const Result::Problem& first = result.problems[i];
        std::size_t n = 0;
        const auto same = [&](const Result::Problem& p) {
            return p.function == first.function && p.of == first.of;
        };
        const bool shown = ++functions <= most_functions;
        for (; i < result.problems.size() && same(result.problems[i]); ++i, ++n) {
            const Result::Problem& p = result.problems[i];
            if (shown && n < most_problems)
                text += indented(p.function.empty() ? p.text : p.function + ": " + p.text, "    ");
        }
        if (shown && n > most_problems) text += fmt::format("    {} more\n", n - most_problems);
        if (shown) text += "      again: " + again(report, result, first) + "\n";
    }
    if (functions > most_functions)
        text += fmt::format("    {} more functions\n", functions - most_functions);
    if (!result.output.empty()) text += "    it printed:\n" + indented(result.output, "    | ");
    return text;
}

std::string summary_of(const PluginReport& report) {
    const std::string& problem = report.survey.problem;
    return fmt::format(
        "{} checks: {} ok, {} failed, {} skipped, in {:.1f} s{}\n", report.results.size(),
        report.count(Verdict::passed), report.count(Verdict::failed),
        report.count(Verdict::skipped), report.seconds,
        !problem.empty() ? "; the plugin cannot be loaded: " + problem
        : report.count(Verdict::skipped) == report.results.size() ? "; nothing was checked"
                                                                  : "");
}

std::string json_of(const std::vector<PluginReport>& reports) {
    json plugins = json::array();
    for (const PluginReport& report : reports) plugins.push_back(json_of(report));
    const json all = {{"format", 1},
                      {"catena", CATENA_VERSION},
                      {"abi", CATENA_ABI_VERSION},
                      {"plugins", plugins}};
    return all.dump(2, ' ', false, json::error_handler_t::replace);
}

}  // namespace catena::check
