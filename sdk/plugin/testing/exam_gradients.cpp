// Checks of gradients.
#include "testing/exam.hpp"

namespace catena::testing::detail {
namespace {

constexpr std::int64_t most_first = 400;
constexpr std::int64_t most_second = 60;

bool wide(const Array& a) { return a.dtype().bits == 64; }

// Returns subsets of `all`: every one if there are few ports, else single ports and complements.
std::vector<std::uint64_t> subsets(std::uint64_t all) {
    std::vector<std::uint64_t> sets;
    if (__builtin_popcountll(all) <= 5) {
        for (std::uint64_t set = all; set != 0; set = (set - 1) & all) sets.push_back(set);
        return sets;
    }
    for (std::uint64_t rest = all; rest != 0; rest &= rest - 1) {
        const std::uint64_t one = rest & (~rest + 1);
        sets.push_back(one);
        sets.push_back(all & ~one);
    }
    return sets;
}

// Checks of gradients: finite differences, sets of targets, missing gradients of outputs.
class GradientChecks {
public:
    explicit GradientChecks(Exam& exam) : e_(exam), given_(exam.base()) {
        for (std::size_t i = 0; i < e_.sample.x.size(); ++i)
            if (takes_gradient(e_.f, i, e_.sample.x[i])) targets_.push_back(i);
        for (std::size_t i = 0; i < e_.f.n_outputs; ++i)
            if (given_.gy[i]) sources_.push_back(i);
        for (const Array& a : e_.sample.x) exact_ = exact_ && (!a || !a.floating() || wide(a));
        for (const Array& a : e_.sample.y) exact_ = exact_ && (!a || !a.floating() || wide(a));
    }

    // Compares the gradient with finite differences of sum(gy * y).
    void first_order() {
        const auto value = [&](const Arrays& x) { return dot(given_.gy, e_.forward(x)); };
        // Check::backward compares with the composition if there is one.
        const Check check = e_.composed() ? Check::gradient : Check::backward;
        if (reads_unretained()) return;
        const Arrays gx =
            result_of(check, "the gradient", [&] { return e_.exact_gradient(given_); });
        if (gx.empty()) return;
        Measured measured;
        for (const std::size_t i : targets_)
            compare_to(check, "of " + input_name(e_.f, i), gx[i], given_.x, i, most_first,
                       differences(), value, measured);
        settle(check, measured);
    }
    // Does the same for sum(ggx * gradient(x, gy)), with respect to x and gy.
    void second_order() {
        Arrays args = given_.x;
        args.insert(args.end(), given_.gy.begin(), given_.gy.end());
        const std::size_t n = given_.x.size();
        Arrays ggx(n);
        for (const std::size_t i : targets_)
            ggx[i] = Array::random<double>(given_.x[i].shape(), 33 + static_cast<unsigned>(i))
                         .to(given_.x[i].dtype());
        const auto value = [&](const Arrays& at) {
            Given g;
            g.x.assign(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(n));
            g.gy.assign(at.begin() + static_cast<std::ptrdiff_t>(n), at.end());
            g.y = e_.forward(g.x);
            return dot(ggx, e_.gradient(g));
        };
        const auto second = [&] {
            Options options;
            options.train = e_.sample.train;
            return e_.world.second(e_.f.name, given_.x, given_.y, given_.gy, ggx,
                                   e_.sample.example.attrs.list(), options);
        };
        const Arrays got = result_of(Check::second_order, "the gradient of the gradient", second);
        if (got.empty()) return;
        Measured measured;
        for (const std::size_t i : targets_)
            compare_to(Check::second_order, "of " + input_name(e_.f, i), got[i], args, i,
                       most_second, differences().times(10), value, measured);
        for (const std::size_t i : sources_)
            compare_to(Check::second_order,
                       std::string("of the gradient of ") + e_.f.outputs[i]->name, got[n + i], args,
                       n + i, most_second, differences().times(10), value, measured);
        settle(Check::second_order, measured);
    }
    // These check subsets of targets and missing gradients, in the composition and in a kernel.
    void composition() {
        const auto gradient = [&](const Given& g, const Options& options) {
            return e_.gradient(g, options);
        };
        masks("composed gradient", given_, settings().float64.times(10), false, gradient);
        missing("composed gradient", given_, settings().float64.times(10), gradient);
        if (sources_.size() > 1)
            e_.step(Check::missing_gy, "composed gradient without any", [&] {
                Given none = given_;
                for (Array& g : none.gy) g = Array();
                Arrays zero(none.x.size());
                for (const std::size_t i : targets_) zero[i] = zeros_like(none.x[i]);
                return e_.compare(e_.gradient(none), zero, {0, 0}, CATENA_PHASE_BACKWARD);
            });
    }
    void kernel(const Use& u) {
        const auto run = [&](const Given& g, const Options& options) {
            return e_.run(u, g, options);
        };
        masks(u.label, u.given, u.tolerance, u.flag(CATENA_KERNEL_ADDS), run);
        missing(u.label, u.given, u.tolerance, run);
        e_.step(Check::retained, u.label, [&] {
            Options options;
            options.unretained = Unretained::garbage;
            return e_.compare(e_.run(u, u.given, options), u.result, u.tolerance,
                              CATENA_PHASE_BACKWARD);
        });
    }

private:
    using Run = std::function<Arrays(const Given&, const Options&)>;
    // The outcome of finite differences for one gradient.
    struct Measured {
        bool any = false;
        std::string missing;  // the last argument without a finite difference
    };

