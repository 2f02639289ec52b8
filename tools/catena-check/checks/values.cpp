// What catena::testing::conform() says of each function, by the names of its checks.
#include "plugin.hpp"
#include "state.hpp"

#include <catena/testing/conform.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <thread>

namespace catena::check {
namespace {

using testing::Report;
using testing::Verdict;
using In = testing::Check;

// A check that shares the exam, and what it is called there.
struct Examined {
    const char* group;
    const char* name;
    const char* doc;
    In of = In::count;  // of none
    std::string full_name() const { return std::string(group) + "/" + name; }
};
constexpr Examined examined[] = {
    {"values", "survives",
     "calls of every shape and with NaN, right or wrong, come back: no crash, no hang"},
    {"values", "examples", "the examples are accepted, and give finite numbers", In::example},
    {"values", "dtypes", "every dtype gives what float64 gives", In::dtypes},
    {"values", "variants",
     "kernels for every instruction set and of every plugin agree: tuned ones with the reference",
     In::variants},
    {"values", "empty", "first extents of 0", In::empty},
    {"values", "size-one", "extents of 1", In::size_one},
    {"values", "zero-d", "inputs without axes", In::zero_d},
    {"values", "nan", "NaN everywhere gives numbers or a status: no exception", In::nan},
    {"values", "reached", "every kernel that can run here runs, in each of its rows of dtypes",
     In::reached},
    {"values", "layout", "inputs at addresses that fit the dtype alone", In::layout},
    {"values", "inputs", "what was lent for reading is unmodified", In::inputs},
    {"values", "guard", "nothing is written or read beside what was lent", In::guard},
    {"values", "written", "every byte of a result is written, whatever was there", In::written},
    {"values", "add", "REQ_ADD adds to what is there", In::add},
    {"values", "process",
     "calls leave floating-point mode, signals, environment, files and threads as they were, and "
     "print nothing"},
    {"inference", "wrong-rank", "refused with \"[function] ...\" before a kernel runs",
     In::wrong_rank},
    {"inference", "wrong-shape", "refused with \"[function] ...\" before a kernel runs",
     In::wrong_shape},
    {"inference", "wrong-dtype", "refused with \"[function] ...\" before a kernel runs",
     In::wrong_dtype},
    {"gradients", "composed", "the composed gradient is that of finite differences", In::gradient},
    {"gradients", "kernel",
     "backward kernels give what the composition gives, or finite differences", In::backward},
    {"gradients", "second-order", "the gradient of the gradient is that of finite differences",
     In::second_order},
    {"gradients", "targets", "every set of wanted gradients gives the same numbers", In::targets},
    {"gradients", "missing", "an output's gradient that did not come is zero", In::missing_gy},
    {"gradients", "retained",
     "backward reads the inputs and outputs alone that are declared as retained", In::retained},
    {"determinism", "threads", "1, 2 and 3 threads agree", In::threads},
    {"determinism", "repeated", "the same call gives the same bits again", In::determinism},
};
constexpr bool has_all() {
    for (std::size_t i = 0; i < testing::n_checks; ++i)
        if (std::none_of(std::begin(examined), std::end(examined),
                         [i](const Examined& e) { return e.of == static_cast<In>(i); }))
            return false;
    return true;
}
static_assert(has_all(), "each check of catena::testing has a name here");

bool failed(const Report& report, In check) { return report[check].verdict == Verdict::failed; }
bool contains(const std::string& text, const char* part) { return text.find(part) != text.npos; }

// What follows from another fault that the report names is not said again.
bool follows(const Report& report, In check, const std::string& line) {
    if (check == In::empty || check == In::size_one || check == In::zero_d) {
        // A shape that should have been refused is no edge.
        if (failed(report, In::wrong_shape) || failed(report, In::wrong_rank)) return true;
        for (const Examined& m : examined) {
            if (m.of == In::count) continue;
            const std::string start = report.function() + ": " + info(m.of).name + ": ";
            if (m.of != check && failed(report, m.of) && contains(line, start.c_str())) return true;
        }
        return contains(line, "NaN") && failed(report, In::example);
    }
    // Measured by the composition.
    if (failed(report, In::gradient)) return check == In::backward;
    return false;
}

void tell(const Report& report, const Examined& m, Findings findings) {
    const Report::Entry& entry = report[m.of];
    if (entry.verdict == Verdict::not_applicable || entry.verdict == Verdict::none)
        return findings.skip(entry.text);
    if (entry.verdict == Verdict::passed) return;
    std::vector<std::string> lines;
    for (std::size_t begin = 0, end; (end = entry.text.find('\n', begin)) != std::string::npos;
         begin = end + 1)
        lines.push_back(entry.text.substr(begin, end - begin));
    if (lines == std::vector<std::string>{"no example reaches it"})
        return findings.skip("no example reaches it");
    bool said = false;
    for (const std::string& line : lines) {
        if (follows(report, m.of, line)) continue;
        findings.fail(line);
        said = true;
    }
    if (!said) findings.skip("it fails in another check, too");
}

// A thread that was joined may still be listed for a moment.
ProcessState settled(const ProcessState& before) {
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + 3s;
    for (;;) {
        ProcessState now = ProcessState::now();
        if (before.threads(now).empty() || std::chrono::steady_clock::now() > end) return now;
        std::this_thread::sleep_for(5ms);
    }
}

void exam(const Subject& subject, Findings& findings) {
    const auto world = make_world(subject);
    const std::string absent = absent_in(*world, subject);
    for (const Examined& e : examined)
        if (!absent.empty()) findings.of(e.full_name()).skip(absent);
    if (!absent.empty()) return;
    testing::Settings settings;
    settings.seed = subject.seed32();
    settings.large = subject.large;
    settings.gradients = subject.gradients;
    for (const Examined& e : examined)  // `process` watches the calls of another one
        if (e.full_name() == subject.only) settings.only = e.of == In::count ? In::inputs : e.of;
    Findings process = findings.of("values/process");
    process.silent();
    const ProcessState before = ProcessState::now();
    const Report report = conform(*world, subject.function, settings);
    const ProcessState after = settled(before);
    bool ran = world->origin(world->function(subject.function)) == subject.id;
    for (const catena_kernel* k : world->kernels_run())
        ran = ran || world->origin(*k) == subject.id;
    for (const Examined& e : examined) {
        if (e.of == In::count) continue;
        Findings found = findings.of(e.full_name());
        if (ran || e.of == In::reached) tell(report, e, found);
        else found.skip("no kernel of the plugin ran: see values/reached");
    }
    for (const std::string& line : report.shortened) findings.of("determinism/threads").note(line);
    for (const std::string& line : report.skipped) findings.of("values/reached").note(line);
    const auto differ = [&](const std::vector<std::string>& lines) {
        for (const std::string& line : lines) process.fail(line);
    };
    differ(before.float_mode(after));
    differ(before.signals(after));
    differ(before.environment(after));
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD})
        for (const catena_kernel* k : world->kernels(subject.function, phase))
            if (std::strcmp(k->device, "cpu") != 0)
                return process.note("files and threads may be those of a device's driver");
    differ(before.files(after));
    differ(before.threads(after));
}

const bool registered = [] {
    for (const Examined& e : examined) Registered({e.group, e.name, e.doc, exam, Each::function});
    return true;
}();

}  // namespace
}  // namespace catena::check
