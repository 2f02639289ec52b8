// Checks of calls derived from an example.
#include <algorithm>
#include <limits>
#include <set>

#include "testing/exam.hpp"
#include "testing/resize.hpp"

namespace catena::testing::detail {
namespace {

class ShapeChecks {
public:
    ShapeChecks(World& world, const catena_function& f, Example example, Report& report,
                const Settings& settings)
        : world_(world),
          f_(f),
          example_(std::move(example)),
          report_(report),
          settings_(settings) {}

    void run() {
        if (settings_.wants(Check::empty)) empty();
        if (settings_.wants(Check::size_one)) size_one();
        if (settings_.wants(Check::zero_d)) zero_d();
        const bool kernels = settings_.wants_kernels(CATENA_PHASE_FORWARD) ||
                             settings_.wants_kernels(CATENA_PHASE_BACKWARD);
        if (kernels && settings_.large && (f_.flags & CATENA_FUNCTION_VIEW) == 0) large();
        if (settings_.wants(Check::wrong_shape))
            refusals(Check::wrong_shape, wrong_shapes(example_), "every shape");
        if (settings_.wants(Check::wrong_rank))
            refusals(Check::wrong_rank, wrong_ranks(example_), "every rank");
        if (settings_.wants(Check::wrong_dtype)) dtypes();
    }

private:
    std::optional<Sample> accepted(const Example& e) {
        now_doing(f_.name, "tries " + text_of(f_, e));
        try {
            return make_sample(world_, f_, e, settings_.seed);
        } catch (const Failure& failure) {
            const std::string call = text_of(f_, e) + ": ";
            if (const auto watcher = watcher_of(failure))
                report_.fail(settings_.blamed(*watcher), call + failure.what());
            else if (!explains(f_, failure.what()))
                report_.fail(Check::wrong_shape, call + "expected \"[" + f_.name +
                                                     "] ...\", got \"" + failure.what() + "\"");
        }
        return std::nullopt;
    }
    // Also runs the call on the device under test, because the time of a call limits the size of
    // longer ones.
    std::optional<Sample> run(const Example& e) {
        auto sample = accepted(e);
        if (!sample || settings_.device == nullptr) return sample;
        Options options;
        options.device = settings_.device;
        world_.drawn = 0;
        try {
            world_.forward(f_.name, sample->x, e.attrs.list(), options);
        } catch (const Failure&) {
            // No kernel takes the call, or its checks report the failure.
        }
        return sample;
    }
    // Runs all checks of values.
    void numbers(Check check, const Sample& sample) {
        // Only empty calls may give NaN, as the mean of no elements does.
        if (check != Check::empty && has_nan(sample.y))
            report_.fail(check, sample.text + ": it gives NaN");
        Report found(report_.function());
        Settings all = settings_;
        all.only.reset();
        all.gradients = all.gradients && !report_.failed(Check::retained);
        check_sample(world_, f_, sample, found, all, false);
        report_.reached.insert(found.reached.begin(), found.reached.end());
        const std::string failures = found.failures();
        if (failures.empty()) report_.pass(check);
        else report_.fail(check, failures.substr(0, failures.find('\n')));
    }