    const Settings& settings() const { return e_.settings; }
    double step() const { return exact_ ? settings().step : 1e-2; }
    // Returns an empty result if body() throws, which fails the check.
    template <class Body>
    Arrays result_of(Check check, const std::string& what, const Body& body) {
        Arrays result;
        const auto keep = [&] {
            result = body();
            return "";
        };
        e_.step(check, what, keep, false);
        return result;
    }
    // Returns the names of a set of ports.
    template <class Name>
    static std::string words(const std::vector<std::size_t>& ports, std::uint64_t set,
                             const Name& name) {
        std::string list;
        for (const std::size_t i : ports)
            if (i >= 64 || (set >> i & 1) != 0) list += (list.empty() ? "" : ", ") + name(i);
        return list;
    }
    std::string inputs(std::uint64_t set) const {
        return words(targets_, set, [&](std::size_t i) { return input_name(e_.f, i); });
    }
    std::string outputs(std::uint64_t set) const {
        return words(sources_, set,
                     [&](std::size_t i) { return std::string(e_.f.outputs[i]->name); });
    }
    // Returns the tolerance of finite differences, which is large unless all floats are float64.
    Tolerance differences() const {
        return exact_ ? settings().differences : Tolerance{2e-2, 2e-2};
    }
    bool reads_unretained() {
        std::string read;
        if (e_.gradient_of_parts()) return false;  // the graph keeps what the parts need
        e_.step(Check::retained, e_.composed() ? "composed gradient" : "backward", [&] {
            read = e_.reads_unretained(
                e_.f.retain_x, e_.f.retain_y, given_, settings().float64.times(10),
                [&](const Options& options) { return e_.exact_gradient(given_, options); });
            return read;
        });
        return !read.empty();
    }
    void compare_to(Check check, const std::string& what, const Array& got, const Arrays& args,
                    std::size_t which, std::int64_t most, Tolerance tolerance,
                    const ScalarFunction& value, Measured& measured) {
        e_.step(
            check, what,
            [&] {
                std::int64_t compared = 0;
                const Array slopes = testing::differences(args, which, step(), most, value);
                const std::string text = compare_slopes(got, slopes, tolerance, compared);
                if (compared > 0) measured.any = true;
                else if (slopes.size() > 0) measured.missing = what;
                return text;
            },
            false);
    }
    // A check passes only if a gradient was measured.
    void settle(Check check, const Measured& measured) {
        if (!measured.missing.empty())
            e_.report.skip(check, "no finite difference could be taken " + measured.missing +
                                      ": kinks, jumps or too few digits");
        else if (measured.any) e_.report.pass(check);
    }
    // Checks that a subset of the gradients has the same values as when all are computed.
    void masks(const std::string& who, const Given& g, Tolerance tolerance, bool adds,
               const Run& run) {
        std::uint64_t all = 0;  // of the first 64 inputs; the others are always wanted
        for (const std::size_t i : targets_)
            if (i < 64) all |= std::uint64_t{1} << i;
        const Arrays complete =
            result_of(adds && !settings().wants(Check::targets) ? Check::add : Check::targets, who,
                      [&] { return run(g, Options()); });
        if (complete.empty()) return;
        for (const std::uint64_t set : subsets(all))
            for (const bool add : {false, true}) {
                if (add && !adds) continue;
                const auto gives_the_same = [&] {
                    Arrays expected = complete;
                    for (std::size_t i = 0; i < expected.size(); ++i)
                        if (i < 64 && (set >> i & 1) == 0) expected[i] = Array();
                    if (add) expected = plus_one(expected, expected.size());
                    Options options;
                    options.targets = set;
                    options.add = add;
                    const std::string text =
                        e_.compare(run(g, options), expected, tolerance, CATENA_PHASE_BACKWARD);
                    return add ? asked_to_add(text) : text;
                };
                e_.step(add ? Check::add : Check::targets,
                        who + " for the gradients of " + inputs(set), gives_the_same);
            }
    }
    void missing(const std::string& who, const Given& g, Tolerance tolerance, const Run& run) {
        std::uint64_t all = 0;
        for (const std::size_t i : sources_) all |= std::uint64_t{1} << i;
        for (const std::uint64_t set : subsets(all)) {
            if (set == all) continue;  // a host makes no such call
            e_.step(Check::missing_gy, who + " without that of " + outputs(set), [&] {
                Given without = g;
                Given zero = g;
                for (const std::size_t i : sources_)
                    if ((set >> i & 1) != 0) {
                        without.gy[i] = Array();
                        zero.gy[i] = zeros_like(g.gy[i]);
                    }
                return e_.compare(run(without, Options()), run(zero, Options()), tolerance,
                                  CATENA_PHASE_BACKWARD);
            });
        }
    }

    Exam& e_;
    Given given_;
    std::vector<std::size_t> targets_;
    std::vector<std::size_t> sources_;
    bool exact_ = true;  // all floats are float64
};

}  // namespace

void check_sample(World& world, const catena_function& f, const Sample& sample, Report& report,
                  const Settings& settings, bool thorough) {
    Exam exam(world, f, sample, report, settings);
    const std::vector<Use> forward = exam.uses(CATENA_PHASE_FORWARD);
    if (!check_values(exam, forward, Check::dtypes)) return;
    for (const Use& u : forward) check_behaviour(exam, u);
    if (!exam.differentiable()) return;
    GradientChecks gradients(exam);
    gradients.first_order();
    if (report.failed(Check::retained)) return;
    if (thorough && exam.composed()) {
        gradients.second_order();
        gradients.composition();
    }
    const std::vector<Use> backward = exam.uses(CATENA_PHASE_BACKWARD);
    if (!check_values(exam, backward, Check::backward)) return;
    for (const Use& u : backward) {
        check_behaviour(exam, u);
        if (thorough && u.kernel != nullptr) gradients.kernel(u);
    }
}

}  // namespace catena::testing::detail
