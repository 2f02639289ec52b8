// FunctionNode: a differentiable function that a program defines for itself, without a plugin.
#pragma once

#include <catena/core/variable.hpp>
#include <catena/user_function.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace catena {

// Forward on arrays, backward on variables: a gradient that is made of differentiable functions is
// differentiable itself.
//
//     struct MulAdd : FunctionNode {
//         std::vector<Array> forward(std::span<const Array> inputs) override {
//             const auto [x, y, z] = unpack<3>(inputs);
//             retain_inputs({0, 1});
//             return {x * y + z};
//         }
//         std::vector<Variable> backward(std::span<const std::size_t>,
//                                        std::span<const Variable> grad_outputs) override {
//             const auto [x, y] = unpack<2>(get_retained_inputs());
//             const Variable& gw = grad_outputs[0];
//             return {y * gw, x * gw, gw};
//         }
//     };
//     Variable mul_add(const Variable& x, const Variable& y, const Variable& z) {
//         return apply<MulAdd>({x, y, z})[0];
//     }
//
// Operators and catena::functions take arrays of any device: one forward serves all. A node is one
// call in the graph, which keeps it: it lives in a std::shared_ptr and is applied once. What forward
// stores in members is there in backward, which may run more than once. For one thread at a time.
class FunctionNode : public UserFunction, public std::enable_shared_from_this<FunctionNode> {
public:
    FunctionNode(const FunctionNode&) = delete;
    FunctionNode& operator=(const FunctionNode&) = delete;

    // Runs forward and records the call in the graph, unless config() or volatile inputs say no.
    // An empty Variable is a missing input. Returns one variable for each output. Throws GraphError
    // if the node was applied before, InvalidError if forward returns no output or an empty array.
    std::vector<Variable> apply(std::span<const Variable> inputs);
    std::vector<Variable> apply(std::initializer_list<Variable> inputs) {
        return apply(std::span(inputs.begin(), inputs.size()));
    }
    // catena::apply(), which apply() hides in here.
    template <class Node, class... Arguments>
    static std::vector<Variable> apply(std::span<const Variable> inputs, Arguments&&... arguments) {
        return std::make_shared<Node>(std::forward<Arguments>(arguments)...)->apply(inputs);
    }
    template <class Node, class... Arguments>
    static std::vector<Variable> apply(std::initializer_list<Variable> inputs,
                                       Arguments&&... arguments) {
        return apply<Node>(std::span(inputs.begin(), inputs.size()),
                           std::forward<Arguments>(arguments)...);
    }

protected:
    FunctionNode() = default;

    // Outputs from inputs. The inputs' device is the current one; nothing is recorded here. Outputs
    // may be inputs, or views of them.
    virtual std::vector<Array> forward(std::span<const Array> inputs) = 0;
    // Gradients from those of the outputs, which are empty where none arrived. Returns one for each
    // input or one for each target: an input whose gradient is wanted, ascending, never none but for
    // a function without inputs. Empty means no gradient; not overridden: none at all. Shape, dtype
    // and device must be the input's. Calls in here are recorded if the caller asked for gradients
    // of higher order.
    virtual std::vector<Variable> backward(std::span<const std::size_t> target_input_indexes,
                                           std::span<const Variable> grad_outputs);

    // In forward: keeps the data of inputs or outputs for backward. By default none are kept. Data
    // written in place since is an error in backward.
    void retain_inputs(std::span<const std::size_t> indexes);
    void retain_inputs(std::initializer_list<std::size_t> indexes) {
        retain_inputs(std::span(indexes.begin(), indexes.size()));
    }
    void retain_outputs(std::span<const std::size_t> indexes);
    void retain_outputs(std::initializer_list<std::size_t> indexes) {
        retain_outputs(std::span(indexes.begin(), indexes.size()));
    }
    // In backward: what was kept, in the order of the indexes, as variables of the graph. A missing
    // input is empty. Throws GraphError if forward never called retain_..().
    std::vector<Variable> get_retained_inputs() const;
    std::vector<Variable> get_retained_outputs() const;

private:
    friend class UserCall;
    void check_retained(const char* what, bool said) const;

    enum class Stage : std::uint8_t { fresh, forward, applied };
    Stage stage_ = Stage::fresh;
    std::optional<std::vector<std::size_t>> retained_inputs_;
    std::optional<std::vector<std::size_t>> retained_outputs_;
    class UserCall* call_ = nullptr;  // while the graph has it
};

// Makes a node from arguments and applies it.
template <std::derived_from<FunctionNode> Node, class... Arguments>
std::vector<Variable> apply(std::span<const Variable> inputs, Arguments&&... arguments) {
    return FunctionNode::apply<Node>(inputs, std::forward<Arguments>(arguments)...);
}
template <std::derived_from<FunctionNode> Node, class... Arguments>
std::vector<Variable> apply(std::initializer_list<Variable> inputs, Arguments&&... arguments) {
    return FunctionNode::apply<Node>(inputs, std::forward<Arguments>(arguments)...);
}

}  // namespace catena