    void empty() {
        bool any = false;
        for (const std::uint64_t set : equal_firsts(example_))
            for (const bool attributes : {false, true}) {
                const Resize r = {first_extent(example_, set), 0, false, attributes};
                if (const auto sample = accepted(resize_first(example_, set, r))) {
                    numbers(Check::empty, *sample);
                    any = true;
                    break;
                }
            }
        if (!any) report_.skip(Check::empty, "refused with a message: inputs may not be empty");
    }
    void size_one() {
        Example e = example_;
        for (std::size_t i = 0; i < e.inputs.size(); ++i)  // labels only of the first class
            if (e.inputs[i].ranged && e.inputs[i].low >= 0 && integer_port(i))
                e.inputs[i].high = e.inputs[i].low;
        std::set<std::int64_t> extents;
        for (const Example::Input& in : e.inputs) extents.insert(in.shape.begin(), in.shape.end());
        std::optional<Sample> smallest;
        for (const std::int64_t extent : extents) {
            if (extent <= 1) continue;
            for (const Resize& r : {Resize{extent, 1, false, false}, Resize{extent, 1, true, false},
                                    Resize{extent, 1, false, true}, Resize{extent, 1, true, true}})
                if (auto sample = accepted(resize_all(e, r))) {
                    e = sample->example;
                    smallest = std::move(sample);
                    break;
                }
        }
        if (smallest) numbers(Check::size_one, *smallest);
        else if (elements(example_) == 1) report_.pass(Check::size_one);
        else report_.skip(Check::size_one, "refused with a message: no extent may be 1");
    }
    bool integer_port(std::size_t i) const {
        const auto rows = rows_of(world_, f_);
        return !rows.empty() && !is_floating(rows[0][TypeVars(f_).input(i)]);
    }
    void zero_d() {
        const std::size_t n = std::min<std::size_t>(example_.inputs.size(), 4);
        bool any = false;
        for (const Example::Input& in : example_.inputs)
            any = any || (in.present && in.shape.empty());  // the example itself
        if (any) report_.pass(Check::zero_d);
        for (std::uint64_t set = (std::uint64_t{1} << n) - 1; set != 0; --set) {
            Example e = example_;
            bool changed = false;
            for (std::size_t i = 0; i < n; ++i) {
                if ((set >> i & 1) == 0) continue;
                changed = changed || !e.inputs[i].shape.empty();
                e.inputs[i].shape.clear();
            }
            if (!changed) continue;
            if (const auto sample = accepted(e)) {
                numbers(Check::zero_d, *sample);
                any = true;
            }
        }
        if (!any) report_.skip(Check::zero_d, "refused with a message: every input needs axes");
    }

    // Checks calls that are long enough for vectors and for threads.
    void large() {
        if (has_parts_alone(world_, f_))
            return report_.skip(Check::threads,
                                "a composition: the kernels of its parts have threads");
        if (const auto sample = longer_last()) values(told(*sample), false);
        const auto make = [&](const Example& e) { return run(e); };
        constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
        if (const auto sample = longer_first(example_, settings_.elements, any, make))
            values(told(*sample), true);
        else report_.skip(Check::threads, "it accepts no larger call");
    }
    // Reports if the time limit stopped the last enlarge().
    const Sample& told(const Sample& sample) {
        if (doublings.cut)
            report_.shortened.insert("no calls longer than \"" + sample.text +
                                     "\", for they take long");
        return sample;
    }
    bool affordable(std::int64_t n) const { return n < 5 * settings_.elements; }
    bool affordable(const Sample& sample) const {
        return std::ranges::all_of(sample.y, [&](const Array& y) { return affordable(y.size()); });
    }
    std::optional<Sample> longer_last() {
        for (const Example::Input& in : example_.inputs) {
            if (!in.present || in.shape.empty() || in.shape.back() == 0) continue;
            const std::int64_t last = in.shape.back();
            for (const std::int64_t to : {std::int64_t{131}, last * 45})
                for (const Resize& r :
                     {Resize{last, to, true, false}, Resize{last, to, false, false},
                      Resize{last, to, true, true}}) {
                    const auto make = [&](std::int64_t n) -> std::optional<Sample> {
                        const Example e =
                            resize_all(example_, {last, n, r.multiples, r.attributes});
                        if (!affordable(elements(e))) return std::nullopt;
                        auto sample = run(e);
                        return sample && affordable(*sample) ? std::move(sample) : std::nullopt;
                    };
                    if (auto sample = enlarge(last, to, make)) return sample;
                }
        }
        return std::nullopt;
    }
    void values(const Sample& sample, bool threads) {
        Exam e(world_, f_, sample, report_, settings_);
        for (const int phase : {CATENA_PHASE_FORWARD, CATENA_PHASE_BACKWARD}) {
            if (phase == CATENA_PHASE_BACKWARD && !e.differentiable()) continue;
            const std::vector<Use> uses = e.uses(phase);
            if (!check_values(e, uses,
                              phase == CATENA_PHASE_FORWARD ? Check::dtypes : Check::backward))
                return;
            for (const Use& u : uses)
                if (threads) check_threads(e, u, true);
                else check_behaviour(e, u);
        }
    }

