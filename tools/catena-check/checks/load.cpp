// Checks that loading works and does not change the process, and that deinit() and exit work.
#include "check.hpp"
#include "state.hpp"

#include <testing/library.hpp>

#include <chrono>
#include <ctime>

namespace catena::check::load {
namespace {

using testing::World;

// Seconds, far above the needs of a plugin, since the machine may be slow. CPU time, since it may be busy.
constexpr double most_cpu = 5;

// Loads the plugin as a host does. Returns the reason for a failure, or an empty text.
std::string load(const Subject& subject, World& world, const catena_plugin*& table) {
    try {
        doing("dlopen()");
        const testing::detail::Module module(subject.file);
        doing("catena_plugin_entry_v1(), init()");
        table = &module.table(World::host(), world, true);
        return {};
    } catch (const testing::Failure& e) {
        return e.what();
    }
}

void loading(const Subject& subject, Findings& findings) {
    World world{std::vector<std::string>()};
    const catena_plugin* table = nullptr;
    Findings silent = findings.of("load/silent"), time = findings.of("load/time");
    silent.silent();
    const ProcessState before = ProcessState::now();
    const std::clock_t cpu = std::clock();
    const auto start = std::chrono::steady_clock::now();
    const std::string problem = load(subject, world, table);
    const double used = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    const ProcessState after = ProcessState::now();

    if (!problem.empty()) findings.fail("{}", problem);
    for (const char* const group : ProcessState::groups) {
        Findings mine = findings.of(fmt::format("load/{}", group));
        for (const std::string& line : before.changes(group, after)) mine.fail("{}", line);
        if (!problem.empty()) mine.skip("see load/entry");
    }
    if (!problem.empty()) {  // these checks need a loaded plugin
        silent.skip("see load/entry");
        return time.skip("see load/entry");
    }
    if (used > most_cpu)
        time.fail("expected at most {} s of CPU time, got {:.2f} s", most_cpu, used);
    else time.note("{:.0f} ms", 1000 * took.count());
}

const Registered r1{{"load", "entry",
                     "dlopen(), entry() and init() succeed, and entry() returns a table", loading,
                     Each::plugin, false}};
const Registered r2{
    {"load", "float-mode",
     "loading does not change rounding, flush-to-zero and traps (-ffast-math at link time does)",
     loading}};
const Registered r3{{"load", "signals", "loading sets no signal handlers", loading}};
const Registered r4{
    {"load", "environment",
     "loading does not change environment, locale, working directory, umask and std::terminate",
     loading}};
const Registered r5{{"load", "files", "loading leaves no file open and closes none", loading}};
const Registered r6{{"load", "threads", "loading starts no threads", loading}};
const Registered r7{{"load", "silent", "loading prints nothing", loading}};
const Registered r8{{"load", "time", "loading takes at most 5 s of CPU time", loading}};

void end(const Subject& subject, Findings& findings) {
    World world{std::vector<std::string>()};
    const catena_plugin* table = nullptr;
    if (!load(subject, world, table).empty()) return findings.skip("see load/entry");
    doing("deinit()");
    const ProcessState before = ProcessState::now();
    if (table->deinit != nullptr) table->deinit();
    for (const std::string& line : before.changes("signals", ProcessState::now()))
        findings.fail("{}", line);
    doing("exit");
    end_normally();
}
const Registered r9{
    {"load", "end", "deinit() returns, and the process exits without a crash", end}};

}  // namespace
}  // namespace catena::check::load
