// catena-check: validates plugins against the rules of the ABI.
#include "runner.hpp"

#include <catena/data_error.hpp>

#include <fmt/format.h>
#include <boost/program_options.hpp>
#include <command_line.hpp>

#include <algorithm>
#include <iostream>
#include <random>
#include <string_view>
#include <thread>

namespace po = boost::program_options;
using namespace catena::check;
using catena::need_option;

namespace {

constexpr const char* usage =
    "usage: catena-check [OPTION...] PLUGIN.catena...\n\n"
    "Validates plugins in processes with a time limit, so a crash in one check does not affect\n"
    "others. Exit code: 0 if no fault was found, 1 if a check failed or a plugin cannot be\n"
    "loaded, 2 if the command line is wrong.\n\n";

struct Options {
    std::vector<std::string> only;
    std::vector<std::string> skip;
    std::vector<std::string> with;
    std::string format;
    std::string seed;
    std::string reproduce;
    bool quiet = false;
    Settings settings;
};

bool matches(const Check& check, const std::string& pattern) {
    return pattern == check.group || pattern == name_of(check);
}

// Throws unless each pattern is the GROUP or GROUP/NAME of an existing check.
void need_known(const std::vector<std::string>& patterns, const char* option) {
    for (const std::string& pattern : patterns)
        need_option(std::ranges::any_of(
                        all_checks(), [&](const Check* check) { return matches(*check, pattern); }),
                    fmt::format("--{}: expected GROUP or GROUP/NAME as --list shows them, got '{}'",
                                option, pattern));
}

std::vector<const Check*> chosen(const Options& o) {
    need_known(o.only, "only");
    need_known(o.skip, "skip");
    const auto wanted = [&](const Check* check) {
        const auto in = [&](const std::vector<std::string>& patterns) {
            return std::ranges::any_of(patterns, [&](const auto& p) { return matches(*check, p); });
        };
        return (o.only.empty() || in(o.only)) && !in(o.skip);
    };
    std::vector<const Check*> result;
    for (const Check* check : all_checks()) {
        const auto together = together_with(*check);
        // The first of the checks that share a process reports its crash, so it always runs, too.
        if (wanted(check) || (check == together.front() && std::ranges::any_of(together, wanted)))
            result.push_back(check);
    }
    need_option(!result.empty(), "--skip: expected at least one check to remain, got none");
    return result;
}

void list() {
    std::string_view group;
    for (const Check* check : all_checks()) {
        if (group != check->group) fmt::print("{}{}\n", group.empty() ? "" : "\n", check->group);
        group = check->group;
        fmt::print("  {:<22}{}\n", check->name, check->doc);
    }
}

// Reads SEED or SEED:N,N,...
void read_case(const std::string& text, Subject& s) {
    const std::size_t colon = text.find(':');
    s.seed = catena::seed_option(text.substr(0, colon), "reproduce");
    if (colon != text.npos) s.doublings = text.substr(colon + 1);
    need_option(
        s.doublings.find_first_not_of("0123456789,") == text.npos,
        fmt::format("--reproduce: expected SEED or SEED:N,N as catena-check prints it, got '{}'",
                    text));
}

// Returns an absolute path, so that the dynamic loader does not search its folders for the file.
std::filesystem::path existing(const std::string& path, const char* what) {
    std::error_code error;
    need_option(std::filesystem::is_regular_file(path, error),
                fmt::format("{}: expected a file, got '{}'", what, path));
    return std::filesystem::absolute(path);
}

void check_options(Options& o, const po::variables_map& given) {
    Settings& s = o.settings;
    s.checks = chosen(o);
    need_option(o.format == "text" || o.format == "json",
                fmt::format("--format: expected text or json, got '{}'", o.format));
    for (const auto& [option, seconds] : {std::pair("timeout", s.timeout), {"total", s.total}})
        need_option(seconds > 0 && seconds <= 86400,
                    fmt::format("--{}: expected more than 0 seconds, up to 86400, got {}", option,
                                seconds));
    need_option(s.jobs >= 1 && s.jobs <= 256,
                fmt::format("--jobs: expected 1 to 256, got {}", s.jobs));
    s.subject.reproduce = given.count("reproduce") > 0;
    need_option(!s.subject.reproduce || given["seed"].defaulted(),
                "expected one of --seed and --reproduce, got both");
    if (s.subject.reproduce) read_case(o.reproduce, s.subject);
    else if (o.seed == "random") s.subject.seed = std::random_device()();
    else s.subject.seed = catena::seed_option(o.seed, "seed");
    for (const std::string& path : o.with) s.subject.with.push_back(existing(path, "--with"));
}

int run(const Options& o, const std::vector<std::string>& plugins) {
    need_option(!plugins.empty(), "expected a PLUGIN");
    bool good = true;
    std::vector<PluginReport> reports;
    const bool text = o.format == "text";
    std::vector<std::filesystem::path> files;
    for (const std::string& plugin : plugins) files.push_back(existing(plugin, "PLUGIN"));
    for (const auto& file : files) {
        bool first = true;
        const auto tell = [&](const PluginReport& report, const Result& result) {
            if (!text) return;
            if (first) std::cout << head_of(report);
            first = false;
            if (!o.quiet || result.verdict == Verdict::failed) std::cout << text_of(report, result);
            catena::flush_output();
        };
        reports.push_back(
            catena::naming_file("check", file, [&] { return examine(file, o.settings, tell); }));
        if (text) std::cout << summary_of(reports.back());
        good = good && reports.back().good();
    }
    if (!text) std::cout << json_of(reports) << '\n';
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2 && std::string_view(argv[1]) == "--job") serve({argv + 2, argv + argc});
    const auto body = [&] {
        Options o;
        Settings& s = o.settings;
        s.jobs = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
        catena::ToolOptions tool;
        // clang-format off
        tool.options.add_options()
            ("list", "list all checks with a description")
            ("only", po::value(&o.only)->value_name("GROUP[/NAME]"),
             "run only these checks. May be repeated")
            ("skip", po::value(&o.skip)->value_name("GROUP[/NAME]"),
             "do not run these checks. May be repeated")
            ("function", po::value(&s.subject.function)->value_name("NAME"),
             "restrict the checks on functions to this function")
            ("with", po::value(&o.with)->value_name("PLUGIN"),
             "also load this plugin: it provides functions that gradients use or that the kernels "
             "are for. Catena's own plugins are loaded automatically. May be repeated")
            ("format", po::value(&o.format)->value_name("text|json")->default_value("text"),
             "format of the results")
            ("quiet,q", po::bool_switch(&o.quiet),
             "text format: print only failures and the summary")
            ("timeout", po::value(&s.timeout)->value_name("SECONDS")->default_value(s.timeout),
             "time limit of one process, without the time in which it waits for a CPU. Later checks "
             "skip a function that exceeds it")
            ("total", po::value(&s.total)->value_name("SECONDS")->default_value(s.total),
             "checks of a plugin that have not started after this time are skipped")
            ("seed", po::value(&o.seed)->value_name("N|random")->default_value("1"),
             "seed of the random numbers")
            ("reproduce", po::value(&o.reproduce)->value_name("SEED[:N,N...]"),
             "run only the case that failed with this seed; N are the lengths of its calls")
            ("jobs,j", po::value(&s.jobs)->value_name("N")->default_value(s.jobs),
             "maximum number of processes");
        // clang-format on
        if (!tool.read(argc, argv, usage,
                       "catena-check " CATENA_VERSION ", ABI " CATENA_ABI_VERSION, -1))
            return 0;
        if (tool.given.count("list")) {
            list();
            return 0;
        }
        check_options(o, tool.given);
        try {
            return run(o, tool.words);
        } catch (const std::invalid_argument& error) {
            throw po::error(error.what());
        }
    };
    return catena::run_command("catena-check", body, 2);
}
