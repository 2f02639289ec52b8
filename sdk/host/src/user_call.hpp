// The graph's node of a call that a program defines.
#pragma once

#include <catena/core/graph.hpp>
#include <catena/core/variable.hpp>
#include <catena/function_node.hpp>

#include <cstdint>
#include <memory>
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
    void unchain() override;

    std::vector<Variable> retained_inputs() const;
    std::vector<Variable> retained_outputs();

private:
    class InForward;

    explicit UserCall(std::shared_ptr<FunctionNode> node);
    const std::string& name() const;
    std::vector<Variable> compute(std::span<const Array> x);
    void gradients(std::span<const Variable> gy, std::span<const bool> wanted,
                   std::span<Variable> gx) override;
    [[noreturn]] void throw_written(const char* method, const std::string& what) const;
    void check_versions(std::span<const Array> arrays, std::span<const std::uint32_t> versions,
                        const char* method, const char* what) const;

    std::shared_ptr<FunctionNode> node_;
    mutable std::string name_;  // once asked for
    Device device_;
    bool train_;
};

}  // namespace catena
