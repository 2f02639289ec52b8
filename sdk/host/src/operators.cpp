// Operators, which call registered functions; F::split_axis, which calls get_item; and F::copy.
#include "support.hpp"

#include <catena/cuda/device.hpp>
#include <catena/function_forms.hpp>
#include <catena/function_node.hpp>

#include <cmath>
#include <limits>

namespace catena {
namespace {

bool is_mask(const Array& x) { return x && x.body()->meta.dtype.code == CATENA_CODE_BOOL; }
bool is_mask(const Variable& x) { return x && is_mask(x.data()); }

// Converts a mask to 1 and 0 in float32, for calls without another array that determines the dtype.
Array numbers(const Array& x) { return x.astype(Dtype::float32); }
Variable numbers(const Variable& x) {
    const Variable result = as_variable(numbers(x.data()));
    result.set_volatile(x.is_volatile());
    return result;
}

Variable run(const PluginFunction& function, const Variable& x) { return function.first({&x}); }
Array run(const PluginFunction& function, const Array& x) {
    return function.first(std::span(&x, 1));
}
Variable run(const PluginFunction& function, const Variable& x0, const Variable& x1) {
    return function.first({&x0, &x1});
}
Array run(const PluginFunction& function, const Array& x0, const Array& x1) {
    const Array inputs[] = {x0, x1};
    return function.first(inputs);
}

template <class X>
X call(const PluginFunction& function, const X& x) {
    return is_mask(x) ? run(function, numbers(x)) : run(function, x);
}
// Whether x0 and x1 have different floating dtypes and one is float32, the dtype of a mask with a number.
bool may_have_mask(const Array& x0, const Array& x1) {
    if (!x0 || !x1 || x0.dtype() == x1.dtype()) return false;
    return is_floating(x0.dtype()) && is_floating(x1.dtype()) &&
           (x0.dtype() == Dtype::float32 || x1.dtype() == Dtype::float32);
}

template <class X>
X call(const PluginFunction& function, const X& x0, const X& x1) try {
    return is_mask(x0) && is_mask(x1) ? run(function, numbers(x0), numbers(x1))
                                      : run(function, x0, x1);
} catch (const DtypeError& error) {
    if (!may_have_mask(detail::elements(x0), detail::elements(x1))) throw;
    fail<DtypeError>(
        "{} (a bool array with a number, as in 2 * (x > 0) * y, is float32: write 2 * y * (x > 0))",
        error.what());
}

// Converts 1 and 0, as comparisons return them, to a mask.
Array mask(const Array& x) { return x.astype(Dtype::bool8); }

void expect_mask(const char* what, const Array& x) {
    if (!is_mask(x))
        fail<DtypeError>("[{}] operand: expected a bool array, got {}", what,
                         x ? name(x.dtype()) : "an empty handle");
}

// Returns c in the dtype and on the device of x. Throws if x has integers and c is none in their range.
Array scalar(double c, const Array& x) {
    const double limit = x.dtype() == Dtype::int32 ? 0x1p31 : 0x1p63;
    if (!is_floating(x.dtype()) && !(c == std::trunc(c) && c >= -limit && c < limit))
        fail<DtypeError>("[comparison] number: expected an {}, got {}", name(x.dtype()), c);
    return Array::full({}, c, x.dtype(), x.device());
}

const Array& assign(const char* op, const Array& x, const Array& result) {
    if (result.shape() != x.shape())
        fail<ShapeError>(
            "[{}] y: expected a shape that broadcasts to {} of x, got one that gives {}", op,
            to_string(x.shape()), to_string(result.shape()));
    x.copy_from(result);
    return x;
}

}  // namespace

// Define each operator for variables and for arrays.
#define CATENA_OF_TWO(OPERATOR, NAME)                           \
    Variable OPERATOR(const Variable& x0, const Variable& x1) { \
        return call(plain<NAME>(), x0, x1);                     \
    }                                                           \
    Array OPERATOR(const Array& x0, const Array& x1) { return call(plain<NAME>(), x0, x1); }
#define CATENA_WITH_NUMBER(OPERATOR, NAME)                                                     \
    Variable OPERATOR(const Variable& x, double c) { return call(with<NAME, "value">(c), x); } \
    Array OPERATOR(const Array& x, double c) { return call(with<NAME, "value">(c), x); }
#define CATENA_OF_NUMBER(OPERATOR, NAME)                                                       \
    Variable OPERATOR(double c, const Variable& x) { return call(with<NAME, "value">(c), x); } \
    Array OPERATOR(double c, const Array& x) { return call(with<NAME, "value">(c), x); }

CATENA_OF_TWO(operator+, "catena.add")
CATENA_OF_TWO(operator-, "catena.sub")
CATENA_OF_TWO(operator*, "catena.mul")
CATENA_OF_TWO(operator/, "catena.div")
CATENA_OF_TWO(pow, "catena.pow")
CATENA_OF_TWO(dot, "catena.matmul")
CATENA_WITH_NUMBER(operator+, "catena.add_constant")
CATENA_WITH_NUMBER(operator*, "catena.mul_constant")
CATENA_WITH_NUMBER(pow, "catena.pow_var_const")
CATENA_OF_NUMBER(operator-, "catena.sub_from_constant")
CATENA_OF_NUMBER(operator/, "catena.div_from_constant")
CATENA_OF_NUMBER(pow, "catena.pow_const_var")
Variable operator-(const Variable& x) { return call(plain<"catena.neg">(), x); }
Array operator-(const Array& x) { return call(plain<"catena.neg">(), x); }

const Array& operator+=(const Array& x, const Array& y) {
    if (!x) {
        throw InvalidError(
            "[+=] x: expected an array, got an empty handle; initialize it first, for example with "
            "x = Array::zeros(shape)");
    }
    return assign("+=", x, x + y);
}
const Array& operator-=(const Array& x, const Array& y) { return assign("-=", x, x - y); }
const Array& operator*=(const Array& x, const Array& y) { return assign("*=", x, x * y); }
const Array& operator/=(const Array& x, const Array& y) { return assign("/=", x, x / y); }
const Array& operator+=(const Array& x, double c) { return assign("+=", x, x + c); }
const Array& operator*=(const Array& x, double c) { return assign("*=", x, x * c); }

Array operator>(const Array& x0, const Array& x1) {
    return mask(call(plain<"catena.greater">(), x0, x1));
}
Array operator>=(const Array& x0, const Array& x1) {
    return mask(call(plain<"catena.greater_equal">(), x0, x1));
}
Array operator>(const Array& x, double c) { return x > scalar(c, x); }
Array operator>=(const Array& x, double c) { return x >= scalar(c, x); }
Array operator<(const Array& x, double c) { return scalar(c, x) > x; }
Array operator<=(const Array& x, double c) { return scalar(c, x) >= x; }

Array operator&(const Array& x0, const Array& x1) {
    expect_mask("&", x0);
    expect_mask("&", x1);
    return mask(x0 * x1);
}
Array operator|(const Array& x0, const Array& x1) {
    expect_mask("|", x0);
    expect_mask("|", x1);
    return mask(x0 + x1);
}
Array operator~(const Array& x) {
    expect_mask("~", x);
    return mask(1 - x);
}

}  // namespace catena

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

// The graph node of F::copy, which is not in a plugin, because calls of plugins use a single device.
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

// Returns the GPU with this number, or the host for -1. If there are no GPUs, an x on the host stays there.
template <class X>
Device target(const X& x, int gpu) {
    if (gpu == -1) return cuda::host();
    const bool stays = x && gpu >= 0 && !cuda::available() && x.device() == cuda::host();
    return stays ? x.device() : cuda::get_device(gpu);
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
