// The graph's node of a call of a registered function.
#pragma once

#include "dispatch/dispatch.hpp"

#include <catena/core/graph.hpp>

#include <functional>

namespace catena {

class CallNode final : public GraphNode {
public:
    // Makes the node and connects it with inputs and outputs.
    static void record(FunctionEntry& function, const BoundAttributes& attributes,
                       std::span<const Variable* const> inputs, ForwardResult& forward,
                       std::span<const Variable> outputs, const Config& now);

    std::string_view label() const noexcept override { return function_.descriptor.name; }
    std::string input_name(std::size_t i) const override {
        return function_.input_name(static_cast<std::uint32_t>(i));
    }
    std::string output_name(std::size_t i) const override {
        return function_.descriptor.outputs[i]->name;
    }
    std::vector<Array> forward(std::span<const Array> inputs) const override;
    void unchain() override;

private:
    class KernelGradients;
    using Words = SmallVector<std::uint64_t, 1>;

    CallNode(FunctionEntry& function, const BoundAttributes& attributes, ForwardResult& forward);
    void backward(std::span<const Array> gy, BackwardPass& pass) override;
    void gradients(std::span<const Variable> gy, std::span<const bool> wanted,
                   std::span<Variable> gx) override;
    template <class Wanted>
    Words targets_of(const Wanted& wanted) const;
    bool run_kernel(DeviceState& device, std::uint64_t key, std::span<const Array> gy,
                    BackwardPass& pass);
    void call_grad_function(std::span<const Variable> x, std::span<const Variable> y,
                            std::span<const Variable> gy, std::span<const bool> wanted,
                            std::span<Variable> gx);
    void call_gradient(std::span<const Variable> x, std::span<const Variable> y,
                       std::span<const Variable> gy, const Words& targets, std::span<Variable> gx);

    FunctionEntry& function_;
    const Ref<const BoundAttributes> attributes_;
    DeviceState* const device_;  // where forward ran
    const catena_kernel* const paired_;
    const std::uint64_t key_;
    const std::uint32_t flags_;
    SmallVector<Array, 2> saved_;
};

[[noreturn]] void throw_released(std::string_view label, const std::string& input);
// Throws GraphError if one of the inputs must not be next to volatile variables.
void check_volatile(std::span<const Variable* const> inputs, std::string_view label,
                    const std::function<std::string(std::size_t)>& name_of);

}  // namespace catena