    // Each call must be refused by infer(), or be valid. In the latter case it must run, and its
    // results must not depend on the memory around its inputs.
    void refusals(Check check, const std::vector<Example>& calls, const char* what) {
        bool refused = false;
        for (const Example& e : calls) {
            const std::size_t before = world_.runs();
            now_doing(f_.name, "tries " + text_of(f_, e));
            const auto fail = [&](const std::string& text) {
                report_.fail(check, text_of(f_, e) + ": " + text);
            };
            try {
                const Sample sample = make_sample(world_, f_, e, settings_.seed);
                Exam exam(world_, f_, sample, report_, settings_);
                Arrays x = sample.x;
                for (Array& a : x)
                    if (a) a = a.moved(0, 0x3f);
                if (!exam.same_bits(exam.forward(x), sample.y, CATENA_PHASE_FORWARD).empty())
                    fail("it is accepted, and reads beside its inputs");
            } catch (const OutOfBounds& failure) {
                fail(std::string("it is accepted: ") + failure.what());
            } catch (const Failure& failure) {
                const bool value = failure.status() == CATENA_E_VALUE;  // only numbers are wrong
                if (!explains(f_, failure.what()) || (world_.runs() != before && !value))
                    fail(std::string("expected \"[") + f_.name +
                         "] ...\" before any kernel runs, got \"" + failure.what() + "\"");
                refused = true;
            }
        }
        if (refused) report_.pass(check);
        else
            report_.skip(check,
                         std::string("it accepts ") + what + ", and reads only within its inputs");
    }

    // Tries dtypes that no row has, for one input and for all inputs of its type variable.
    void dtypes() {
        if ((f_.flags & CATENA_FUNCTION_VIEW) != 0)
            return report_.skip(Check::wrong_dtype, "a view: it accepts every dtype");
        Sample sample = make_sample(world_, f_, example_, settings_.seed);
        const TypeVars vars(f_);
        Exam exam(world_, f_, sample, report_, settings_);
        bool refused = false;
        for (std::size_t i = 0; i < sample.x.size(); ++i) {
            if (!sample.x[i]) continue;
            for (const catena_dtype d :
                 {dtype_of<std::uint16_t>(), dtype_of<std::int16_t>(), dtype_of<bool>(),
                  dtype_of<std::int32_t>(), dtype_of<float>()})
                for (const bool together : {false, true}) {
                    Arrays x = sample.x;
                    for (std::size_t k = 0; k < x.size(); ++k)
                        if (x[k] && (k == i || (together && vars.input(k) == vars.input(i))))
                            x[k] = Array::constant(x[k].shape(), d, 1);
                    if (has_row(x)) continue;
                    refused = true;
                    exam.step(Check::wrong_dtype, plugin::text_of(d),
                              [&] { return refuse(exam, x); });
                }
        }
        if (!refused && f_.compose != nullptr)
            report_.skip(Check::wrong_dtype, "a composition: its parts accept every dtype");
    }
    bool has_row(const Arrays& x) const {
        if (f_.compose != nullptr) try {
                world_.infer(f_.name, x, example_.attrs.list());
                return true;
            } catch (const Failure&) {
                // Its calls refuse these dtypes; kernels may accept them.
            }
        return std::ranges::any_of(
            world_.kernels(f_.name, CATENA_PHASE_FORWARD),
            [&](const catena_kernel* k) { return fits(f_, *k, metas_of(x), {}); });
    }
    std::string refuse(Exam& exam, const Arrays& x) const {
        const std::size_t before = world_.runs();
        try {
            exam.forward(x);
        } catch (const Failure& failure) {
            return explains(f_, failure.what()) && world_.runs() == before
                       ? std::string()
                       : std::string("got \"") + failure.what() + "\"";
        }
        return "it was accepted";
    }

    World& world_;
    const catena_function& f_;
    const Example example_;
    Report& report_;
    const Settings& settings_;
};

}  // namespace

void check_shapes(World& world, const catena_function& f, const Example& example, Report& report,
                  const Settings& settings) {
    ShapeChecks(world, f, example, report, settings).run();
}

}  // namespace catena::testing::detail
