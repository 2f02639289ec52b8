// The steps of conform() and check().
#include <algorithm>
#include <cmath>

#include "testing/exam.hpp"

namespace catena::testing {

namespace detail {

namespace {

// Checks the rows of dtypes that an attribute selects.
void examine_dtypes(World& world, const catena_function& f, const Example& example, Report& report,
                    const Settings& settings) {
    std::vector<catena_dtype> dtypes;
    for (const Row& row : rows_of(world, f))
        for (const catena_dtype d : row)
            if (known(d) && std::none_of(dtypes.begin(), dtypes.end(), [&](catena_dtype other) {
                    return plugin::same(d, other);
                }))
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
                // The attribute does not accept this dtype.
            }
    }
}

// Returns the call with each other choice or truth value of one of its attributes.
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

// Fails if kernels of the plugins under test never ran, so that they were not tested. Skips kernels for other
// plugins' functions that choose their calls: they may need larger calls than the examples.
void all_reached(World& world, const catena_function& f, Report& report) {
    // These failures may have kept kernels from running.
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
    if (!any && world.under_test(f) && f.compose != nullptr)
        why = "a composition: it has no kernel";
    if (any) report.pass(Check::reached);
    else report.skip(Check::reached, why);
}

// Returns why no part of the function's calls is under test; empty if some part is.
std::string why_absent(World& world, const catena_function& f) {
    if (world.under_test(f)) return {};
    for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD})
        for (const catena_kernel* k : world.kernels(f.name, phase))
            if (world.under_test(*k)) return {};
    return "no kernel under test can run here";
}

// Whether the function's own plugin has several kernels for the same dtypes, on any machine.
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

