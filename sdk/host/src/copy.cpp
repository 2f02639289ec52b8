// F::copy as a node of the host: plugins never see two devices at once.
#include <catena/copy.hpp>
#include <catena/core/error.hpp>
#include <catena/cuda/device.hpp>
#include <catena/function_node.hpp>

namespace catena::functions {
namespace {

class Copy final : public FunctionNode {
public:
    explicit Copy(Device device) : device_(device) {}
    std::string label() const override { return "copy"; }

private:
    std::vector<Array> forward(std::span<const Array> inputs) override {
        source_ = inputs[0].device();
        return {copy(inputs[0], device_)};
    }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable> grad_outputs) override {
        return {copy(grad_outputs[0], source_)};
    }

    Device device_;
    Device source_;
};

// The GPU of that number, or the host for -1; x's own device if it is the host and there is no GPU.
template <class X>
Device target(const X& x, int gpu) {
    if (gpu == -1) return cuda::host();
    const bool stays = x && gpu >= 0 && !cuda::available() && x.device() == cuda::host();
    return stays ? x.device() : cuda::get_device(gpu);
}

}  // namespace

Variable copy(const Variable& x, Device device) {
    if (!x) throw InvalidError("[copy] x: expected a variable, got an empty handle");
    return apply<Copy>({x}, device)[0];
}

Array copy(const Array& x, Device device) {
    if (!x) throw InvalidError("[copy] x: expected an array, got an empty handle");
    if (!device) throw InvalidError("[copy] device: expected a device, got none");
    return x.device() == device ? x.copy() : x.to(device);
}

Variable copy(const Variable& x, int gpu) { return copy(x, target(x, gpu)); }
Array copy(const Array& x, int gpu) { return copy(x, target(x, gpu)); }

}  // namespace catena::functions
