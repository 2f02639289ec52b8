// The steps of check().
#include "catena/testing/check.hpp"

#include <algorithm>
#include <cmath>

#include "testing/exam.hpp"

namespace catena::testing {

namespace {

using namespace detail;

// The inputs in the widest dtypes that the function takes, if it does not take them as they are.
std::vector<Array> fitted(World& world, const catena_function& f, std::vector<Array> x,
                          const OwnedAttrs& attrs) {
    const TypeVars vars(f);
    std::optional<std::vector<Array>> widest;
    for (const Row& row : rows_of(world, f)) {
        std::vector<Array> other = x;
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
            if (alike && !widest && gives_row(world, f, metas_of(other), attrs, row))
                widest = std::move(other);
        } catch (const Failure&) {
            // The call itself will say it.
        }
    }
    return widest.value_or(x);
}

// An input of that shape, with numbers of the same range.
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

// Whether other numbers of the same range do as well: shapes can be tried with those alone.
bool takes_any(World& world, const catena_function& f, const Sample& sample) {
    for (const Array& a : sample.x)
        if (a && a.size() == 0) return false;  // no range
    try {
        const Sample other = make_sample(world, f, sample.example, 1, sample.train);
        return !has_nan(other.y);
    } catch (const Failure&) {
        return false;
    }
}

// Compares the outputs that the case has expected values for; the text names the first that differs.
std::string compare_outputs(const catena_function& f, const std::vector<Array>& y,
                            const std::vector<Array>& expected, Tolerance tolerance) {
    if (expected.size() > y.size())
        return "expected " + std::to_string(expected.size()) + " outputs, got " +
               std::to_string(y.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const std::string text = expected[i] ? compare(y[i], expected[i], tolerance) : "";
        if (!text.empty()) return result_name(f, CATENA_PHASE_FORWARD, i) + ": " + text;
    }
    return {};
}

// Empty, or how the call was not refused as expected.
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
        std::vector<Array> given = complete(f, c.inputs);
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
        // Every kernel, of every dtype, is measured by these numbers below.
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