// Gives the reasons for checks that do not apply to this function.
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
    // By its own plugin's table: kernels of other plugins and the machine do not matter.
    if (!has_variants(world, f, row)) skip({Check::variants}, "one kernel for each row of dtypes");
    else if (report.compared) report.pass(Check::variants);
    if (f.n_inputs == 0)
        skip({Check::threads, Check::empty, Check::size_one, Check::zero_d, Check::layout,
              Check::inputs, Check::wrong_rank, Check::wrong_shape, Check::wrong_dtype},
             "it has no inputs");
    if (!differentiable) {
        skip({Check::gradient, Check::backward, Check::second_order, Check::targets,
              Check::missing_gy, Check::retained},
             "not differentiable");
    } else {
        const bool parts = f.gradient == nullptr && f.grad_function == nullptr;
        if (parts && f.compose == nullptr)
            skip({Check::gradient, Check::second_order}, "it has a backward kernel alone");
        if (parts && f.compose != nullptr)
            skip({Check::retained}, "a composition: the graph keeps what its parts need");
        if (backward.empty())
            skip({Check::backward}, "no backward kernel: the composed gradient is used");
        skip({Check::missing_gy}, "a single output: backward is not called without its gradient");
    }
    if (updates(f)) skip({Check::add}, "it updates its inputs: it has no outputs to add to");
    else if (world.kernels(f.name, CATENA_PHASE_FORWARD).empty())
        skip({Check::add}, "it has no kernel: the host adds");
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
    // Returns whether the call gave results. A derived call may be refused or give NaN.
    const auto examine = [&](const Example& example, bool derived) {
        const std::string call = '"' + text_of(f, example) + "\": ";
        std::optional<Sample> sample;
        for (const bool train : {true, false}) try {
                now_doing(name, "runs " + text_of(f, example));
                const Sample s = make_sample(world, f, example, settings.seed, train);
                // Functions that give other results in test mode are examined in both modes.
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

namespace {

using namespace detail;

// Returns the inputs in the widest dtypes that the function accepts, unless it accepts them as given.
Arrays fitted(World& world, const catena_function& f, Arrays x, const OwnedAttrs& attrs) {
    const TypeVars vars(f);
    std::optional<Arrays> widest;
    for (Row& row : rows_of(world, f)) {
        Arrays other = x;
        bool as_given = true;
        bool alike = true;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const catena_dtype dtype = row[vars.input(i)];
            if (!x[i] || plugin::same(x[i].dtype(), dtype)) continue;
            as_given = false;
            alike = alike && x[i].floating() == is_floating(dtype);
            other[i] = x[i].to(dtype);
        }
        if (as_given) return x;
        try {
            if (alike && !widest && gives_row(world, f, other, attrs, row))
                widest = std::move(other);
        } catch (const Failure&) {
            // The call itself will report the error.
        }
    }
    return widest.value_or(x);
}

// Returns an input with the shape and the range of numbers of an array.
Example::Input like(const Array& a) {
    Example::Input input = {bool(a), a.shape()};
    for (std::int64_t i = 0; a && i < a.size(); ++i) {
        if (!std::isfinite(a.at(i))) continue;
        input.low = input.ranged ? std::min(input.low, a.at(i)) : a.at(i);
        input.high = input.ranged ? std::max(input.high, a.at(i)) : a.at(i);
        input.ranged = true;
    }
    return input;
}

// Whether the function accepts other numbers of the same range, which check_shapes() uses.
bool takes_any(World& world, const catena_function& f, const Sample& sample) {
    for (const Array& a : sample.x)
        if (a && a.size() == 0) return false;  // has no range
    try {
        const Sample other = make_sample(world, f, sample.example, 1, sample.train);
        return !has_nan(other.y);
    } catch (const Failure&) {
        return false;
    }
}

// Compares the outputs that the case has expected values for; the text names the first that differs.
std::string compare_outputs(const catena_function& f, const Arrays& y, const Arrays& expected,
                            Tolerance tolerance) {
    if (expected.size() > y.size())
        return "expected " + std::to_string(expected.size()) + " outputs, got " +
               std::to_string(y.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::string text = expected[i] ? compare(y[i], expected[i], tolerance) : "";
        if (!text.empty()) return result_name(f, CATENA_PHASE_FORWARD, i) + ": " + text;
    }
    return {};
}

// Returns a message if the call was not refused as expected, else empty.
std::string how_refused(World& world, const Case& c) {
    Options options;
    options.train = c.train;
    try {
        world.forward(c.function, c.inputs, c.attrs, options);
    } catch (const Failure& failure) {
        if (std::string(failure.what()).find(c.error) != std::string::npos) return {};
        return "expected the error \"" + c.error + "\", got \"" + failure.what() + "\"";
    }
    return "expected the error \"" + c.error + "\", got none";
}

}  // namespace

Report examine(World& world, const Case& c) {
    Report report(c.function);
    try {
        const catena_function& f = world.function(c.function);
        report.skipped = world.skipped(c.function);
        if (!c.error.empty()) {
            if (const std::string text = how_refused(world, c); !text.empty())
                report.fail(Check::example, text);
            else report.pass(Check::example);
            return report;
        }
        Settings settings;
        settings.step = c.step;
        settings.float32 = c.float32;
        settings.float64 = c.float64;
        settings.differences = c.differences;
        settings.large = false;
        Sample sample;
        sample.example.attrs = OwnedAttrs(c.attrs);
        Arrays given = complete(f, c.inputs);
        for (Array& a : given)
            if (a && a.floating()) a = a.to(dtype_of<double>());
        sample.x = fitted(world, f, std::move(given), sample.example.attrs);
        for (const Array& a : sample.x) sample.example.inputs.push_back(like(a));
        Example shapes = sample.example;
        for (Example::Input& input : shapes.inputs) input.ranged = false;
        sample.text = text_of(f, shapes);
        sample.train = c.train;
        Options options;
        options.train = c.train;
        world.drawn = 0;
        sample.y = world.forward(f.name, sample.x, c.attrs, options);
        // The checks below compare every kernel and dtype with sample.y.
        const std::string wrong = compare_outputs(f, sample.y, c.expected, c.digits);
        if (!wrong.empty()) report.fail(Check::example, sample.text + ": " + wrong);
        detail::check_sample(world, f, sample, report, settings);
        if (report.failed(Check::determinism)) return report;
        if (c.edges.value_or(!c.expected.empty()) && takes_any(world, f, sample))
            detail::check_shapes(world, f, sample.example, report, settings);
    } catch (const std::exception& e) {
        report.fail(Check::example, e.what());
    }
    return report;
}

}  // namespace catena::testing
