// Gradient checks, on the host in float64.
#include <catena/gradient_check.hpp>
#include <catena/random.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace catena::gradient_check {
namespace {

using Values = std::vector<double>;

double dot(const Values& a, const Values& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

Array to_array(const Values& values, const Array& like) {
    return Array::from(values, like.shape(), like.device()).astype(like.dtype());
}

// sum_j sum(gy[j] * y[j])
double weighted(std::span<const Array> ys, std::span<const Array> gys) {
    double sum = 0;
    for (std::size_t j = 0; j < ys.size(); ++j) {
        if (gys[j]) sum += dot(ys[j].to_vector<double>(), gys[j].to_vector<double>());
    }
    return sum;
}

std::vector<Array> data_of(std::span<const Variable> variables) {
    std::vector<Array> arrays;
    for (const auto& variable : variables) arrays.push_back(variable.data());
    return arrays;
}

// Checks y_grads against outputs and puts 1 where one is empty.
std::vector<Array> complete(std::span<const Variable> ys, std::span<const Array> y_grads) {
    if (ys.size() != y_grads.size()) {
        throw ShapeError(
            fmt::format("[check_backward] y_grads: expected {}, one for each output, got {}",
                        ys.size(), y_grads.size()));
    }
    std::vector<Array> result(y_grads.begin(), y_grads.end());
    for (std::size_t j = 0; j < ys.size(); ++j) {
        const Array& y = ys[j].data();
        if (!result[j] && y.size() == 1) result[j] = Array::ones(y.shape(), y.dtype(), y.device());
        if (!result[j] || result[j].shape() != y.shape() || result[j].dtype() != y.dtype()) {
            throw ShapeError(fmt::format("[check_backward] y_grads[{}]: expected {} {}, got {}", j,
                                         to_string(y.shape()), name(y.dtype()),
                                         result[j] ? to_string(result[j]) : "none"));
        }
    }
    return result;
}

// Backward from all outputs at once, as if from their sum weighted by gys.
void backward_from(std::span<const Variable> ys, std::span<const Variable> gys,
                   bool differentiable) {
    for (std::size_t j = 0; j < ys.size(); ++j) {
        if (!ys[j].creator()) {  // an input, handed through
            if (!ys[j].requires_grad()) continue;
            if (differentiable) accumulate(ys[j].node(), gys[j]);
            else accumulate(ys[j].node(), gys[j].data().copy());
            continue;
        }
        ys[j].set_grad(gys[j]);
        ys[j].backward(false, differentiable);
        ys[j].cleargrad();
    }
}

// The variables along which the derivative is taken, and their values before.
struct Directions {
    std::vector<Variable> variables;
    std::vector<Array> before;
    std::vector<Values> values;
    std::vector<Values> direction;

    void shift(double delta) const {
        for (std::size_t i = 0; i < variables.size(); ++i) {
            Values shifted = values[i];
            for (std::size_t k = 0; k < shifted.size(); ++k) shifted[k] += delta * direction[i][k];
            variables[i].set_data(to_array(shifted, before[i]));
        }
    }
    void restore() const {
        for (std::size_t i = 0; i < variables.size(); ++i) variables[i].set_data(before[i]);
    }
};

Directions make_directions(std::vector<Variable> variables, std::uint64_t seed) {
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

}  // namespace

void assert_allclose(const Array& actual, const Array& expected, double atol, double rtol) {
    if (actual.shape() != expected.shape()) {
        throw CheckError(fmt::format("[assert_allclose] shape: expected {}, got {}",
                                     to_string(expected.shape()), to_string(actual.shape())));
    }
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
    throw CheckError(fmt::format(
        "[assert_allclose] {} of {} elements differ; the worst, {} in row-major order: "
        "expected {}, got {}: error {:.3g}, relative {:.3g}, allowed atol {:g} + rtol {:g}",
        wrong, x.size(), worst, y[worst], x[worst], worst_error, worst_error / std::abs(y[worst]),
        atol, rtol));
}

std::vector<Array> numerical_grad(const std::function<std::vector<Array>()>& f,
                                  std::span<const Array> inputs,
                                  std::span<const Array> grad_outputs, double eps) {
    if (!(eps > 0))
        throw InvalidError(fmt::format("[numerical_grad] eps: expected > 0, got {}", eps));
    std::vector<Array> result;
    for (const Array& input : inputs) {
        if (!is_floating(input.dtype())) {
            throw DtypeError(fmt::format(
                "[numerical_grad] inputs: expected floating dtypes, got {}", name(input.dtype())));
        }
        const Array before = input.copy();
        Values values = input.to_vector<double>();
        Values grad(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double value = values[i];
            const auto output = [&](double x) {
                values[i] = x;
                input.copy_from(to_array(values, input));
                const auto ys = f();
                if (ys.size() != grad_outputs.size()) {
                    throw ShapeError(
                        fmt::format("[numerical_grad] grad_outputs: expected {}, got {}", ys.size(),
                                    grad_outputs.size()));
                }
                return weighted(ys, grad_outputs);
            };
            const double above = output(value + eps);
            grad[i] = (above - output(value - eps)) / (2 * eps);
            values[i] = value;
        }
        input.copy_from(before);
        result.push_back(to_array(grad, input));
    }
    return result;
}

void check_backward(const VariableFunction& function, std::span<const Array> inputs,
                    std::span<const Array> y_grads, const Options& options) {
    const auto convert = [&](const Array& array) {
        return array && options.dtype && is_floating(array.dtype()) ? array.astype(*options.dtype)
                                                                    : array;
    };
    std::vector<Variable> xs;
    std::vector<Variable> moved;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        xs.emplace_back(convert(inputs[i]).copy());
        if (!skipped(options, i, inputs[i])) moved.push_back(xs.back());
    }
    std::vector<Array> params_before;
    for (const auto& param : options.params) {
        params_before.push_back(param.data());
        param.cleargrad();
        param.set_data(convert(param.data()));
        moved.push_back(param);
    }
    std::vector<Array> gys;
    for (const Array& gy : y_grads) gys.push_back(convert(gy));

    const auto ys = function(xs);
    gys = complete(ys, gys);
    std::vector<Variable> gy_variables(gys.begin(), gys.end());
    backward_from(ys, gy_variables, false);

    for (std::size_t i = 0; i < xs.size(); ++i) {
        if (skipped(options, i, inputs[i]) && xs[i].grad() && i < options.no_grads.size()) {
            throw CheckError(
                fmt::format("[check_backward] inputs[{}]: expected no gradient, got one", i));
        }
    }
    const Directions directions = make_directions(moved, options.seed);
    double computed = 0;
    std::vector<std::string> grads;
    for (std::size_t i = 0; i < moved.size(); ++i) {
        const Array& grad = moved[i].grad();
        if (grad) computed += dot(grad.to_vector<double>(), directions.direction[i]);
        grads.push_back(grad ? to_string(grad) : "none");
    }
    const auto output = [&](double delta) {
        directions.shift(delta);
        return weighted(data_of(function(xs)), gys);
    };
    const double above = output(options.eps);
    const double numerical = (above - output(-options.eps)) / (2 * options.eps);
    directions.restore();
    for (std::size_t i = 0; i < params_before.size(); ++i) {
        options.params[i].cleargrad();
        options.params[i].set_data(params_before[i]);
    }
    const double error = std::abs(computed - numerical);
    if (error <= options.atol + options.rtol * std::abs(numerical)) return;
    throw CheckError(fmt::format(
        "[check_backward] derivative along a random direction: expected {} "
        "(numerical), "
        "got {}: error {:.3g}, allowed atol {:g} + rtol {:g}\n  gradients: {}\n  direction: {}",
        numerical, computed, error, options.atol, options.rtol, fmt::join(grads, "; "),
        directions.direction));
}

void check_double_backward(const VariableFunction& function, std::span<const Array> inputs,
                           std::span<const Array> y_grads, std::span<const Array> x_grad_grads,
                           const Options& options) {
    const std::size_t n = inputs.size();
    const auto first_gradient = [&](const std::vector<Variable>& all) {
        const std::vector<Variable> xs(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
        const std::vector<Variable> gys(all.begin() + static_cast<std::ptrdiff_t>(n), all.end());
        for (const auto& variable : all) variable.cleargrad();
        for (const auto& param : options.params) param.cleargrad();
        backward_from(function(xs), gys, true);
        std::vector<Variable> result;
        const auto take = [&](const Variable& variable) {
            Variable grad = variable.grad_variable();
            variable.cleargrad();  // the second gradient starts from none
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
    std::vector<Array> all(inputs.begin(), inputs.end());
    all.insert(all.end(), y_grads.begin(), y_grads.end());
    Options second = options;
    second.no_grads.resize(all.size());
    check_backward(first_gradient, all, x_grad_grads, second);
}

}  // namespace catena::gradient_check
