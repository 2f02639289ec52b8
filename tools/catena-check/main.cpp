// catena-check: validates plugins against the rules of the ABI.
#include "report.hpp"

#include <catena/data_error.hpp>

#include <fmt/format.h>
#include <boost/program_options.hpp>
#include <command_line.hpp>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <random>
#include <string_view>
#include <thread>

namespace po = boost::program_options;
using namespace catena::check;

namespace {

constexpr const char* usage =
    "usage: catena-check [OPTION...] PLUGIN.catena...\n\n"
    "Validates plugins in processes with a time limit, so a crash in one check does not affect\n"
    "others. Exit code: 0 if no fault was found, 1 if a check failed or a plugin cannot be\n"
    "loaded, 2 if the command line is wrong.\n\n";

struct Options {
    std::vector<std::string> plugins;
    std::vector<std::string> only;
    std::vector<std::string> skip;
    std::vector<std::string> with;
    std::string function;
    std::string format;
    std::string seed;
    std::string reproduce;
    double timeout = usual_timeout;
    double total = usual_total;
    int jobs = 1;
    bool quiet = false;
};

bool matches(const Check& check, const std::string& pattern) {
    return pattern == check.group || pattern == name_of(check);
}

// GROUP or GROUP/NAME, of checks that there are.
void need_known(const std::vector<std::string>& patterns, const char* option) {
    for (const std::string& pattern : patterns) {
        bool known = false;
        for (const Check* check : all_checks()) known = known || matches(*check, pattern);
        if (!known) {
            throw po::error(
                fmt::format("--{}: expected GROUP or GROUP/NAME as --list shows them, "
                            "got '{}'",
                            option, pattern));
        }
    }
}

std::vector<const Check*> chosen(const Options& o) {
    need_known(o.only, "only");
    need_known(o.skip, "skip");
    const auto wanted = [&](const Check* check) {
        const auto in = [&](const std::vector<std::string>& patterns) {
            return std::any_of(patterns.begin(), patterns.end(),
                               [&](const std::string& p) { return matches(*check, p); });
        };
        return (o.only.empty() || in(o.only)) && !in(o.skip);
    };
    std::vector<const Check*> result;
    for (const Check* check : all_checks()) {
        const auto together = together_with(*check);
        // The one that is blamed for a crash comes along with the others.
        if (wanted(check) ||
            (check == together.front() && std::any_of(together.begin(), together.end(), wanted)))
            result.push_back(check);
    }
    if (result.empty()) throw po::error("--skip: expected to leave a check, got none");
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

// By hand: the library takes -1 for 2^64 - 1.
std::uint64_t number(const std::string& text, const char* option) {
    std::uint64_t seed = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, seed);
    if (error == std::errc() && stop == end) return seed;
    throw po::error(fmt::format("--{}: expected 0 to 2^64 - 1, got '{}'", option, text));
}

// SEED or SEED:N,N,...
void read_case(const std::string& text, Settings& s) {
    const std::size_t colon = text.find(':');
    s.seed = number(text.substr(0, colon), "reproduce");
    for (std::size_t at = colon; at != text.npos; at = text.find(',', at + 1)) {
        int n = 0;
        const char* const begin = text.data() + at + 1;
        const auto [stop, error] = std::from_chars(begin, text.data() + text.size(), n);
        if (error != std::errc() || n < 0 || (*stop != ',' && *stop != '\0'))
            throw po::error(
                fmt::format("--reproduce: expected SEED or SEED:N,N as catena-check "
                            "prints it, got '{}'",
                            text));
        s.doublings.push_back(n);
    }
}

// No path of a plugin is looked for in the folders of the dynamic loader.
std::filesystem::path existing(const std::string& path, const char* what) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        throw po::error(fmt::format("{}: expected a file, got '{}'", what, path));
    return std::filesystem::absolute(path);
}

