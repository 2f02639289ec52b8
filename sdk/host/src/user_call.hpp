// The graph's node of a call that a program defines.
#pragma once

#include <catena/core/graph.hpp>
#include <catena/core/variable.hpp>
#include <catena/function_node.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

class UserCall final : public GraphNode {
public:
    // Runs the node's forward and makes its call part of the graph.
    static std::vector<Variable> run(std::shared_ptr<FunctionNode> node,
                                     std::span<const Variable> inputs);
    ~UserCall() override;

    std::string_view label() const noexcept override;
    std::vector<Array> forward(std::span<const Array> inputs) const override;
    void backward(std::span<const Array> gy) override;
    void backward(std::span<const Variable> gy) override;
    void unchain() override;

    std::vector<Variable> retained_inputs();
    std::vector<Variable> retained_outputs();

private:
    // An array kept for backward, and its version when it was.
    struct Kept {
        std::size_t index;
        Array array;
        std::uint32_t version;
        bool requires_grad;
    };

    class InForward;

    explicit UserCall(std::shared_ptr<FunctionNode> node);
    const std::string& name() const;
    static std::vector<Kept> keep(const std::optional<std::vector<std::size_t>>& indexes,
                                  std::span<const Variable> from);
    void check_kept() const;
    std::optional<std::string> changed() const;  // what it keeps that was written in place since
    std::vector<Variable> gradients(std::span<const Variable> gy);
    void check_gradient(std::size_t i, const Array& gradient) const;

    std::shared_ptr<FunctionNode> node_;
    mutable std::string name_;  // once asked for
    Device device_;
    bool train_;
    std::size_t n_inputs_ = 0;
    std::vector<Kept> x_;
    std::vector<Kept> y_;
};

}  // namespace catena
