// grad() for chosen inputs, and backward() from several outputs.
#pragma once

#include <catena/core/variable.hpp>

#include <vector>

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
};

// Variable::backward() from several outputs in one pass, which traverses their common graph once.
// An output without a grad_output starts like Variable::backward(): with its grad, or with 1 if it
// has one element. An output that is a leaf adds nothing.
void backward(const std::vector<Variable>& outputs, const std::vector<Variable>& grad_outputs = {},
              BackwardOptions options = {});

}  // namespace catena
