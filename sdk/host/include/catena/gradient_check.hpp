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

// Gradients of sum_j sum(gy[j] * f()[j]) with respect to inputs, by central differences, in the
// inputs' dtypes. f reads the inputs, whose elements are changed in place one at a time and restored.
// An empty gy counts as zero. eps must be positive, inputs floating.
std::vector<Array> numerical_grad(const std::function<std::vector<Array>()>& f,
                                  std::span<const Array> inputs,
                                  std::span<const Array> grad_outputs, double eps = 1e-3);

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
};

// Compares the derivative along one random direction through all floating inputs and params, as
// Chainer's version 7 does: sum(gradient * direction) against ((f(+eps) - f(-eps)) * gy) / (2 eps).
// Elements of the direction are at least 0.1 / sqrt(n) in size. y_grads has one array for each
// output; an empty one only for an output of one element (1). Throws CheckError if the numbers
// differ or an input of no_grads got a gradient, ShapeError if outputs and y_grads do not fit.
void check_backward(const VariableFunction& function, std::span<const Array> inputs,
                    std::span<const Array> y_grads, const Options& options = {});

// check_backward() of the first gradient as a function of inputs and y_grads. x_grad_grads: one
// array for each floating input without no_grads, then one for each of options.params.
void check_double_backward(const VariableFunction& function, std::span<const Array> inputs,
                           std::span<const Array> y_grads, std::span<const Array> x_grad_grads,
                           const Options& options = {.atol = 1e-4, .rtol = 1e-3});

}  // namespace catena::gradient_check
