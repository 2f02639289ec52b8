// catena-conformance: checks every function of the plugins in a folder by its declared examples,
// and prints a line for each.
//
// usage: catena-conformance FOLDER [--device NAME] [--part K N] [--time] [FUNCTION...]
//   --device  loads only the backend DEVICE.catena and the kernels FAMILY.DEVICE.catena, and checks
//             catena's own functions with them
#include <catena/testing/conform.hpp>

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>

namespace {

using namespace catena::testing;

// Prints the function under test if a plugin crashes or hangs, which also ends this program.
extern "C" void died(int signal) {
    const auto say = [](const char* text) {
        if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
    };
    say(signal == SIGPROF || signal == SIGALRM ? "\nconformance: hangs in "
                                               : "\nconformance: crashed in ");
    say(doing);
    say("\n");
    std::signal(signal, SIG_DFL);
    if (std::raise(signal) != 0) _exit(1);
}

// Why a check may be left out: it follows from the definition of a function. Anything else is a gap.
constexpr std::string_view definitions[] = {
    "a composition: ",          "a view: ",
    "a single output: ",        "it accepts every rank, ",
    "it accepts every shape, ", "it accepts no larger call",
    "it has no inputs",         "it has no kernel: ",
    "it updates its inputs: ",  "no backward kernel: ",
    "not differentiable",       "one kernel for each row of dtypes",
    "refused with a message: ",
};
void check_gaps(Report& report) {
    for (std::size_t i = 0; i < n_checks; ++i) {
        const Check check = static_cast<Check>(i);
        const std::string reason = report[check].text;
        if (report[check].verdict == Verdict::not_applicable &&
            std::ranges::none_of(definitions,
                                 [&](auto start) { return reason.starts_with(start); }))
            report.fail(check, "left out: " + reason);
    }
}

struct Arguments {
    std::string folder;
    std::string device;
    bool time = false;
    std::size_t part = 0, parts = 1;  // of the functions, for tests that run beside each other
    std::vector<std::string> functions;
};

Arguments parse(int argc, char** argv) {
    Arguments a;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--time") a.time = true;
        else if (word == "--device" && i + 1 < argc) a.device = argv[++i];
        else if (word == "--part" && i + 2 < argc) {
            a.part = std::stoul(argv[++i]) - 1;
            a.parts = std::stoul(argv[++i]);
        } else if (word.rfind("--", 0) == 0)
            throw std::invalid_argument("expected --device NAME, --part K N or --time, got " +
                                        word);
        else if (a.folder.empty()) a.folder = word;
        else a.functions.push_back(word);
    }
    if (a.folder.empty())
        throw std::invalid_argument(
            "usage: catena-conformance FOLDER [--device NAME] [--part K N] [--time] [FUNCTION...]");
    return a;
}

// Whether the file is loaded. FAMILY.DEVICE.catena: a device's kernels; DEVICE.catena: its backend.
bool is_asked(const std::filesystem::path& file, const std::string& device) {
    const std::filesystem::path name = file.stem();
    if (file.extension() != ".catena") return false;
    return device.empty() ? name.extension() != ".cuda"
                          : name == device || name.extension() == "." + device;
}

int run(const Arguments& arguments) {
    std::vector<std::string> plugins;
    for (const auto& entry : std::filesystem::directory_iterator(arguments.folder))
        if (is_asked(entry.path(), arguments.device)) plugins.push_back(entry.path().string());
    std::sort(plugins.begin(), plugins.end());
    World world(plugins);
    bool any = false;
    bool good = true;
    Settings settings;
    if (!arguments.device.empty()) {
        settings.device = arguments.device.c_str();
        settings.elements = 2000;  // several blocks; the host's threads are not used
    }
    const char* const slower = std::getenv("CATENA_SLOWER");  // factor for the time limit
    const itimerval limit = {{}, {1200 * (slower == nullptr ? 1 : std::atoi(slower)), 0}};
    const itimerval none = {};
    const std::vector<std::string> names =
        arguments.functions.empty() ? world.names() : arguments.functions;
    for (std::size_t i = arguments.part; i < names.size(); i += arguments.parts) {
        const std::string& name = names[i];
        if (!arguments.device.empty() && name.rfind("catena.", 0) != 0) continue;
        using Clock = std::chrono::steady_clock;
        const auto start = Clock::now();
        // CPU time, because the machine may be busy. A deadlock takes none, so there is an alarm, too.
        setitimer(ITIMER_PROF, &limit, nullptr);
        alarm(1500);
        Report report = conform(world, name, settings);
        setitimer(ITIMER_PROF, &none, nullptr);
        alarm(0);
        any = true;
        // skipped: kernels that were not run. With --device, that is a failure.
        for (const std::string& line : report.skipped)
            if (!arguments.device.empty()) report.fail(Check::reached, line);
        if (name.rfind("catena.", 0) == 0) {
            if (report.examples == 0)
                report.fail(Check::example, "expected examples in its description, got none");
            if (report.failures().empty()) check_gaps(report);
        }
        std::cout << (report.failures().empty() ? "ok     " : "FAILED ") << name;
        if (report.examples == 0) std::cout << "  found: " << report.found;
        if (arguments.time)
            std::cout << "  " << std::chrono::duration<double>(Clock::now() - start).count()
                      << " s";
        std::cout << std::endl;
        std::cerr << report.failures();
        good = good && report.failures().empty();
    }
    if (!any) {
        std::cerr << "conformance: expected plugins in " << arguments.folder << '\n';
        good = false;
    }
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGPROF})
        std::signal(signal, died);
    try {
        return run(parse(argc, argv));
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 2;
    }
}
