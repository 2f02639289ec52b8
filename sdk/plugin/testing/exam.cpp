// Runs one call in every dtype, with every kernel.
#include "testing/exam.hpp"

#include <algorithm>
#include <cmath>

namespace catena::testing {

bool Settings::wants(Check check) const {
    if (!only || check == *only) return true;
    // If results differ from call to call, the other checks are meaningless.
    if (check == Check::determinism) return true;
    // Backward kernels are compared with the composition; some kernels serve only small calls.
    if (*only == Check::backward) return check == Check::gradient;
    return *only == Check::reached &&
           (check == Check::empty || check == Check::size_one || check == Check::zero_d);
}
bool Settings::wants_kernels(int phase) const {
    return !only || (info(*only).phases >> phase & 1) != 0;
}

namespace detail {

std::optional<Check> watcher_of(const std::exception& e) {
    if (dynamic_cast<const OutOfBounds*>(&e) != nullptr) return Check::guard;
    if (dynamic_cast<const InputChanged*>(&e) != nullptr) return Check::inputs;
    return std::nullopt;
}
bool explains(const catena_function& f, const std::string& text) {
    const std::string start = std::string("[") + f.name + "] ";
    return text.starts_with(start) && text.size() > start.size() + 4;
}
Arrays plus_one(Arrays arrays, std::size_t n) {
    for (std::size_t k = 0; k < n && k < arrays.size(); ++k)
        for (std::int64_t i = 0; arrays[k] && arrays[k].floating() && i < arrays[k].size(); ++i)
            arrays[k].set(i, arrays[k].at(i) + 1);
    return arrays;
}
std::string asked_to_add(const std::string& text) {
    return text.empty() ? text : "asked to add to what is there, which is 1: " + text;
}

void Exam::step(Check check, const std::string& what, const std::function<std::string()>& body,
                bool decides) {
    if (!settings.wants(check)) return;
    now_doing(f.name, std::string(info(check).name) + " " + what + " of " + sample.text);
    const std::string where = what + " of \"" + sample.text + "\": ";
    try {
        const std::string problem = body();
        if (!problem.empty()) report.fail(check, where + problem);
        else if (decides) report.pass(check);
    } catch (const std::exception& e) {
        caught(e, check, what);
    }
}
void Exam::caught(const std::exception& e, Check check, const std::string& what) {
    const std::string where = '"' + sample.text + "\": ";
    // The text of a violation names the kernel.
    if (const auto watcher = watcher_of(e))
        report.fail(settings.blamed(*watcher), where + e.what());
    else report.fail(check, what + " of " + where + e.what());
}

Arrays Exam::forward(const Arrays& x, Options options) {
    options.train = sample.train;
    world.drawn = 0;
    return world.forward(f.name, x, sample.example.attrs.list(), options);
}
Arrays Exam::gradient(const Given& g, Options options) {
    options.train = sample.train;
    world.drawn = 0;
    return world.gradient(f.name, g.x, g.y, g.gy, sample.example.attrs.list(), options);
}
Arrays Exam::backward(const Given& g, Options options) {
    options.train = sample.train;
    return detail::backward(world, f, g, sample.example.attrs.list(), options, 0);
}
Arrays Exam::run(const Use& use, const Given& g, Options options) {
    options.kernel = use.kernel;
    options.composition = use.kernel == nullptr;
    if (use.forward()) return forward(g.x, options);
    if (options.composition) return gradient(g, options);
    world.drawn = 0;
    return backward(g, options);
}

bool Exam::differentiable() const {
    if ((f.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) != 0 || !settings.gradients) return false;
    if (report.failed(Check::retained)) return false;  // backward would crash
    bool in = false;
    bool out = false;
    for (std::size_t i = 0; i < sample.x.size(); ++i) in = in || takes_gradient(f, i, sample.x[i]);
    for (std::size_t i = 0; i < f.n_outputs; ++i) out = out || gives_gradient(f, i, sample.y[i]);
    return in && out;
}
// Returns gradients to pass to backward, one for each output that has one.
Arrays Exam::draw_gy(const Arrays& y) const {
    Arrays gy;
    for (std::size_t i = 0; i < f.n_outputs; ++i)
        gy.push_back(
            gives_gradient(f, i, y[i])
                ? Array::random<double>(y[i].shape(), settings.seed + 77 + static_cast<unsigned>(i))
                      .to(y[i].dtype())
                : Array());
    return gy;
}
Arrays Exam::exact_gradient(const Given& g, Options options) {
    return composed() ? gradient(g, options) : backward(g, options);
}

std::string Exam::compare(const Arrays& got, const Arrays& expected, Tolerance tolerance,
                          int phase) const {
    return testing::compare(got, expected, tolerance,
                            [&](std::size_t i) { return result_name(f, phase, i); });
}
std::string Exam::same_bits(const Arrays& got, const Arrays& expected, int phase) const {
    if (got == expected) return {};
    const std::string text = compare(got, expected, {0, 0}, phase);
    return text.empty() ? "other bits" : text;
}
std::string Exam::alike(const Use& u, const Arrays& got) const {
    return u.flag(CATENA_KERNEL_DETERMINISTIC) ? same_bits(got, u.result, u.phase)
                                               : compare(got, u.result, u.tolerance, u.phase);
}
bool Exam::repeats(const Use& u) {
    bool same = false;
    step(Check::determinism, u.label, [&] {
        std::string text = alike(u, run(u, u.given, Options()));
        if (text.empty() && world.drawn > 0 && (f.flags & CATENA_FUNCTION_STOCHASTIC) == 0)
            text = "it draws random numbers and is not STOCHASTIC";
        same = text.empty();
        return text;
    });
    return same;
}

std::string Exam::reads_unretained(std::uint64_t kept_x, std::uint64_t kept_y, const Given& g,
                                   Tolerance tolerance,
                                   const std::function<Arrays(const Options&)>& run) {
    std::vector<std::pair<int, std::string>> ports;
    for (std::size_t i = 0; i < g.x.size(); ++i)
        if (g.x[i] && !retains(kept_x, i, f.n_inputs))
            ports.emplace_back(static_cast<int>(i), input_name(f, i) + " (not in retain_x)");
    for (std::size_t i = 0; i < f.n_outputs && i < g.y.size(); ++i)
        if (g.y[i] && (kept_y >> i & 1) == 0)
            ports.emplace_back(static_cast<int>(g.x.size() + i),
                               f.outputs[i]->name + std::string(" (not in retain_y)"));
    if (ports.empty()) return {};
    Options options;
    options.unretained = Unretained::given;
    const Arrays honest = run(options);
    const auto differs = [&](Unretained how, int port) {
        options.unretained = how;
        options.spoilt = port;
        try {
            return !testing::compare(run(options), honest, tolerance).empty();
        } catch (const Failure&) {
            return true;
        }
    };
    // If results differ from call to call anyway, the comparison is meaningless.
    if (!differs(Unretained::garbage, -1) || differs(Unretained::given, -1)) return {};
    std::string names;
    for (const auto& [port, name] : ports)
        if (differs(Unretained::garbage, port)) names += (names.empty() ? "" : ", ") + name;
    return "it reads what is not retained: " + names;
}
std::vector<Use> Exam::uses(int phase) {
    std::vector<Use> result;
    if (!settings.wants_kernels(phase)) return result;
    for (const catena_kernel* k : world.kernels(f.name, phase)) {
        if (settings.device != nullptr && std::strcmp(settings.device, k->device) != 0) continue;
        each_row(*k, vars.size(), [&](const Row& row) { use(k, phase, row, result); });
    }
    const bool host = settings.device == nullptr || std::strcmp(settings.device, "cpu") == 0;
    if (host && world.under_test(f))
        for (const Row& row : rows_of_composition(f)) use(nullptr, phase, row, result);
    return result;
}

namespace {

// Returns the array in another dtype. If that is an integer, floats become one of a few integers.
Array convert(const Array& a, catena_dtype dtype) {
    if (!a || plugin::same(a.dtype(), dtype)) return a;
    Array b(a.shape(), dtype);
    const bool whole = a.floating() && !is_floating(dtype);
    std::vector<double> values = a.numbers();
    if (whole)
        for (double& v : values) {
            v = std::round(4 * v);
            if (dtype.code != CATENA_CODE_INT) v = std::abs(v);
        }
    b.set_numbers(values);
    return b;
}

}  // namespace

void Exam::use(const catena_kernel* k, int phase, Row row, std::vector<Use>& result) {
    Use u;
    u.kernel = k;
    u.phase = phase;
    const auto name = [&] {
        u.row = text_of(row);
        u.label = k != nullptr ? label_of(world, *k, u.row)
                               : std::string(u.forward() ? "forward " : "backward ") + u.row +
                                     " 'composition' of " + world.origin(f);
    };
    name();
    u.tolerance = tolerance(row);
    for (std::size_t i = 0; i < sample.x.size(); ++i)
        u.given.x.push_back(convert(sample.x[i], row[vars.input(i)]));
    now_doing(f.name, u.label + " of " + sample.text);
    try {
        if (!fits(u, row)) {
            if (k != nullptr) report.missed.try_emplace({k, u.row}, unfit_);
            return;
        }
        name();  // with the dtypes of the outputs
        if (!u.forward() && !prepare_backward(u)) return;
        if (!u.forward() && k != nullptr) {
            const bool own = k->variant != nullptr;
            const std::string read = reads_unretained(
                own ? k->retain_x : f.retain_x, own ? k->retain_y : f.retain_y, u.given,
                u.tolerance, [&](const Options& options) { return run(u, u.given, options); });
            if (!read.empty()) {
                report.fail(Check::retained, u.label + " of \"" + sample.text + "\": " + read);
                return;
            }
        }
        u.result = run(u, u.given, Options());
        if (k != nullptr) report.reached.emplace(k, u.row);
        result.push_back(std::move(u));
    } catch (const NoKernel&) {
        // The kernel does not support this call.
    } catch (const std::exception& e) {
        caught(e, u.forward() ? Check::dtypes : Check::backward, u.label);
    }
}
// Whether the function gives outputs of this row, and not of another. If not, unfit_ says why.
bool Exam::fits(const Use& u, Row& row) {
    try {
        unfit_.clear();
        return gives_row(world, f, u.given.x, sample.example.attrs, row, &unfit_,
                         u.kernel == nullptr);
    } catch (const Failure& e) {
        unfit_ = e.what();
        if (e.status() == CATENA_E_DTYPE) return false;
        throw;
    }
}
bool Exam::prepare_backward(Use& u) {
    bool wanted = false;
    for (std::size_t i = 0; i < u.given.x.size(); ++i)
        wanted = wanted || takes_gradient(f, i, u.given.x[i]);
    if (!wanted) return false;
    auto& [y, gy] = outputs_[u.row];
    if (y.empty()) {
        y = forward(u.given.x);
        gy = draw_gy(y);
    }
    u.given.y = y;
    u.given.gy = gy;
    return true;
}
const Arrays& Exam::expected(const Use& u) {
    auto& [y, gx] = expected_[u.row];
    Arrays& result = u.forward() ? y : gx;
    if (!result.empty()) return result;
    Given wide;
    for (std::size_t i = 0; i < sample.x.size(); ++i)
        wide.x.push_back(sample.x[i] ? u.given.x[i].to(sample.x[i].dtype()) : Array());
    Options options;
    options.composition = true;
    if (y.empty()) y = forward(wide.x, options);
    if (u.forward()) return y;
    wide.y = y;
    for (std::size_t i = 0; i < u.given.gy.size(); ++i)
        wide.gy.push_back(u.given.gy[i] ? u.given.gy[i].to(y[i].dtype()) : Array());
    return gx = exact_gradient(wide);
}
// Returns the tolerance of the row's float dtype with the fewest digits.
Tolerance Exam::tolerance(const Row& row) const {
    Tolerance t = settings.float64;
    const auto raise = [&](const Tolerance& to) {
        t = {std::max(t.relative, to.relative), std::max(t.absolute, to.absolute)};
    };
    for (const catena_dtype d : row) {
        if (d.code == CATENA_CODE_BFLOAT) raise(settings.bfloat16);
        else if (d.code == CATENA_CODE_FLOAT && d.bits == 16) raise(settings.float16);
        else if (d.code == CATENA_CODE_FLOAT && d.bits == 32) raise(settings.float32);
    }
    return t;
}

}  // namespace detail
}  // namespace catena::testing
