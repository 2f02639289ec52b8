// Gradient checks: computed gradients against numerical ones.
#pragma once

#include <catena/core/error.hpp>
#include <catena/core/variable.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace catena::gradient_check {

// A check that failed: the message has all numbers.
class CheckError : public Error {
public:
    explicit CheckError(const std::string& text) : Error(text, CATENA_E_VALUE) {}
};

// Throws CheckError unless |actual - expected| <= atol + rtol * |expected| everywhere, on any two
// devices and dtypes. NaN equals NaN. The message names the worst element.
void assert_allclose(const Array& actual, const Array& expected, double atol = 1e-5,
                     double rtol = 1e-4);

// A point at which a function has no derivative, as far as its values around show.
class NondifferentiableError : public Error {
public:
    explicit NondifferentiableError(const std::string& text) : Error(text, CATENA_E_VALUE) {}
};

struct NumericalOptions {
    double eps = 1e-3;
    // Looks at five points, 0, +-eps / 2 and +-eps, instead of two. NondifferentiableError if an
    // output is finite at some of them alone, or if the root of the mean squared residual of the
    // parabola through them is above diff_atol + diff_rtol * (largest - smallest output).
    bool detect_nondifferentiable = false;
    double diff_atol = 0;
    double diff_rtol = 1e-2;
};

// Gradients of sum_j sum(gy[j] * f()[j]) with respect to inputs, by central differences, computed
// in float64 and returned in the inputs' dtypes. f reads the inputs, whose elements are changed in
// place one at a time and restored, whatever f throws. A gy of one element counts for all elements
// of its output, an empty one as zero. Throws InvalidError unless eps > 0, DtypeError for inputs
// that are not floating, ShapeError if outputs and grad_outputs do not fit.
std::vector<Array> numerical_grad(const std::function<std::vector<Array>()>& f,
                                  std::span<const Array> inputs,
                                  std::span<const Array> grad_outputs,
                                  const NumericalOptions& options);
inline std::vector<Array> numerical_grad(const std::function<std::vector<Array>()>& f,
                                         std::span<const Array> inputs,
                                         std::span<const Array> grad_outputs, double eps = 1e-3) {
    return numerical_grad(f, inputs, grad_outputs, NumericalOptions{.eps = eps});
}

// What is checked: outputs from inputs; parameters may be captured.
using VariableFunction = std::function<std::vector<Variable>(const std::vector<Variable>&)>;

struct Options {
    double eps = 1e-3;
    double atol = 1e-5;
    double rtol = 1e-4;
    std::vector<Variable> params = {};  // further variables that the function depends on
    std::vector<bool> no_grads = {};  // for each input: must get no gradient; default: not floating
    std::optional<Dtype> dtype = {};  // floating inputs and params are converted to it first
    std::uint64_t seed = 0;           // of the direction
    bool detect_nondifferentiable = false;  // see NumericalOptions
    double diff_atol = 0;
    double diff_rtol = 1e-2;
};

// Compares the derivative along one random direction through all floating inputs and params, as
// Chainer's version 7 does: sum(gradient * direction) against numerical_grad() of the step along
// it. Elements of the direction are at least 0.1 / sqrt(n) in size. y_grads has one array for each
// output; an empty one only for an output of one element (1). Inputs are copied; params are as
// before in the end, without a gradient. Throws CheckError if the numbers differ or an input of
// no_grads got a gradient, ShapeError if outputs and y_grads do not fit, NondifferentiableError if
// asked to. The message has inputs, y_grads, gradients, direction and both numbers.
void check_backward(const VariableFunction& function, std::span<const Array> inputs,
                    std::span<const Array> y_grads, const Options& options = {});

// check_backward() of the first gradient as a function of inputs and y_grads. x_grad_grads: one
// array for each floating input without no_grads, then one for each of options.params.
void check_double_backward(const VariableFunction& function, std::span<const Array> inputs,
                           std::span<const Array> y_grads, std::span<const Array> x_grad_grads,
                           const Options& options = {.atol = 1e-4, .rtol = 1e-3});

}  // namespace catena::gradient_check
