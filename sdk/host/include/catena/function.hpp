// Function: a differentiable function of a program's own whose gradient is computed on arrays.
#pragma once

#include <catena/core/variable.hpp>
#include <catena/link.hpp>
#include <catena/user_function.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace catena {

namespace detail {
// Whether D::parameters and D::gradients are Link's own.
template <class D>
concept ListedByLink = requires {
    { &D::parameters } -> std::same_as<std::vector<Variable> (Link::*)() const>;
    { &D::gradients } -> std::same_as<std::vector<Array> (Link::*)() const>;
};
}  // namespace detail

// A member that is learned, and the member to which its gradient is added.
struct FunctionParameter {
    std::string_view name;
    Array& parameter;
    Array& gradient;
};

// The base of Function<Derived>.
class ArrayFunction : public UserFunction, public Link {
public:
    // Names what parameter_names() lists. An override that names more calls this one, too. Each
    // Parameter that it names is an input of the call, so that backward() runs whatever x is. It adds
    // to W.grad() itself, after W.zerograd() if there is none. A member gw would not do: zerograds()
    // and cleargrads() give W another array. What has a gw belongs in parameter_names().
    void visit(Visitor& visitor) override;

protected:
    ArrayFunction() = default;
    ArrayFunction(const ArrayFunction& other);  // shares the parameters
    ArrayFunction& operator=(const ArrayFunction& other);

    // The members that a parameterized function learns; always the same names. See Function.
    virtual std::vector<FunctionParameter> parameter_names() { return {}; }

    // Override forward() and backward(), or forward_cpu(), backward_cpu(), forward_gpu() and
    // backward_gpu(), which they call by default: the methods for the GPU if an array is on one.
    virtual Arrays forward(ArraySpan inputs);
    // Returns one gradient for each input; empty means none. An output's gradient is empty if none
    // arrived. If a class overrides no backward method, there are no gradients.
    virtual Arrays backward(ArraySpan inputs, ArraySpan grad_outputs);

    virtual Arrays forward_cpu(ArraySpan inputs);  // UnsupportedError unless overridden
    virtual Arrays forward_gpu(ArraySpan inputs);  // the same
    virtual Arrays backward_cpu(ArraySpan inputs, ArraySpan grad_outputs);  // no gradients
    virtual Arrays backward_gpu(ArraySpan inputs, ArraySpan grad_outputs);  // the same

    // To be called in forward: which inputs and outputs backward gets; inputs that are not named are
    // empty there. Without a call all inputs are kept, and no outputs.
    void retain_inputs(std::initializer_list<std::size_t> indexes) { inputs_ = indexes; }
    void retain_outputs(std::initializer_list<std::size_t> indexes) { outputs_ = indexes; }
    // In backward: the outputs that were kept, in the order of the indexes. Throws GraphError if
    // forward never called retain_outputs().
    const std::vector<Array>& get_retained_outputs() const;

    static std::vector<Variable> apply(std::shared_ptr<ArrayFunction> function,
                                       std::span<const Variable> inputs);
    Variable only(std::vector<Variable> outputs) const;

private:
    friend class ArrayFunctionNode;
    // A variable that all copies of the function share, and the arrays of the members when they last
    // agreed with it.
    struct Learned {
        Parameter variable;
        Array parameter;
        Array gradient;
    };
    // Makes variables and members agree.
    void synchronize();
    // What a copy gets.
    const std::vector<Learned>& shared() const;

    std::optional<std::vector<std::size_t>> inputs_;
    std::optional<std::vector<std::size_t>> outputs_;
    std::vector<Array> kept_outputs_;
    std::vector<Learned> learned_;
};

// Forward and backward on arrays. For new functions FunctionNode is the better base: a gradient that is
// computed on arrays has no gradient itself; asking for it throws NotDifferentiableError.
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
// it; so one object can be called many times. forward and backward must not write into the arrays that
// they are given, which others read too: InvalidError. A call is recorded, so that backward runs, only
// if an input or a parameter takes a gradient.
//
// A parameterized function lists its arrays, as Chainer's parameter_names and gradient_names do, and
// adds to the gradients:
//
//     struct EltwiseParamProduct : Function<EltwiseParamProduct> {
//         Array w, gw;
//         explicit EltwiseParamProduct(const Shape& shape)
//             : w(random::normal(shape)), gw(Array::zeros(shape)) {}
//         std::vector<FunctionParameter> parameter_names() override { return {{"w", w, gw}}; }
//         Arrays forward(ArraySpan inputs) override { return {w * inputs[0]}; }
//         Arrays backward(ArraySpan inputs, ArraySpan grad_outputs) override {
//             gw += grad_outputs[0] * inputs[0];
//             return {grad_outputs[0] * w};
//         }
//     };
//
// Every function is a Link: it can be part of a FunctionSet. Its parameters are listed, moved, saved,
// learned and shared by copies like those of links. The gradient stays in the memory of gw: zerograd(),
// cleargrad() and set_grad() write there, too. An empty gw is made when it is needed. If another array
// is assigned to a member, the next call or visit() copies its values to all copies of the function.
// If w is written between a call and its backward(), backward() throws GraphError. While backward runs,
// gw is a new array of zeros; its values are added to the gradient afterwards.
template <class Derived>
class Function : public ArrayFunction {
public:
    // The only output. Throws InvalidError if there are several.
    Variable operator()(const Variable& x) const override { return only(apply({x})); }
    template <std::convertible_to<Variable>... V>
    Variable operator()(const V&... inputs) const {
        return only(apply(std::initializer_list<Variable>{inputs...}));
    }
    // All outputs: const auto [c, h] = unpack<2>(Cell().apply({c_prev, x})). Errors are those of
    // FunctionNode::apply().
    Variables apply(VariableSpan inputs) const {
        static_assert(detail::ListedByLink<Derived>,
                      "a Function has no parameters() or gradients() of its own, which a Link, an "
                      "optimizer and a FunctionSet would not call: override parameter_names() or "
                      "visit(), which they list");
        return ArrayFunction::apply(std::make_shared<Derived>(static_cast<const Derived&>(*this)),
                                    inputs);
    }
    Variables apply(std::initializer_list<Variable> inputs) const {
        return apply(std::span(inputs.begin(), inputs.size()));
    }
};

}  // namespace catena
