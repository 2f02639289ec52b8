// Gradients asked for by name, and backpropagation from several heads at once.
#pragma once

#include <catena/core/variable.hpp>

#include <vector>

namespace catena {

struct GradOptions {
    bool set_grad = false;     // each input's grad becomes its result; cleared if there is none
    bool retain_grad = false;  // results on the way whose handles live keep their gradient
    bool enable_double_backprop = false;  // results are variables with a graph of their own
};

// The gradient of sum(outputs[i] * grad_outputs[i]) for each of inputs: leaves or results. Only the
// calls between outputs and inputs run, and no leaf's grad changes but by set_grad.
// grad_outputs: empty, or one for each output; an empty one counts as ones. grad_inputs: empty, or
// one for each input (an empty one is none), which its gradient is added to.
// Returns one variable for each input; an empty one if no output depends on it. It may share memory
// with a grad_output. Throws InvalidError for a wrong number or an empty handle among outputs and
// inputs, ShapeError, DtypeError or DeviceError for a gradient that does not fit.
std::vector<Variable> grad(const std::vector<Variable>& outputs,
                           const std::vector<Variable>& inputs,
                           const std::vector<Variable>& grad_outputs = {},
                           const std::vector<Variable>& grad_inputs = {}, GradOptions options = {});

struct BackwardOptions {
    bool retain_grad = false;
    bool enable_double_backprop = false;
};

// Variable::backward() from several heads in one pass: what they share is walked once. A head
// without a grad_output (empty, or none given) starts as Variable::backward() does: with its grad,
// or with 1 if it has one element. One that is a leaf adds nothing.
void backward(const std::vector<Variable>& outputs, const std::vector<Variable>& grad_outputs = {},
              BackwardOptions options = {});

}  // namespace catena
