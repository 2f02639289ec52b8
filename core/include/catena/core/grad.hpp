// grad() for chosen inputs, and backward() from several outputs.
#pragma once

#include <catena/core/variable.hpp>

namespace catena {

struct GradOptions {
    bool set_grad = false;     // each input's grad is set to its result; cleared if there is none
    bool retain_grad = false;  // variables that the program holds keep their gradient
    bool enable_double_backprop = false;  // results are variables with their own graph
};

// Returns the gradient of sum(outputs[i] * grad_outputs[i]) with respect to each input, which may
// be a leaf or a result. Only the calls between outputs and inputs run, and no leaf's grad changes
// unless set_grad is on. grad_outputs is empty or has one variable for each output; an empty
// variable counts as ones. grad_inputs is empty or has one variable for each input, to which the
// gradient is added. A result is an empty variable if no output depends on the input. It may share
// memory with a grad_output. Throws InvalidError for a wrong number of variables or an empty output
// or input, ShapeError, DtypeError or DeviceError for a gradient that does not match.
std::vector<Variable> grad(const std::vector<Variable>& outputs,
                           const std::vector<Variable>& inputs,
                           const std::vector<Variable>& grad_outputs = {},
                           const std::vector<Variable>& grad_inputs = {}, GradOptions options = {});

struct BackwardOptions {
    bool retain_grad = false;
    bool enable_double_backprop = false;
    // The factor that the gradients of the outputs contain. Leaves keep it as node().loss_scale, so
    // that an optimizer can divide by it; those of catena::optimizers do not (see LossScale). 0: 1,
    // or the factor of the backward() that calls this one.
    double loss_scale = 0;
};

// Variable::backward() from several outputs in one pass, which traverses their common graph once.
// Without grad_outputs, each output starts like Variable::backward(): with its grad, or with 1 if
// it has one element; outputs without a graph are left out. Otherwise there is one grad_output for
// each output; an empty variable means that the output has no gradient. The gradient of an output
// that is a leaf is added to those that it gets from other outputs.
void backward(const std::vector<Variable>& outputs, const std::vector<Variable>& grad_outputs = {},
              BackwardOptions options = {});

// Sets a function that backward() and grad() call between two calls of the graph, in their thread.
// An exception of it ends them, so that a user can interrupt a long one. A null pointer removes it.
void set_backward_check(void (*check)()) noexcept;

}  // namespace catena
