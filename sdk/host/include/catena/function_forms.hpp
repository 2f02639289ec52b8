// Functions of the host, and Chainer's overloads: numbers, several variables, an explicit mode.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/core/config.hpp>
#include <catena/functions/creation.hpp>
#include <catena/functions/indexing.hpp>
#include <catena/functions/logic.hpp>
#include <catena/functions/shapes.hpp>

namespace catena::functions {

// Copies x into new memory on a device, which may be its own. The gradient is copied back.
Variable copy(const Variable& x, Device device);
Array copy(const Array& x, Device device);
// The same with the name of a device, as in Device::get(): F::copy(x, "cpu:1").
inline Variable copy(const Variable& x, std::string_view device) {
    return copy(x, Device::get(device));
}
inline Array copy(const Array& x, std::string_view device) { return copy(x, Device::get(device)); }
// Copies to the GPU with this number, as in cuda::get_device(): F::copy(x, 1). -1 is the host, as
// in Chainer. On a machine without a GPU, an x on the host is copied within host memory, so
// programs for several GPUs run on the host. Throws DeviceError if there is no such GPU.
Variable copy(const Variable& x, int gpu);
Array copy(const Array& x, int gpu);

// Splits x along an axis (negative: from the last) before each index, into one more piece than
// there are indices. The indices must be within 0 and the axis's length and must not decrease.
// Pieces are copies and may be empty. Differentiable to any order. Works like Chainer's and
// numpy.split(). Throws ShapeError; InvalidError for an empty handle.
std::vector<Variable> split_axis(const Variable& x, Ints indices, int axis);
std::vector<Array> split_axis(const Array& x, Ints indices, int axis);

// The indices for sections of equal length. Throws ShapeError if the length is not divisible.
std::vector<std::int64_t> section_ends(const Shape& shape, std::int64_t sections, int axis);

// Splits into sections of equal length. A list, even {2}, is a list of indices.
template <std::integral N>
std::vector<Variable> split_axis(const Variable& x, N sections, int axis) {
    return split_axis(x, section_ends(x.shape(), sections, axis), axis);
}
template <std::integral N>
std::vector<Array> split_axis(const Array& x, N sections, int axis) {
    return split_axis(x, section_ends(x.shape(), sections, axis), axis);
}

// F::pow(x, 2), F::pow(2, x): catena::pow() with a number.
template <Operand X>
X pow(const X& x, Scalar exponent) {
    return catena::pow(x, exponent);
}
template <Operand X>
X pow(Scalar base, const X& x) {
    return catena::pow(base, x);
}

// The average with its arguments in Chainer's order.
template <Operand X>
X average(const X& x, Ints axis, const std::type_identity_t<X>& weights = {},
          bool keepdims = false) {
    return average(x, weights, axis, keepdims);
}

// tensordot() of the last `axes` axes of a and the first ones of b.
template <Operand X>
X tensordot(const X& a, const X& b, int axes = 2) {
    const int most = a && b ? std::min(a.ndim(), b.ndim()) : axes;
    if (axes < 0 || axes > most)
        throw ShapeError("[tensordot] axes: expected 0 to " + std::to_string(most) + ", for " +
                         to_string(a.shape()) + " and " + to_string(b.shape()) + ", got " +
                         std::to_string(axes));
    std::vector<std::int64_t> of_a, of_b;
    for (int d = 0; d < axes; ++d) of_a.push_back(d - axes), of_b.push_back(d);
    return tensordot(a, b, of_a, of_b);
}

// einsum() with the subscripts first: F::einsum("ij,jk->ik", {a, b}), F::einsum("ij,jk->ik", a, b).
inline Variable einsum(std::string_view subscripts, const VariableList& operands) {
    return einsum(operands, subscripts);
}
inline Array einsum(std::string_view subscripts, const ArrayList& operands) {
    return einsum(operands, subscripts);
}
template <Operand X, std::same_as<X>... Others>
X einsum(std::string_view subscripts, const X& first, const Others&... others) {
    const X operands[] = {first, others...};
    return einsum(ListOf<X>(std::span<const X>(operands)), subscripts);
}

// swiglu() of the halves of x along an axis.
template <Operand X>
X swiglu(const X& x, std::int64_t axis = -1) {
    return swiglu_halves(x, axis);
}

// Returns several inputs unchanged: const auto [a, b] = F::identity(x, y).
template <Operand X, std::same_as<X>... Others>
    requires(sizeof...(Others) > 0)
std::array<X, 1 + sizeof...(Others)> identity(const X& x, const Others&... others) {
    return {identity(x), identity(others)...};
}

// Dropout if train, else a view of x, independent of config().train.
template <Operand X>
X dropout(const X& x, double ratio, bool train) {
    if (!train) {
        const Shape shape = x.shape();
        return reshape(x, shape);
    }
    const using_config scope(&Config::train, true);
    return dropout(x, ratio);
}

}  // namespace catena::functions
