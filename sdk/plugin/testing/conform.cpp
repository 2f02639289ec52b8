// The steps of conform().
#include "catena/testing/conform.hpp"

#include <algorithm>

#include "testing/exam.hpp"

namespace catena::testing {

namespace detail {

namespace {

// Rows of dtypes that an attribute chooses.
void examine_dtypes(World& world, const catena_function& f, const Example& example, Report& report,
                    const Settings& settings) {
    std::vector<catena_dtype> dtypes;
    for (const Row& row : rows_of(world, f))
        for (const catena_dtype d : row)
            if (std::none_of(dtypes.begin(), dtypes.end(),
                             [&](catena_dtype other) { return plugin::same(d, other); }))
                dtypes.push_back(d);
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        if (f.attrs[i]->kind != CATENA_ATTR_DTYPE) continue;
        for (const catena_dtype d : dtypes) try {
                Example other = example;
                other.attrs.set(f.attrs[i]->name, plugin::value_of(d));
                Exam exam(world, f, make_sample(world, f, other, settings.seed), report, settings);
                check_values(exam, exam.uses(CATENA_PHASE_FORWARD), Check::dtypes);
                if (exam.differentiable())
                    check_values(exam, exam.uses(CATENA_PHASE_BACKWARD), Check::backward);
            } catch (const Failure&) {
                // Not one of its choices.
            }
    }
}

// The call with another choice or truth for one of its attributes.
std::vector<Example> other_choices(const catena_function& f, const Example& example) {
    std::vector<Example> result;
    const auto with = [&](const catena_attr_spec& spec, const catena_value& value) {
        result.push_back(example);
        result.back().attrs.set(spec.name, value);
    };
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        const catena_attr_spec& spec = *f.attrs[i];
        const catena_value* const given = example.attrs.find(spec.name);
        const catena_value& now = given != nullptr ? *given : spec.def;
        if (spec.kind == CATENA_ATTR_BOOL) with(spec, plugin::value_of(now.v.i == 0));
        if (spec.kind != CATENA_ATTR_STRING || spec.choices == nullptr) continue;
        for (const char* const* choice = spec.choices; *choice != nullptr; ++choice)
            if (now.v.s == nullptr || std::strcmp(*choice, now.v.s) != 0)
                with(spec, plugin::value_of(*choice));
    }
    return result;
}

// Finds kernels of the plugins under test that never ran, so they were not tested. One that chooses its
// calls may want larger ones than the examples of another plugin's function are.
void all_reached(World& world, const catena_function& f, Report& report) {
    // What failed may have kept them from running.
    for (const Check check : {Check::example, Check::dtypes, Check::determinism, Check::backward,
                              Check::retained, Check::inputs, Check::guard})
        if (report.failed(check)) return;
    const std::size_t n = TypeVars(f).size();
    bool any = false;
    std::string why = "the plugins under test have no kernel that can run here";
    const auto look = [&](const catena_kernel& k, const std::string& row) {
        if (report.reached.contains({&k, row})) {
            any = true;
            return;
        }
        const std::string label = label_of(world, k, row);
        const bool chooses = k.supports != nullptr || k.plan != nullptr;
        if (!chooses || world.origin(f) == world.origin(k)) {
            const auto missed = report.missed.find({&k, row});
            const bool known = missed != report.missed.end() && !missed->second.empty();
            report.fail(Check::reached,
                        "no example reaches " + label + (known ? ": " + missed->second : ""));
        } else {
            why = "no call that was tried is taken by " + label;
            report.skipped.insert("skipped: " + why);
        }
    };
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD})
        for (const catena_kernel* k : world.kernels(f.name, phase))
            if (world.under_test(*k))
                each_row(*k, n, [&](const Row& row) { look(*k, text_of(row)); });
    if (any) report.pass(Check::reached);
    else report.skip(Check::reached, why);
}

// Why nothing under test has a part in the function's calls; empty: something has.
std::string why_absent(World& world, const catena_function& f) {
    if (world.under_test(f)) return {};
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD})
        for (const catena_kernel* k : world.kernels(f.name, phase))
            if (world.under_test(*k)) return {};
    return "no kernel under test can run here";
}

// Whether the function comes with several kernels for the same dtypes, on any machine.
bool has_variants(const World& world, const catena_function& f, std::size_t n_vars) {
    std::set<std::string> rows;
    bool twice = false;
    for (const catena_kernel* k : world.kernels())
        if (std::strcmp(k->function, f.name) == 0 && on_cpu(*k) && is_forward(*k) &&
            world.origin(*k) == world.origin(f))
            each_row(*k, n_vars,
                     [&](const Row& row) { twice = !rows.insert(text_of(row)).second || twice; });
    return twice;
}

