// Gradient checks. Numerical gradients and errors are computed on the host in float64.
#include <catena/core/grad.hpp>
#include <catena/gradient_check.hpp>

#include <catena/array_text.hpp>
#include <catena/fail.hpp>
#include <catena/random.hpp>

#include <fmt/ranges.h>

#include <cmath>
#include <exception>
#include <numeric>

namespace catena::gradient_check {
namespace {

using Values = std::vector<double>;

double dot(const Values& a, const Values& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

Array to_array(const Values& values, const Array& like) {
    return Array::from(values, like.shape(), like.device()).astype(like.dtype());
}

std::vector<Values> values_of(ArraySpan arrays) {
    std::vector<Values> result;
    for (const Array& array : arrays)
        result.push_back(array ? array.to_vector<double>() : Values());
    return result;
}

// Values of all outputs; and the outputs as a function of a displacement of the inputs.
using Outputs = std::vector<Values>;
using Way = std::function<Arrays(double delta)>;

constexpr int points = 5;

// Throws if element k of output j is not differentiable in the middle of five evenly spaced points.
void check_smooth(const std::array<Outputs, points>& ys, std::size_t j, std::size_t k,
                  const NumericalOptions& options) {
    std::array<double, points> y{};
    int finite = 0;
    for (std::size_t p = 0; p < points; ++p) {
        y[p] = ys[p][j][k];
        finite += std::isfinite(y[p]);
    }
    if (finite == 0) return;
    const auto fail = [&](const std::string& why) {
        catena::fail<NondifferentiableError>(
            "[numerical_grad] outputs[{}], element {}: expected a differentiable point, got {} at "
            "-eps, -eps/2, 0, eps/2, eps with eps {:g}: {}",
            j, k, y, options.eps, why);
    };
    if (finite != points) fail("finite at some alone");
    const auto [least, most] = std::minmax_element(y.begin(), y.end());
    if (*least == *most) return;
    // Fits a parabola by least squares, in the polynomials 1, t, t^2 - 2, orthogonal on -2 ... 2.
    const double mean = (y[0] + y[1] + y[2] + y[3] + y[4]) / 5;
    const double slope = (2 * (y[4] - y[0]) + (y[3] - y[1])) / 10;
    const double bend = (2 * (y[0] - y[2] + y[4]) - (y[1] + y[3])) / 14;
    double square = 0;
    for (int p = 0; p < points; ++p) {
        const double t = p - 2;
        const double residual =
            y[static_cast<std::size_t>(p)] - (mean + slope * t + bend * (t * t - 2));
        square += residual * residual;
    }
    const double residual = std::sqrt(square / points);
    const double allowed = options.diff_atol + options.diff_rtol * (*most - *least);
    if (residual > allowed) {
        fail(fmt::format("{:.3g} off a parabola, allowed {:.3g}", residual, allowed));
    }
}

// Returns d sum(gy * way(delta)) / d delta at 0. center: way(0) or null, for the detection only.
double derivative(const Way& way, const Outputs& gys, const NumericalOptions& options,
                  const Outputs* center) {
    const auto at = [&](double delta) {
        Outputs ys = values_of(way(delta));
        if (ys.size() != gys.size())
            fail<ShapeError>("[numerical_grad] grad_outputs: expected {}, got {}", ys.size(),
                             gys.size());
        for (std::size_t j = 0; j < ys.size(); ++j) {
            if (gys[j].size() <= 1 || gys[j].size() == ys[j].size()) continue;
            fail<ShapeError>("[numerical_grad] grad_outputs[{}]: expected {} elements, got {}", j,
                             ys[j].size(), gys[j].size());
        }
        return ys;
    };
    const bool detect = options.detect_nondifferentiable;
    std::array<Outputs, points> ys;
    ys[0] = at(-options.eps);
    ys[4] = at(options.eps);
    if (detect) {
        ys[1] = at(-options.eps / 2);
        ys[2] = center ? *center : at(0);
        ys[3] = at(options.eps / 2);
    }
    double sum = 0;
    for (std::size_t j = 0; j < gys.size(); ++j) {
        for (std::size_t k = 0; k < ys[0][j].size(); ++k) {
            if (detect) check_smooth(ys, j, k, options);
            if (gys[j].empty()) continue;
            const double gy = gys[j][gys[j].size() == 1 ? 0 : k];
            const double wide = ys[4][j][k] - ys[0][j][k];
            sum += gy * (detect ? (8 * (ys[3][j][k] - ys[1][j][k]) - wide) / 3 : wide);
        }
    }
    return sum / (2 * options.eps);
}

Arrays data_of(VariableSpan variables) {
    Arrays arrays;
    for (const auto& variable : variables) arrays.push_back(variable.data());
    return arrays;
}

// Checks y_grads against the outputs, and replaces an empty one by 1 if its output has one element.
Arrays complete(VariableSpan ys, ArraySpan y_grads) {
    if (ys.size() != y_grads.size())
        fail<ShapeError>("[check_backward] y_grads: expected {}, one for each output, got {}",
                         ys.size(), y_grads.size());
    Arrays result(y_grads.begin(), y_grads.end());
    for (std::size_t j = 0; j < ys.size(); ++j) {
        const Array& y = ys[j].data();
        if (!result[j] && y.size() == 1) result[j] = Array::ones(y.shape(), y.dtype(), y.device());
        if (!result[j] || result[j].shape() != y.shape() || result[j].dtype() != y.dtype())
            fail<ShapeError>("[check_backward] y_grads[{}]: expected {} {}, got {}", j,
                             to_string(y.shape()), name(y.dtype()),
                             result[j] ? to_string(result[j]) : "none");
    }
    return result;
}

// Runs backward from all outputs at once, as from their sum weighted by gys.
void backward_from(VariableSpan ys, VariableSpan gys, bool differentiable) {
    Variables heads;
    Variables grads;
    for (std::size_t j = 0; j < ys.size(); ++j) {
        if (ys[j].creator()) {
            heads.push_back(ys[j]);
            grads.push_back(gys[j]);
        } else if (ys[j].requires_grad()) {  // an output that is an input
            if (differentiable) accumulate(ys[j].node(), gys[j]);
            else accumulate(ys[j].node(), gys[j].data().copy());
        }
    }
    backward(heads, grads, {.enable_double_backprop = differentiable});
}

// Variables, their original values, and the direction along which the derivative is taken.
struct Directions {
    Variables variables;
    Arrays before;
    std::vector<Values> values;
    std::vector<Values> direction;

    void shift(double delta) const {
        for (std::size_t i = 0; i < variables.size(); ++i) {
            Values shifted = values[i];
            for (std::size_t k = 0; k < shifted.size(); ++k) shifted[k] += delta * direction[i][k];
            variables[i].set_data(to_array(shifted, before[i]));
        }
    }
};

Directions make_directions(Variables variables, std::uint64_t seed) {
    Directions d{std::move(variables), {}, {}, {}};
    std::size_t n = 0;
    double square = 0;
    Generator generator(seed);
    for (const auto& variable : d.variables) {
        d.before.push_back(variable.data());
        d.values.push_back(variable.data().to_vector<double>());
        Values& direction = d.direction.emplace_back(d.values.back().size());
        generator.normal(direction);
        square += dot(direction, direction);
        n += direction.size();
    }
    const double least = 0.01 / static_cast<double>(n ? n : 1);
    for (Values& direction : d.direction) {
        for (double& r : direction) r = std::copysign(std::sqrt(0.99 * r * r / square + least), r);
    }
    return d;
}

bool skipped(const Options& options, std::size_t i, const Array& input) {
    return !is_floating(input.dtype()) || (i < options.no_grads.size() && options.no_grads[i]);
}

Array convert(const Array& array, const Options& options) {
    return array && options.dtype && is_floating(array.dtype()) ? array.astype(*options.dtype)
                                                                : array;
}

// Does the work of check_backward(), with params that are converted already.
void check_converted(const VariableFunction& function, ArraySpan inputs, ArraySpan y_grads,
                     const Options& options) {
    Variables xs;
    Variables moved;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        xs.emplace_back(convert(inputs[i], options).copy());
        if (!skipped(options, i, inputs[i])) moved.push_back(xs.back());
    }
    moved.insert(moved.end(), options.params.begin(), options.params.end());
    Arrays gys;
    for (const Array& gy : y_grads) gys.push_back(convert(gy, options));

    Variables ys = function(xs);
    gys = complete(ys, gys);
    backward_from(ys, Variables(gys.begin(), gys.end()), false);
    const Outputs center = values_of(data_of(ys));
    ys.clear();

    for (std::size_t i = 0; i < xs.size(); ++i) {
        if (skipped(options, i, inputs[i]) && xs[i].grad())
            fail<CheckError>("[check_backward] inputs[{}]: expected no gradient, got one", i);
    }
    const Directions directions = make_directions(moved, options.seed);
    double computed = 0;
    Arrays grads;
    for (std::size_t i = 0; i < moved.size(); ++i) {
        grads.push_back(moved[i].grad());
        if (grads[i]) computed += dot(grads[i].to_vector<double>(), directions.direction[i]);
    }
    const auto details = [&] {
        const auto list = [](ArraySpan arrays) {
            std::string text;
            for (const Array& array : arrays) text += "\n    " + to_string(array);
            return text;
        };
        return fmt::format(
            "\n  inputs and params:{}\n  y_grads:{}\n  gradients:{}\n  direction: {}",
            list(directions.before), list(gys), list(grads), directions.direction);
    };
    const auto way = [&](double delta) {
        directions.shift(delta);
        return data_of(function(xs));
    };
    double numerical = 0;
    try {
        numerical = derivative(way, values_of(gys),
                               {.eps = options.eps,
                                .detect_nondifferentiable = options.detect_nondifferentiable,
                                .diff_atol = options.diff_atol,
                                .diff_rtol = options.diff_rtol},
                               &center);
    } catch (const NondifferentiableError& error) {
        fail<NondifferentiableError>("[check_backward] {}{}", error.what(), details());
    }
    const double error = std::abs(computed - numerical);
    if (error <= options.atol + options.rtol * std::abs(numerical)) return;
    fail<CheckError>(
        "[check_backward] derivative along a random direction: expected {} (numerical), got {}: "
        "error {:.3g}, allowed atol {:g} + rtol {:g}{}",
        numerical, computed, error, options.atol, options.rtol, details());
}

}  // namespace

void assert_allclose(const Array& actual, const Array& expected, double atol, double rtol,
                     bool verbose) {
    if (actual.shape() != expected.shape())
        fail<CheckError>("[assert_allclose] shape: expected {}, got {}",
                         to_string(expected.shape()), to_string(actual.shape()));
    const auto x = actual.to_vector<double>();
    const auto y = expected.to_vector<double>();
    std::size_t wrong = 0;
    std::size_t worst = 0;
    double worst_error = -1;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
        const double error = std::abs(x[i] - y[i]);
        if (std::isfinite(y[i]) && error <= atol + rtol * std::abs(y[i])) continue;
        ++wrong;
        if (!(error <= worst_error)) {
            worst = i;
            worst_error = error;
        }
    }
    if (wrong == 0) return;
    fail<CheckError>(
        "[assert_allclose] {} of {} elements differ; the worst, {} in row-major order: expected "
        "{}, got {}: error {:.3g}, relative {:.3g}, allowed atol {:g} + rtol {:g}{}",
        wrong, x.size(), worst, y[worst], x[worst], worst_error, worst_error / std::abs(y[worst]),
        atol, rtol,
        verbose ? "\n  expected: " + to_string(expected) + "\n  got: " + to_string(actual) : "");
}

