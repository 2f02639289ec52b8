// FunctionNode: a differentiable function that a program defines without a plugin.
#pragma once

#include <catena/user_function.hpp>

#include <optional>

namespace catena {

// forward works on arrays and backward on variables, so gradients may be differentiable too.
//
//     struct MulAdd : FunctionNode {
//         Arrays forward(ArraySpan inputs) override {
//             const auto [x, y, z] = unpack<3>(inputs);
//             retain_inputs({0, 1});
//             return {x * y + z};
//         }
//         Variables backward(Targets, VariableSpan grad_outputs) override {
//             const auto [x, y] = unpack<2>(get_retained_inputs());
//             const Variable& gw = grad_outputs[0];
//             return {y * gw, x * gw, gw};
//         }
//     };
//     Variable mul_add(const Variable& x, const Variable& y, const Variable& z) {
//         const auto [w] = apply<MulAdd>(x, y, z);
//         return w;
//     }
//
// Operators and catena::functions accept arrays of any device, so one forward works everywhere. A
// node is one call in the graph, which keeps it alive: it is owned by a std::shared_ptr and can be
// applied once. Members that forward sets are available in backward, which may run more than once.
// Not thread-safe.
class FunctionNode : public UserFunction, public std::enable_shared_from_this<FunctionNode> {
public:
    FunctionNode(const FunctionNode&) = delete;
    FunctionNode& operator=(const FunctionNode&) = delete;

    // The number of outputs, for calls that return a std::array. A class with several outputs
    // declares static constexpr std::size_t n_outputs = 2;
    static constexpr std::size_t n_outputs = 1;

    // Runs forward and records the call in the graph, unless config() or volatile inputs prevent
    // it. An empty Variable is a missing input. Returns one variable for each output, an empty one
    // for an empty array. Throws GraphError for a node applied before, InvalidError for no output.
    std::vector<Variable> apply(VariableList inputs);
    // The same as catena::apply(), which is hidden in derived classes by the members apply().
    template <class Node, class... Arguments>
    static std::vector<Variable> apply(VariableList inputs, Arguments&&... arguments) {
        return std::make_shared<Node>(std::forward<Arguments>(arguments)...)->apply(inputs);
    }
    template <class Node, std::convertible_to<Variable>... V>
    static std::array<Variable, Node::n_outputs> apply(const V&... inputs) {
        const auto node = std::make_shared<Node>();
        return node->template outputs<Node::n_outputs>({inputs...});
    }

protected:
    FunctionNode() = default;

    // Computes the gradients of the inputs from those of the outputs, which are empty if there are
    // none. target_input_indexes lists the inputs that need a gradient, in ascending order, at
    // least one unless there are no inputs. Returns a gradient for each input or for each target,
    // with the shape, dtype and device of the input; empty means none. By default there are no
    // gradients. Calls in backward record a graph if the caller asked for higher-order gradients.
    virtual Variables backward(Targets target_input_indexes, VariableSpan grad_outputs);

    // Call it in forward to keep the data of inputs or outputs for backward. By default none are
    // kept. If the data is changed in place afterwards, backward() throws GraphError.
    void retain_inputs(std::vector<std::size_t> indexes);
    void retain_outputs(std::vector<std::size_t> indexes);
    // Call it in backward: returns the kept inputs or outputs in the order of the indexes, as graph
    // variables. A missing input is empty. Throws GraphError if forward did not call retain_..().
    std::vector<Variable> get_retained_inputs() const;
    std::vector<Variable> get_retained_outputs() const;

private:
    template <std::size_t N>
    std::array<Variable, N> outputs(VariableList inputs) {
        const Variables all = apply(inputs);
        if (all.size() != N) throw_count("outputs, as n_outputs says", N, all.size());
        return catena::unpack<N>(all);
    }
    friend class UserCall;
    // The number of inputs that the caller passed.
    virtual std::size_t n_given(std::size_t n_inputs) const { return n_inputs; }
    void check_retained(const char* what, bool said) const;

    enum class Stage : std::uint8_t { fresh, forward, applied };
    Stage stage_ = Stage::fresh;
    std::optional<std::vector<std::size_t>> retained_inputs_;
    std::optional<std::vector<std::size_t>> retained_outputs_;
    class UserCall* call_ = nullptr;  // set while the graph has it
};

// Creates a node from arguments and applies it.
template <std::derived_from<FunctionNode> Node, class... Arguments>
std::vector<Variable> apply(VariableList inputs, Arguments&&... arguments) {
    return FunctionNode::apply<Node>(inputs, std::forward<Arguments>(arguments)...);
}
// The same for a node without arguments, for a structured binding: const auto [w] =
// apply<MulAdd>(x, y, z). Throws InvalidError if forward does not return Node::n_outputs outputs.
template <std::derived_from<FunctionNode> Node, std::convertible_to<Variable>... V>
std::array<Variable, Node::n_outputs> apply(const V&... inputs) {
    return FunctionNode::apply<Node>(inputs...);
}

}  // namespace catena
