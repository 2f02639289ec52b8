// The graph's node of a call of a registered function.
#pragma once

#include "dispatch/dispatch.hpp"

#include <catena/core/graph.hpp>

namespace catena {

class CallNode final : public GraphNode {
public:
    // Makes the node and connects it with inputs and result.
    static void record(FunctionEntry& function, const BoundAttributes& attributes,
                       std::span<const Variable* const> inputs, ForwardResult forward,
                       const Config& now, CallResult& result);

    std::string_view label() const noexcept override { return function_.descriptor.name; }
    std::string input_name(std::size_t i) const override {
        return function_.input_name(static_cast<std::uint32_t>(i));
    }
    std::string output_name(std::size_t i) const override {
        return function_.descriptor.outputs[i]->name;
    }
    std::vector<Array> forward(std::span<const Array> inputs) const override;
    void backward(std::span<const Array> gy) override;
    void backward(std::span<const Variable> gy) override;
    void unchain() override;

private:
    CallNode(FunctionEntry& function, const BoundAttributes& attributes);

    using Words = SmallVector<std::uint64_t, 1>;
    Words targets() const;
    bool run_kernel(DeviceState& device, std::uint64_t key, std::span<const Array> gy,
                    const Words& targets);
    SmallVector<Variable, 4> compose(std::span<const Variable> gy, const Words& targets,
                                     bool record);
    Variable retained_input(std::size_t i, bool record);
    Variable retained_output(std::size_t i, bool record);
    void check_retained() const;

    FunctionEntry& function_;
    Ref<const BoundAttributes> attributes_;
    DeviceState* device_ = nullptr;  // where forward ran
    const catena_kernel* paired_ = nullptr;
    std::uint64_t key_ = 0;
    std::uint32_t flags_ = 0;
    // Retained arrays, none where not retained, and their versions when they were: x, then y.
    SmallVector<Array, 4> x_;
    SmallVector<Array, 2> y_;
    SmallVector<std::uint32_t, 6> versions_;
    SmallVector<Array, 2> saved_;
};

}  // namespace catena