Arrays numerical_grad(const ArrayExpression& f, const ArrayList& input_list,
                      const ArrayList& grad_outputs, const NumericalOptions& options) {
    const ArraySpan inputs = input_list.view();
    if (!(options.eps > 0))
        fail<InvalidError>("[numerical_grad] eps: expected > 0, got {}", options.eps);
    for (const Array& input : inputs) {
        if (is_floating(input.dtype())) continue;
        fail<DtypeError>("[numerical_grad] inputs: expected floating dtypes, got {}",
                         name(input.dtype()));
    }
    const Outputs gys = values_of(grad_outputs.view());
    const Outputs center = options.detect_nondifferentiable ? values_of(f()) : Outputs();
    Arrays result;
    for (const Array& input : inputs) {
        const Array before = input.copy();
        Values values = input.to_vector<double>();
        Values grad(values.size());
        try {
            for (std::size_t i = 0; i < values.size(); ++i) {
                const double value = values[i];
                const auto way = [&](double delta) {
                    values[i] = value + delta;
                    input.copy_from(to_array(values, input));
                    return f();
                };
                grad[i] = derivative(way, gys, options, &center);
                values[i] = value;
            }
        } catch (...) {
            input.copy_from(before);
            throw;
        }
        input.copy_from(before);
        result.push_back(to_array(grad, input));
    }
    return result;
}

