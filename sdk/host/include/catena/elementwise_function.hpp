// ElementwiseFunction: a differentiable function from two formulas, for its value and its gradient.
#pragma once

#include <catena/elementwise.hpp>
#include <catena/lists.hpp>

namespace catena {

// The fields are the arguments of elementwise().
struct ElementwiseFormula {
    std::string inputs;
    std::string outputs;
    std::string operation;
    std::string name = {};  // default for a gradient: the function's name and "_grad"
    ElementwiseOptions options = {};
};

namespace detail {
class FormulaChain;  // a formula, followed by those of its gradients

class ElementwiseFunctionBase {
protected:
    // formulas: value, gradient, gradient of the gradient ...
    ElementwiseFunctionBase(std::vector<ElementwiseFormula> formulas, std::size_t n);
    std::vector<Variable> apply(std::span<const Variable> inputs) const;
    const FormulaKernel& kernel() const;

private:
    std::shared_ptr<const FormulaChain> chain_;
};
}  // namespace detail

// The gradient formula refers to inputs and outputs of the function by name, and to the gradient of
// output w as gw. It sets gx for input x. Inputs may be broadcast; their gradients are summed.
//   const ElementwiseFunction muladd(
//       {"T x, T y, T z", "T w", "w = x * y + z", "muladd"},
//       {"T x, T y, T gw", "T gx, T gy, T gz", "gx = gw * y; gy = gw * x; gz = gw"});
//   const Variable w = muladd(x, y, z);
// Values that the gradient does not use are not kept. An input without a gx gets no gradient. To
// differentiate the gradient, add a formula for its gradient with the same rules: its outputs are
// gx ..., their gradients ggx. Without one, the second order throws NotDifferentiableError.
template <std::size_t N = 1>
class ElementwiseFunction : private detail::ElementwiseFunctionBase {
public:
    // Throws InvalidError if a formula is wrong or a gradient uses an unknown name.
    explicit ElementwiseFunction(ElementwiseFormula value)
        : ElementwiseFunctionBase({std::move(value)}, N) {}
    ElementwiseFunction(ElementwiseFormula value, ElementwiseFormula gradient)
        : ElementwiseFunctionBase({std::move(value), std::move(gradient)}, N) {}
    ElementwiseFunction(ElementwiseFormula value, ElementwiseFormula gradient,
                        ElementwiseFormula second)
        : ElementwiseFunctionBase({std::move(value), std::move(gradient), std::move(second)}, N) {}
    // Formulas of any order: value, gradient, gradient of the gradient ...
    explicit ElementwiseFunction(std::vector<ElementwiseFormula> formulas)
        : ElementwiseFunctionBase(std::move(formulas), N) {}

    // Returns a Variable, or N of them in a std::array. Throws the errors of FormulaKernel::call().
    template <std::convertible_to<Variable>... V>
    auto operator()(const V&... inputs) const {
        std::vector<Variable> y = apply(std::initializer_list<Variable>{inputs...});
        if constexpr (N == 1) return std::move(y[0]);
        else return unpack<N>(y);
    }
    // On arrays, without a graph.
    template <std::same_as<Array>... A>
    auto operator()(const A&... inputs) const {
        const KernelArgument all[] = {inputs...};
        std::vector<Array> y = kernel().call(all);
        if constexpr (N == 1) return std::move(y[0]);
        else return unpack<N>(y);
    }
};
// Braces without <N> mean one output.
ElementwiseFunction(ElementwiseFormula)->ElementwiseFunction<1>;
ElementwiseFunction(ElementwiseFormula, ElementwiseFormula)->ElementwiseFunction<1>;
ElementwiseFunction(ElementwiseFormula, ElementwiseFormula, ElementwiseFormula)
    ->ElementwiseFunction<1>;

}  // namespace catena
