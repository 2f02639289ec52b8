// What every function must fulfil, checked from one example: the same numbers from every instruction
// set, any number of threads and both request kinds, gradients against finite differences, every set
// of targets, and the composed gradient against the kernel's.
#pragma once

#include <cmath>
#include <cstdio>

#include "catena/testing/world.hpp"

namespace catena::testing {

struct Tolerance {
    double relative = 1e-5;
    double absolute = 1e-6;
};

// Empty if all elements agree (NaN with NaN), else what differs first.
inline std::string compare(const Array& got, const Array& expected, Tolerance tolerance) {
    if (got.shape() != expected.shape())
        return "shape: expected " + plugin::text_of(plugin::Shape(expected.shape())) + ", got " +
               plugin::text_of(plugin::Shape(got.shape()));
    for (std::int64_t i = 0; i < got.size(); ++i) {
        const double g = got.at(i);
        const double e = expected.at(i);
        if (std::isnan(g) && std::isnan(e)) continue;
        if (g == e) continue;
        if (!(std::abs(g - e) <= tolerance.absolute + tolerance.relative * std::abs(e))) {
            char text[160];
            std::snprintf(text, sizeof text, "element %lld: expected %.9g, got %.9g",
                          static_cast<long long>(i), e, g);
            return text;
        }
    }
    return {};
}

// One call of a function. gy, where given, is for the first output.
struct Case {
    std::string function;
    std::vector<Array> inputs;  // float64 where floating
    Attrs attrs = {};
    double step = 1e-4;  // of finite differences
    Tolerance float32 = {1e-4, 1e-5};
    Tolerance float64 = {1e-9, 1e-10};
    Tolerance differences = {1e-5, 1e-6};
    bool train = true;
};

namespace detail {

inline std::vector<Array> converted(const std::vector<Array>& arrays, catena_dtype dtype) {
    std::vector<Array> result;
    for (const Array& a : arrays) result.push_back(a && a.floating() ? a.to(dtype) : a);
    return result;
}

class Checker {
public:
    Checker(World& world, const Case& example) : world_(world), case_(example) {}

    std::string run() {
        try {
            forward();
            const catena_function& f = world_.function(case_.function);
            if (problems_.empty() && (f.flags & CATENA_FUNCTION_NOT_DIFFERENTIABLE) == 0)
                backward();
        } catch (const std::exception& e) {
            problem("exception", e.what());
        }
        return problems_;
    }

private:
    void problem(const std::string& where, const std::string& what) {
        if (!what.empty()) problems_ += case_.function + ": " + where + ": " + what + "\n";
    }
    static std::string label(const char* isa, catena_dtype dtype, const char* what) {
        return std::string(what) + " " + plugin::text_of(dtype) + " '" + isa + "'";
    }
    std::vector<Array> call(const std::vector<Array>& x, const Options& options) {
        world_.drawn = 0;
        return world_.forward(case_.function, x, case_.attrs, options);
    }

    template <class Body>
    void each_kernel(const Body& body) {
        for (const catena_dtype dtype : {dtype_of<float>(), dtype_of<double>()})
            for (const char* isa : world_.isas(case_.function)) {
                Options options;
                options.isa = isa;
                options.train = case_.train;
                body(options, dtype, dtype.bits == 32 ? case_.float32 : case_.float64);
            }
    }

    void forward() {
        Options plain;
        plain.train = case_.train;
        reference_ = call(case_.inputs, plain);
        each_kernel([&](Options options, catena_dtype dtype, Tolerance tolerance) {
            const auto x = converted(case_.inputs, dtype);
            const auto y = call(x, options);
            for (std::size_t i = 0; i < y.size(); ++i)
                problem(label(options.isa, dtype, "forward"),
                        compare(y[i], reference_[i], tolerance));
            options.threads = 3;
            problem(label(options.isa, dtype, "threads"),
                    call(x, options) == y ? "" : "other bits");
            options.threads = 1;
            options.add = true;
            const auto sum = call(x, options);
            for (std::size_t i = 0; i < world_.function(case_.function).n_outputs; ++i)
                if (sum[i].floating())
                    problem(label(options.isa, dtype, "add"),
                            compare(sum[i], plus_one(y[i]), tolerance));
        });
    }

    static Array plus_one(Array a) {
        for (std::int64_t i = 0; i < a.size(); ++i) a.set(i, a.at(i) + 1);
        return a;
    }