// What cannot be asked of this function.
void excuse(const World& world, const catena_function& f, bool differentiable, Report& report) {
    const auto skip = [&](std::initializer_list<Check> checks, const char* reason) {
        for (const Check check : checks) report.skip(check, reason);
    };
    const std::size_t row = TypeVars(f).size();
    const auto& backward = world.kernels(f.name, CATENA_PHASE_BACKWARD);
    if ((f.flags & CATENA_FUNCTION_VIEW) != 0)
        skip({Check::dtypes, Check::variants, Check::threads, Check::determinism, Check::add,
              Check::layout, Check::inputs, Check::guard, Check::written, Check::nan,
              Check::reached},
             "a view: it has no kernel");
    // By its own plugin's table: what another plugin or this machine has is no property of it.
    if (!has_variants(world, f, row)) skip({Check::variants}, "one kernel for each row of dtypes");
    else if (report.compared) report.pass(Check::variants);
    if (f.n_inputs == 0)
        skip({Check::empty, Check::size_one, Check::zero_d, Check::layout, Check::inputs,
              Check::wrong_rank, Check::wrong_shape, Check::wrong_dtype},
             "it has no inputs");
    if (!differentiable) {
        skip({Check::gradient, Check::backward, Check::second_order, Check::targets,
              Check::missing_gy, Check::retained},
             "not differentiable");
    } else {
        if (f.gradient == nullptr && f.grad_function == nullptr)
            skip({Check::gradient, Check::second_order}, "it has a backward kernel alone");
        if (backward.empty())
            skip({Check::backward}, "no backward kernel: the composed gradient is used");
        skip({Check::missing_gy}, "a single output: backward is not called without its gradient");
    }
    if (updates(f)) skip({Check::add}, "it updates its inputs: it has no outputs to add to");
    else skip({Check::add}, "no kernel supports REQ_ADD: the host adds, or results are integers");
}

}  // namespace
}  // namespace detail

Report conform(World& world, const std::string& name, const Settings& settings) {
    const catena_function& f = world.function(name);
    Report report(name);
    report.internal = (f.flags & CATENA_FUNCTION_INTERNAL) != 0;
    report.skipped = world.skipped(name);
    world.forget_runs();
    if (const std::string why = detail::why_absent(world, f); !why.empty()) {
        if (report.skipped.empty()) report.skipped.insert("skipped: " + why);
        for (std::size_t i = 0; i < n_checks; ++i) report.skip(static_cast<Check>(i), why);
        return report;
    }
    const Examples known = examples_of(world, f, settings.seed);
    report.examples = known.declared;
    for (const std::string& fault : known.faults) report.fail(Check::example, fault);
    if (known.found) report.found = text_of(f, known.calls[0]);
    else if (known.calls.empty())
        report.fail(Check::example, "no call was found that it accepts (seed " +
                                        std::to_string(settings.seed) + ")");
    bool differentiable = false;
    // Whether the call gave numbers. A derived call may be refused, and may give NaN.
    const auto examine = [&](const Example& example, bool derived) {
        const std::string call = '"' + text_of(f, example) + "\": ";
        std::optional<Sample> sample;
        for (const bool train : {true, false}) try {
                now_doing(name, "runs " + text_of(f, example));
                const Sample s = make_sample(world, f, example, settings.seed, train);
                // Functions that do something else in test mode are examined there, too.
                if (sample && s.y == sample->y) continue;
                if (derived && has_nan(s.y)) continue;
                sample = s;
                differentiable =
                    differentiable || detail::Exam(world, f, s, report, settings).differentiable();
                if (has_nan(s.y)) report.fail(Check::example, call + "it gives NaN");
                else report.pass(Check::example);
                detail::check_sample(world, f, s, report, settings);
            } catch (const std::exception& e) {
                const auto watcher = detail::watcher_of(e);
                if (watcher || !derived || !detail::explains(f, e.what()))
                    report.fail(watcher.value_or(Check::example), call + e.what());
            }
        return sample.has_value();
    };
    std::set<std::string> tried;
    for (const Example& example : known.calls) tried.insert(text_of(f, example));
    for (const Example& example : known.calls) {
        if (!examine(example, false) || report.failed(Check::determinism)) continue;
        for (const Example& other : detail::other_choices(f, example))
            if (tried.insert(text_of(f, other)).second) examine(other, true);
        detail::examine_dtypes(world, f, example, report, settings);
        detail::check_shapes(world, f, example, report, settings);
    }
    if (!settings.large) report.skip(Check::threads, "long calls are left out");
    if (!settings.large || !settings.gradients)
        report.skip(Check::reached, "some kernels may serve what is left out alone");
    else if (!known.calls.empty() && settings.wants(Check::reached))
        detail::all_reached(world, f, report);
    detail::excuse(world, f, differentiable, report);
    report.finish(settings.only);
    now_doing("", "");
    return report;
}

}  // namespace catena::testing