void check_backward(const VariableFunction& function, const ArrayList& inputs,
                    const ArrayList& y_grads, const Options& options) {
    Arrays before;
    for (const Variable& param : options.params) before.push_back(param.data());
    // Restores all params that it can. Returns the error of one that is still used by a graph.
    const auto restore = [&] {
        std::exception_ptr failure;
        for (std::size_t i = 0; i < before.size(); ++i) {
            try {
                options.params[i].cleargrad();
                options.params[i].set_data(before[i]);
            } catch (const GraphError&) {
                failure = std::current_exception();
            }
        }
        return failure;
    };
    try {
        for (const Variable& param : options.params) {
            param.cleargrad();
            param.set_data(convert(param.data(), options));
        }
        check_converted(function, inputs.view(), y_grads.view(), options);
    } catch (...) {
        restore();
        throw;
    }
    if (const std::exception_ptr failure = restore()) std::rethrow_exception(failure);
}

void check_double_backward(const VariableFunction& function, const ArrayList& input_list,
                           const ArrayList& y_grad_list, const ArrayList& x_grad_grads,
                           const Options& options) {
    const ArraySpan inputs = input_list.view();
    const ArraySpan y_grads = y_grad_list.view();
    const std::size_t n = inputs.size();
    const auto first_gradient = [&](const Variables& all) {
        const Variables xs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
        const Variables gys(all.begin() + static_cast<std::ptrdiff_t>(n), all.end());
        for (const auto& variable : all) variable.cleargrad();
        for (const auto& param : options.params) param.cleargrad();
        backward_from(function(xs), gys, true);
        Variables result;
        const auto take = [&](const Variable& variable) {
            Variable grad = variable.grad_variable();
            variable.cleargrad();  // the second-order gradient starts empty
            if (!grad) {
                const Array& data = variable.data();
                grad = Variable(Array::zeros(data.shape(), data.dtype(), data.device()));
            }
            result.push_back(std::move(grad));
        };
        for (std::size_t i = 0; i < n; ++i) {
            if (!skipped(options, i, inputs[i])) take(xs[i]);
        }
        for (const auto& param : options.params) take(param);
        return result;
    };
    Arrays all(inputs.begin(), inputs.end());
    all.insert(all.end(), y_grads.begin(), y_grads.end());
    Options second = options;
    second.no_grads.resize(all.size());
    check_backward(first_gradient, all, x_grad_grads, second);
}

}  // namespace catena::gradient_check