    // d/dx of sum(gy * y), by central differences in float64.
    Array differences(std::size_t input, const std::vector<Array>& gy) {
        std::vector<Array> x = case_.inputs;
        Array result(x[input].shape(), dtype_of<double>());
        Options options;
        options.train = case_.train;
        const auto value = [&](std::int64_t i, double at) {
            x[input].set(i, at);
            const auto y = call(x, options);
            double sum = 0;
            for (std::size_t k = 0; k < gy.size(); ++k)
                for (std::int64_t j = 0; gy[k] && j < gy[k].size(); ++j)
                    sum += gy[k].at(j) * y[k].at(j);
            return sum;
        };
        for (std::int64_t i = 0; i < x[input].size(); ++i) {
            const double center = x[input].at(i);
            const double h = case_.step;
            const double up = value(i, center + h) - value(i, center - h);
            const double far = value(i, center + 2 * h) - value(i, center - 2 * h);
            value(i, center);
            result.set(i, (8 * up - far) / (12 * h));
        }
        return result;
    }

    void backward() {
        std::vector<Array> gy;
        const catena_function& f = world_.function(case_.function);
        for (std::size_t i = 0; i < f.n_outputs; ++i)
            gy.push_back(reference_[i].floating() && (f.outputs[i]->flags & CATENA_PORT_HIDDEN) == 0
                             ? Array::random<double>(reference_[i].shape(), 77)
                             : Array());
        std::vector<Array> expected(case_.inputs.size());
        std::uint64_t all = 0;
        for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
            const auto flags = f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->flags;
            if (!case_.inputs[i] || !case_.inputs[i].floating() ||
                (flags & CATENA_PORT_NON_DIFFERENTIABLE) != 0)
                continue;
            expected[i] = differences(i, gy);
            all |= std::uint64_t{1} << i;
        }
        if (f.gradient != nullptr) {
            Options options;
            options.train = case_.train;
            const auto gx =
                world_.gradient(case_.function, case_.inputs, reference_, gy, case_.attrs, options);
            for (std::size_t i = 0; i < gx.size(); ++i)
                if (expected[i])
                    problem("gradient of input " + std::to_string(i),
                            compare(gx[i], expected[i], case_.differences));
        }
        if (!has_backward_kernel()) return;
        each_kernel([&](Options options, catena_dtype dtype, Tolerance tolerance) {
            kernel(options, dtype, tolerance, gy, expected, all);
        });
    }
    bool has_backward_kernel() const {
        for (const catena_kernel* k : world_.kernels())
            if (case_.function == k->function && k->phase == CATENA_PHASE_BACKWARD) return true;
        return false;
    }

    void kernel(Options options, catena_dtype dtype, Tolerance tolerance,
                const std::vector<Array>& gy64, const std::vector<Array>& expected,
                std::uint64_t all) {
        const auto x = converted(case_.inputs, dtype);
        const auto y = call(x, options);
        const auto gy = converted(gy64, dtype);
        const auto back = [&] {
            return world_.backward(case_.function, x, y, gy, case_.attrs, options);
        };
        const auto gx = back();
        const Tolerance loose = dtype.bits == 32 ? tolerance : case_.differences;
        for (std::size_t i = 0; i < gx.size(); ++i)
            if (expected[i])
                problem(label(options.isa, dtype, "backward of input ") + " " + std::to_string(i),
                        compare(gx[i], expected[i], loose));
        options.threads = 3;
        problem(label(options.isa, dtype, "backward threads"), back() == gx ? "" : "other bits");
        options.threads = 1;
        for (std::uint64_t targets = 1; targets <= all; ++targets) {
            if ((targets & ~all) != 0) continue;
            for (const bool add : {false, true}) {
                options.targets = targets;
                options.add = add;
                const auto part = back();
                for (std::size_t i = 0; i < part.size(); ++i)
                    if (part[i])
                        problem(label(options.isa, dtype, add ? "backward add" : "targets"),
                                compare(part[i], add ? plus_one(gx[i]) : gx[i], tolerance));
            }
        }
    }

    World& world_;
    const Case& case_;
    std::vector<Array> reference_;
    std::string problems_;
};

}  // namespace detail

// Empty if all is well, else one line for each problem.
inline std::string check(World& world, const Case& example) {
    return detail::Checker(world, example).run();
}

}  // namespace catena::testing
