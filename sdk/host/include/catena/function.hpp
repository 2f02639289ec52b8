// Function: a differentiable function in a program, whose gradient is computed on arrays.
#pragma once

#include <catena/link.hpp>
#include <catena/user_function.hpp>

namespace catena {

namespace detail {
// Whether D inherits parameters and gradients from Link.
template <class D>
concept ListedByLink = requires {
    { &D::parameters } -> std::same_as<std::vector<Variable> (Link::*)() const>;
    { &D::gradients } -> std::same_as<std::vector<Array> (Link::*)() const>;
};
}  // namespace detail

// A trainable member, and the member to which its gradient is added.
struct FunctionParameter {
    std::string_view name;
    Array& parameter;
    Array& gradient;
};

// The base of Function<Derived>.
class ArrayFunction : public UserFunction, public Link {
public:
    // Lists what parameter_names() returns. An override that lists more must call this function
    // too. Each Parameter that it lists is an input of the call, so backward() runs whether or not
    // x requires a gradient. backward() adds to W.grad() itself, after W.zerograd() if there is
    // none. A gradient member gw would not work there, because zerograds() and cleargrads() give W
    // another array; list such a member in parameter_names().
    void visit(Visitor& visitor) override;

protected:
    ArrayFunction() = default;
    ArrayFunction(const ArrayFunction& other);  // shares the parameters
    ArrayFunction& operator=(const ArrayFunction& other);

    // The trainable members of a parameterized function, always with the same names. See Function.
    virtual std::vector<FunctionParameter> parameter_names() { return {}; }

    // Override forward() and backward(), or forward_cpu(), backward_cpu(), forward_gpu() and
    // backward_gpu(), which they call by default: the GPU methods if an array is on a GPU.
    // backward() returns one gradient for each input; an empty array means none. The gradient of an
    // output is empty if there is none. A class without a backward method has no gradients.
    virtual Arrays backward(ArraySpan inputs, ArraySpan grad_outputs);

    virtual Arrays backward_cpu(ArraySpan inputs, ArraySpan grad_outputs);  // no gradients
    virtual Arrays backward_gpu(ArraySpan inputs, ArraySpan grad_outputs);  // the same

    // Call it in forward to select the inputs and outputs that backward receives; other inputs are
    // empty there. By default all inputs and no outputs are kept.
    void retain_inputs(std::initializer_list<std::size_t> indexes) { inputs_ = indexes; }
    void retain_outputs(std::initializer_list<std::size_t> indexes) { outputs_ = indexes; }
    // Call it in backward: returns the kept outputs. Throws GraphError without retain_outputs().
    const std::vector<Array>& get_retained_outputs() const;

    static std::vector<Variable> apply(std::shared_ptr<ArrayFunction> function,
                                       std::span<const Variable> inputs);
    Variable only(std::vector<Variable> outputs) const;

private:
    friend class ArrayFunctionNode;
    // A variable that all copies share, and the members' arrays when they last matched it.
    struct Learned {
        Parameter variable;
        Array parameter;
        Array gradient;
    };
    // Makes variables and members match.
    void synchronize();
    // The variables that a copy shares.
    const std::vector<Learned>& shared() const;

    std::optional<std::vector<std::size_t>> inputs_;
    std::optional<std::vector<std::size_t>> outputs_;
    std::vector<Array> kept_outputs_;
    std::vector<Learned> learned_;
};

// A function with forward and backward on arrays. For new functions FunctionNode is the better
// base: the gradient of a gradient that is computed on arrays throws NotDifferentiableError.
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
// Each call works on a copy of the object, which the graph keeps with everything that forward
// stored in it, so one object can be called many times. forward and backward must not write into
// their arguments, which others read too; doing so throws InvalidError. A call is recorded only if
// an input or a parameter requires a gradient.
//
// A parameterized function lists its arrays, as in Chainer, and adds to the gradients:
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
// Every function is a Link, so it can be part of a FunctionSet. Its parameters are listed, moved,
// saved, trained and shared by copies like those of links. The gradient stays in the memory of gw:
// zerograd(), cleargrad() and set_grad() also write there. An empty gw is allocated when it is
// needed. If another array is assigned to a member, the next call or visit() copies its values to
// all the function's copies. If w is written between a call and its backward(), backward() throws
// GraphError. While backward runs, gw is a new array of zeros, which is then added to the gradient.
template <class Derived>
class Function : public ArrayFunction {
public:
    // Returns the only output. Throws InvalidError if there are several.
    Variable operator()(const Variable& x) const override { return only(apply({x})); }
    template <std::convertible_to<Variable>... V>
    Variable operator()(const V&... inputs) const {
        return only(apply(std::initializer_list<Variable>{inputs...}));
    }
    // Returns all outputs: const auto [c, h] = unpack<2>(Cell().apply({c_prev, x})).
    Variables apply(VariableList inputs) const {
        static_assert(detail::ListedByLink<Derived>,
                      "a Function has no parameters() or gradients() of its own, which a Link, an "
                      "optimizer and a FunctionSet would not call: override parameter_names() or "
                      "visit(), which they list");
        return ArrayFunction::apply(std::make_shared<Derived>(static_cast<const Derived&>(*this)),
                                    inputs.view());
    }
};

}  // namespace catena
