// Runs catena::testing::conform() on each function and reports its checks under their names.
#include "rig.hpp"
#include "state.hpp"

#include <catena/testing/conform.hpp>
#include <testing/functions.hpp>

#include <chrono>
#include <sstream>
#include <thread>

namespace catena::check::values {
namespace {

using testing::Report;
using testing::Verdict;
using In = testing::Check;

// Checks that share the run with those of conform(). A crash is a failure of the first.
constexpr Check survives = {
    "values", "survives",
    "calls with every shape and with NaN, valid or invalid, neither crash nor hang"};
constexpr Check unchanged = {"values", "process",
                             "calls do not change floating-point mode, signals, environment, files "
                             "and threads, and print nothing"};

std::string name_here(In check) { return std::string(info(check).group) + "/" + info(check).check; }
template <class Body>
void each_check(const Body& body) {
    for (std::size_t i = 0; i < testing::n_checks; ++i) body(static_cast<In>(i));
}

bool failed(const Report& report, In check) { return report[check].verdict == Verdict::failed; }
bool contains(const std::string& text, const char* part) { return text.find(part) != text.npos; }

// Whether a line follows from another failure in the report, and need not be reported.
bool follows(const Report& report, In check, const std::string& line) {
    if (check == In::empty || check == In::size_one || check == In::zero_d) {
        // This shape may be one that the function should have refused.
        if (failed(report, In::wrong_shape) || failed(report, In::wrong_rank)) return true;
        bool other = contains(line, "NaN") && failed(report, In::example);
        each_check([&](In of) {
            const std::string start = report.function() + ": " + info(of).name + ": ";
            other = other || (of != check && failed(report, of) && contains(line, start.c_str()));
        });
        return other;
    }
    // The composition is the reference for backward kernels.
    if (failed(report, In::gradient)) return check == In::backward;
    return false;
}

void tell(const Report& report, In check, Findings findings) {
    const Report::Entry& entry = report[check];
    if (entry.verdict == Verdict::not_applicable || entry.verdict == Verdict::none)
        return findings.skip("{}", entry.text);
    if (entry.verdict == Verdict::passed) return;
    if (entry.text == "no example reaches it\n") return findings.skip("no example reaches it");
    bool said = false;
    std::istringstream text(entry.text);
    for (std::string line; std::getline(text, line);) {
        if (follows(report, check, line)) continue;
        findings.fail("{}", line);
        said = true;
    }
    if (!said) findings.skip("it fails in another check, too");
}

// A thread that was joined may still be listed for a moment.
ProcessState settled(const ProcessState& before) {
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + 10s;
    for (;;) {
        ProcessState now = ProcessState::now();
        if (before.changes("threads", now).empty() || std::chrono::steady_clock::now() > end)
            return now;
        std::this_thread::sleep_for(5ms);
    }
}

void exam(const Subject& subject, Findings& findings) {
    const auto world = make_world(subject);
    const std::string absent = absent_in(*world, subject);
    if (!absent.empty()) {
        for (const Check* check : {&survives, &unchanged})
            findings.of(name_of(*check)).skip("{}", absent);
        return each_check([&](In check) { findings.of(name_here(check)).skip("{}", absent); });
    }
    testing::Settings settings;
    settings.seed = subject.seed32();
    settings.large = subject.large;
    settings.gradients = subject.gradients;
    if (!subject.only.empty()) settings.only = In::inputs;  // values/process watches its calls
    each_check([&](In check) {
        if (name_here(check) == subject.only) settings.only = check;
    });
    Findings process = findings.of("values/process");
    process.silent();
    const ProcessState before = ProcessState::now();
    const Report report = conform(*world, subject.function, settings);
    const ProcessState after = settled(before);
    bool ran = world->origin(world->function(subject.function)) == subject.id;
    for (const catena_kernel* k : world->kernels_run())
        ran = ran || world->origin(*k) == subject.id;
    each_check([&](In check) {
        Findings found = findings.of(name_here(check));
        if (ran || check == In::reached) tell(report, check, found);
        else found.skip("no kernel of the plugin ran: see values/reached");
    });
    for (const std::string& line : report.shortened)
        findings.of("determinism/threads").note("{}", line);
    for (const std::string& line : report.skipped) findings.of("values/reached").note("{}", line);
    bool device = false;
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD})
        for (const catena_kernel* k : world->kernels(subject.function, phase))
            device = device || !testing::detail::on_cpu(*k);
    if (device) process.note("files and threads may be those of a device's driver");
    for (const std::string_view group : ProcessState::groups)
        for (const std::string& line : before.changes(group.data(), after))
            if (!device || (group != "files" && group != "threads")) process.fail("{}", line);
}

const bool registered = [] {
    const auto add = [](const char* group, const char* name, const char* doc) {
        Registered({group, name, doc, exam, Each::function});
    };
    add(survives.group, survives.name, survives.doc);
    each_check([&](In check) { add(info(check).group, info(check).check, info(check).doc); });
    add(unchanged.group, unchanged.name, unchanged.doc);
    return true;
}();

}  // namespace
}  // namespace catena::check::values
