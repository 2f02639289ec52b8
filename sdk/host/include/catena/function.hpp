// Function: a differentiable function of a program's own whose gradient is computed on arrays.
#pragma once

#include <catena/core/variable.hpp>
#include <catena/user_function.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace catena {

// What Function<Derived> stands on.
class ArrayFunction : public UserFunction {
protected:
    ArrayFunction() = default;

    // Override these, or forward_cpu() and forward_gpu(), backward_cpu() and backward_gpu(). By
    // default they call the method for where the arrays are: inputs, and gradients of outputs.
    virtual Arrays forward(ArraySpan inputs);
    // One gradient for each input; empty means none. A gradient of an output is empty where none
    // arrived. Nothing overridden: no gradients.
    virtual Arrays backward(ArraySpan inputs, ArraySpan grad_outputs);

    virtual Arrays forward_cpu(ArraySpan inputs);  // UnsupportedError unless overridden
    virtual Arrays forward_gpu(ArraySpan inputs);  // the same
    virtual Arrays backward_cpu(ArraySpan inputs, ArraySpan grad_outputs);  // no gradients
    virtual Arrays backward_gpu(ArraySpan inputs, ArraySpan grad_outputs);  // the same

    // In forward: all inputs are kept for backward unless this names the ones to keep (the others
    // are empty there), and no outputs unless this does.
    void retain_inputs(std::initializer_list<std::size_t> indexes) { inputs_ = indexes; }
    void retain_outputs(std::initializer_list<std::size_t> indexes) { outputs_ = indexes; }
    // In backward: the outputs kept, in the order of the indexes. Throws GraphError if forward
    // never said which.
    const std::vector<Array>& get_retained_outputs() const;

    static std::vector<Variable> apply(std::shared_ptr<ArrayFunction> function,
                                       std::span<const Variable> inputs);
    Variable only(std::vector<Variable> outputs) const;

private:
    friend class ArrayFunctionNode;
    std::optional<std::vector<std::size_t>> inputs_;
    std::optional<std::vector<std::size_t>> outputs_;
    std::vector<Array> kept_outputs_;
};

// Forward and backward on arrays. For new functions FunctionNode is the better base: a gradient on
// arrays has no gradient, and to ask for one is a NotDifferentiableError.
//
//     struct MulAdd : Function<MulAdd> {
//         Arrays forward(ArraySpan inputs) override {
//             const auto [x, y, z] = unpack<3>(inputs);
//             return {x * y + z};
//         }
//         Arrays backward(ArraySpan inputs, ArraySpan grad_outputs) override {
//             const auto [x, y, z] = unpack<3>(inputs);
//             const Array& gw = grad_outputs[0];
//             return {y * gw, x * gw, gw};
//         }
//     };
//     const Variable w = MulAdd()(x, y, z);
//
// Each call works on a copy of the object, which the graph keeps with whatever forward stored in
// it; so one object can be called many times.
template <class Derived>
class Function : public ArrayFunction {
public:
    // The only output. Throws InvalidError if there are several.
    template <std::convertible_to<Variable>... V>
    Variable operator()(const V&... inputs) const {
        return only(apply(std::initializer_list<Variable>{inputs...}));
    }
    // All outputs: const auto [c, h] = unpack<2>(Cell().apply({c_prev, x})). Errors are those of
    // FunctionNode::apply().
    Variables apply(VariableSpan inputs) const {
        return ArrayFunction::apply(std::make_shared<Derived>(static_cast<const Derived&>(*this)),
                                    inputs);
    }
    Variables apply(std::initializer_list<Variable> inputs) const {
        return apply(std::span(inputs.begin(), inputs.size()));
    }
};

}  // namespace catena
