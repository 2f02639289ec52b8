// F::split_axis by get_item, and F::copy.
#include <catena/cuda/device.hpp>
#include <catena/fail.hpp>
#include <catena/function_forms.hpp>
#include <catena/function_node.hpp>

#include <fmt/ranges.h>

#include <limits>

namespace catena::functions {
namespace {

int axis_index(const Shape& shape, int axis) {
    const int n = shape.ndim();
    if (axis < -n || axis >= n)
        fail<ShapeError>("[split_axis] axis: expected one of {}, got {}", to_string(shape), axis);
    return axis < 0 ? axis + n : axis;
}

template <class X>
std::vector<X> split(const X& x, std::span<const std::int64_t> indices, int axis) {
    if (!x) throw InvalidError("[split_axis] x: expected an array, got an empty handle");
    const Shape shape = x.shape();
    const auto d = static_cast<std::size_t>(axis_index(shape, axis));
    const std::int64_t length = shape[static_cast<int>(d)];
    std::vector<std::int64_t> begin(d + 1, 0);
    std::vector<std::int64_t> end(d + 1, std::numeric_limits<std::int64_t>::max());
    std::vector<X> pieces;
    for (std::size_t i = 0; i <= indices.size(); ++i) {
        end[d] = i < indices.size() ? indices[i] : length;
        if (end[d] < begin[d] || end[d] > length)
            fail<ShapeError>(
                "[split_axis] indices: expected nondecreasing indices from 0 to {}, got [{}]",
                length, fmt::join(indices, ", "));
        pieces.push_back(get_item(x, begin, end));
        begin[d] = end[d];
    }
    return pieces;
}

}  // namespace

std::vector<Variable> split_axis(const Variable& x, Ints indices, int axis) {
    return split(x, indices.view(), axis);
}
std::vector<Array> split_axis(const Array& x, Ints indices, int axis) {
    return split(x, indices.view(), axis);
}

std::vector<std::int64_t> section_ends(const Shape& shape, std::int64_t sections, int axis) {
    const std::int64_t length = shape[axis_index(shape, axis)];
    if (sections < 1 || length % sections != 0)
        fail<ShapeError>(
            "[split_axis] sections: expected a divisor of {}, the length of axis {} of {}, got {}",
            length, axis, to_string(shape), sections);
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 1; i < sections; ++i) indices.push_back(i * (length / sections));
    return indices;
}

// F::copy is a node of the host: plugins never see two devices at once.
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