Settings settings_of(const Options& o, const po::variables_map& given) {
    Settings s;
    s.checks = chosen(o);
    s.function = o.function;
    if (o.plugins.empty()) throw po::error("expected a PLUGIN");
    if (o.format != "text" && o.format != "json")
        throw po::error(fmt::format("--format: expected text or json, got '{}'", o.format));
    for (const auto& [option, seconds] : {std::pair("timeout", o.timeout), {"total", o.total}}) {
        if (!(seconds > 0 && seconds <= 86400))
            throw po::error(fmt::format("--{}: expected more than 0 seconds, up to 86400, got {}",
                                        option, seconds));
    }
    if (o.jobs < 1 || o.jobs > 256)
        throw po::error(fmt::format("--jobs: expected 1 to 256, got {}", o.jobs));
    s.timeout = o.timeout;
    s.total = o.total;
    s.jobs = o.jobs;
    s.reproduce = given.count("reproduce") > 0;
    if (s.reproduce && !given["seed"].defaulted())
        throw po::error("expected one of --seed and --reproduce, got both");
    if (s.reproduce) read_case(o.reproduce, s);
    else if (o.seed == "random") s.seed = std::random_device()();
    else s.seed = number(o.seed, "seed");
    for (const std::string& path : o.with) s.with.push_back(existing(path, "--with"));
    return s;
}

int run(const Options& o, const Settings& settings) {
    bool good = true;
    std::vector<PluginReport> reports;
    const bool text = o.format == "text";
    std::vector<std::filesystem::path> files;
    for (const std::string& plugin : o.plugins) files.push_back(existing(plugin, "PLUGIN"));
    for (const auto& file : files) {
        bool first = true;
        const auto tell = [&](const PluginReport& report, const Result& result) {
            if (!text) return;
            if (first) std::cout << head_of(report);
            first = false;
            if (!o.quiet || result.verdict == Verdict::failed) std::cout << text_of(report, result);
            catena::flush_output();
        };
        const PluginReport report =
            catena::naming_file("check", file, [&] { return examine(file, settings, tell); });
        if (text) std::cout << summary_of(report);
        else reports.push_back(report);
        good = good && report.good();
    }
    if (!text) std::cout << json_of(reports, CATENA_VERSION, CATENA_ABI_VERSION) << '\n';
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string_view(argv[1]) == "--job") serve(argv[2]);
    return catena::run_command(
        "catena-check",
        [&] {
            Options o;
            po::options_description visible("options");
            // clang-format off
    visible.add_options()
        ("help,h", "print this text")
        ("version", "print the versions of this program and of its ABI")
        ("list", "list all checks with a description")
        ("only", po::value(&o.only)->value_name("GROUP[/NAME]"),
         "run only these checks. May be repeated")
        ("skip", po::value(&o.skip)->value_name("GROUP[/NAME]"),
         "do not run these checks. May be repeated")
        ("function", po::value(&o.function)->value_name("NAME"),
         "run the checks on functions only on this one")
        ("with", po::value(&o.with)->value_name("PLUGIN"),
         "also load this plugin: it provides functions that gradients use or that the kernels are "
         "for. Catena's own plugins are loaded automatically. May be repeated")
        ("format", po::value(&o.format)->value_name("text|json")->default_value("text"),
         "format of the results")
        ("quiet,q", po::bool_switch(&o.quiet), "text format: print only failures and the summary")
        ("timeout", po::value(&o.timeout)->value_name("SECONDS")->default_value(
            usual_timeout),
         "time limit of one process. Later checks skip a function that exceeds it")
        ("total", po::value(&o.total)->value_name("SECONDS")->default_value(usual_total),
         "time limit for all checks of a plugin. Checks that have not started by then fail")
        ("seed", po::value(&o.seed)->value_name("N|random")->default_value("1"), "seed of the random numbers")
        ("reproduce", po::value(&o.reproduce)->value_name("SEED[:N,N...]"),
         "run only the case that failed with this seed; N are the lengths of its calls")
        ("jobs,j", po::value(&o.jobs)->value_name("N")->default_value(
            static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))),
         "maximum number of processes");
            // clang-format on
            po::options_description all;
            all.add(visible).add_options()("plugin", po::value(&o.plugins));
            po::positional_options_description positional;
            positional.add("plugin", -1);
            const po::variables_map given = catena::parse_command_line(argc, argv, all, positional);
            if (given.count("help")) {
                std::cout << usage << visible;
                return 0;
            }
            if (given.count("version")) {
                std::cout << "catena-check " CATENA_VERSION ", ABI " CATENA_ABI_VERSION "\n";
                return 0;
            }
            if (given.count("list")) {
                list();
                return 0;
            }
            try {
                return run(o, settings_of(o, given));
            } catch (const std::invalid_argument& error) {
                throw po::error(error.what());
            }
        },
        2);
}
