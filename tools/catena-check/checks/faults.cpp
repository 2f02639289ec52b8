// Checks how callbacks handle failing allocations and services, unusual values and shapes, and any
// order of pieces in parallel_for(); and that they leak no memory.
#include "rig.hpp"

#include <testing/resize.hpp>

#include <cmath>

namespace catena::check::faults {
namespace {

// Makes the n-th event fail, with increasing n, until no event fails. Skips some n above 200.
template <class Arm>
void each_fault(const Callback& callback, const char* what, Findings& findings, const Arm& arm) {
    for (long n = 1; n < 100000; n += n < 200 ? 1 : n / 8) {
        const std::string label = fmt::format("{}, {} {}", callback.label, what, n);
        doing("{}", label);
        const Reply r = callback.call({[&] { arm(n); }, {}});
        std::string problem = r.fired ? callback.judge(r) : callback.judge_success(r);
        if (!problem.empty() && !r.fired && n > 1) problem = "the next call: " + problem;
        if (!problem.empty()) return findings.fail("{}: {}", label, problem);
        if (!r.fired) return;
    }
}

template <class Arm>
void faults(const Subject& subject, Findings& findings, const char* what, const Arm& arm) {
    Rig(subject).each_callback(
        findings, [&](const Callback& callback) { each_fault(callback, what, findings, arm); });
}

void allocation(const Subject& subject, Findings& findings) {
    if (!allocations_fail()) return findings.skip("a sanitizer brings its own malloc()");
    faults(subject, findings, "failing allocation", [](long n) { fail_allocation(n); });
    faults(subject, findings, "all allocations failing from",
           [](long n) { fail_allocation(n, true); });
}
const Registered r1{{"faults", "allocation",
                     "if the n-th allocation fails, the call returns a status with a message",
                     allocation, Each::function}};

// Calls entry() and init() of a fresh copy for each failing allocation.
void load(const Subject& subject, Findings& findings) {
    if (!allocations_fail()) return findings.skip("a sanitizer brings its own malloc()");
    const std::unique_ptr<testing::World> world = make_world(subject);
    bool fired = true;
    for (long n = 1; n < 50 && fired; n += 1 + n / 4) {
        const testing::detail::Module copy = second_copy(subject.file);
        catena_ctx ctx{world.get(), {}, {}};
        std::string in = "catena_plugin_entry_v1()";
        bool failed = false;
        bool thrown = false;
        doing("{}, failing allocation {}", in, n);
        control.forget();
        fail_allocation(n);
        try {
            const Inside plugin(true);
            const catena_plugin* table = copy.entry(&controlled_host(), &ctx);
            failed = table == nullptr;
            if (table != nullptr && table->init != nullptr) {
                const Inside host(false);
                in = "init()";
                doing("{}, failing allocation {}", in, n);
                const Inside again(true);
                failed = table->init(&controlled_host(), &ctx) != CATENA_OK;
            }
        } catch (...) {
            thrown = true;
        }
        fired = allocation_failed();
        fail_allocation(0);
        const std::string label = fmt::format("{}, failing allocation {}", in, n);
        if (thrown) findings.fail("{} lets an exception out", label);
        else if (failed && control.failures == 0) findings.fail("{} fails without fail()", label);
        else if (failed && !fired) findings.fail("{} fails: {}", label, control.text);
    }
}
const Registered r0{
    {"faults", "load",
     "if the n-th allocation fails, entry() and init() succeed or fail with a message", load}};

// Repeats each callback. Memory on the heap that grows with each call is a leak.
void leak(const Subject& subject, Findings& findings) {
    if (!allocations_fail()) return findings.skip("a sanitizer brings its own malloc()");
    constexpr int n_calls = 8;
    constexpr std::int64_t least = 32;  // bytes of the smallest block
    Rig(subject).each_callback(findings, [&](const Callback& callback) {
        doing("{}, again and again", callback.label);
        const auto grows_by = [&] {
            const std::int64_t before = heap_in_use();
            for (int i = 0; i < n_calls; ++i) callback.call({});
            return (heap_in_use() - before) / n_calls;
        };
        grows_by();  // fills caches
        std::int64_t bytes = grows_by();
        for (int i = 0; i < 7 && bytes >= least; ++i) bytes = std::min(bytes, grows_by());
        if (bytes >= least)
            findings.fail_once(callback.kind(),
                               "{}: expected the heap as before, got {} bytes more with each "
                               "call: memory that nobody frees",
                               callback.label, bytes);
    });
}
const Registered r5{
    {"faults", "leak", "repeated calls of a callback leak no memory", leak, Each::function}};

void host_call(const Subject& subject, Findings& findings) {
    faults(subject, findings, "failing call of the host", [](long n) { control.failing_call = n; });
}
const Registered r2{{"faults", "host-call",
                     "if the n-th call of the host fails, the plugin passes the failure on",
                     host_call, Each::function}};

// Runs kernels on values such as NaN and infinity, and infer() on wrong shapes and ranks.
void exception(const Subject& subject, Findings& findings) {
    Rig rig(subject);
    const catena_function& f = rig.function();
    const auto check = [&](const std::string& label, const auto& call) {
        doing("{}", label);
        const std::string problem = judge(call(), f);
        if (!problem.empty()) findings.fail("{}: {}", label, problem);
    };
    const std::vector<Play> plays = rig.plays(findings);
    if (plays.empty()) return;
    const Circumstances fenced = {{}, {Placement::Kind::fenced}};
    using Fill = std::pair<const char*, double>;
    static constexpr double large = 1e18;
    const Fill values[] = {{"NaN", NAN}, {"inf", INFINITY},      {"-inf", -INFINITY},
                           {"-1", -1.0}, {"the largest", large}, {"the smallest", -large}};
    const auto is_read = [&](std::size_t i) {
        return (testing::detail::input_flags(f, i) & CATENA_PORT_HOST) != 0;
    };
    for (const Play& p : plays)
        for (const Use& u : p.uses)
            for (const auto& [words, number] : values) {
                const double value = number;
                const bool forward = u.kernel->phase == CATENA_PHASE_FORWARD;
                const auto spoil = [&](Array a) {
                    // Backward kernels may rely on integers that forward calls accepted.
                    for (std::int64_t i = 0; (forward || a.floating()) && i < a.size(); ++i)
                        set_clamped(a, i, value);
                    return a;
                };
                const testing::detail::Given given = u.of.given.changed(spoil);
                check(fmt::format("{} of \"{}\" with {} everywhere", u.of.label, p.sample.text,
                                  words),
                      [&] { return rig.run(u, given, p, fenced); });
            }
    if (!rig.brings()) return skip_if_idle(findings);
    for (const Play& p : plays)
        for (const auto& [words, value] : values) {
            if (!p.composition) continue;
            std::vector<Array> x = p.composition->given.x;
            for (std::size_t i = 0; i < x.size(); ++i)
                for (std::int64_t k = 0; is_read(i) && x[i] && k < x[i].size(); ++k)
                    set_clamped(x[i], k, value);
            check(fmt::format("compose() of \"{}\" with {} in all that it reads", p.sample.text,
                              words),
                  [&] {
                      Engine caller = rig.caller(p.sample.example.attrs, p.sample.train, fenced);
                      std::vector<catena_var*> y;
                      return caller.compose(caller.make({x}).x, y, true);
                  });
        }
    for (const Play& p : plays)
        for (const auto& wrong : {testing::detail::wrong_shapes(p.sample.example),
                                  testing::detail::wrong_ranks(p.sample.example)})
            for (const testing::Example& e : wrong)
                check("infer() of \"" + testing::text_of(f, e) + "\"", [&] {
                    std::vector<Array> x;
                    for (std::size_t i = 0; i < e.inputs.size(); ++i)
                        x.push_back(testing::detail::draw_for_infer(
                            f, e, i, p.sample.x[i] ? p.sample.x[i].dtype() : catena_dtype(),
                            subject.seed32()));
                    return rig.caller(e.attrs, p.sample.train, fenced).shapes(x);
                });
}
const Registered r3{
    {"faults", "exception",
     "no exception escapes, for any numbers and shapes; messages say what is wrong, and where",
     exception, Each::function}};

void pieces(const Subject& subject, Findings& findings) {
    Rig rig(subject);
    if ((rig.function().flags & CATENA_FUNCTION_VIEW) != 0)
        return findings.skip("a view: it has no kernel");
    if (testing::detail::has_parts_alone(rig.world(), rig.known()))
        return findings.skip("a composition: the kernels of its parts have pieces");
    bool any = false;
    for (const testing::Example& e : rig.examples()) {
        // A sample that is large enough for several pieces.
        auto sample = longer(rig.world(), rig.known(), e, 40000, 40001, subject.seed32());
        if (!sample) continue;
        any = true;
        const Play p = rig.play(std::move(*sample));
        for (const Callback& callback : rig.callbacks(p)) {
            if (callback.expected.empty()) continue;
            using Way = std::pair<const char*, Pieces>;
            for (const auto& [words, way] :
                 {Way{"pieces in order", Pieces::ascending},
                  Way{"pieces backwards", Pieces::descending},
                  Way{"pieces shuffled", Pieces::shuffled},
                  Way{"pieces on 5 threads", Pieces::threads},
                  Way{"pieces as one, on the last slot", Pieces::nested}}) {
                control.pieces = way;
                control.slots = 5;
                callback.check(findings, words, {});
                control.pieces = Pieces::whole;
                control.slots = 1;
            }
        }
    }
    if (!any) findings.skip("no larger call is known");
    else skip_if_idle(findings);
}
const Registered r4{{"faults", "pieces",
                     "parallel_for() gives the same results in any order, on any thread and slot",
                     pieces, Each::function}};

}  // namespace
}  // namespace catena::check::faults
