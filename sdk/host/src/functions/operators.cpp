// Operators, which call registered functions; F::split_axis, which calls get_item; and F::copy.
#include "promotion.hpp"

#include <catena/cuda/device.hpp>
#include <catena/function_forms.hpp>
#include <catena/function_node.hpp>

#include <cmath>
#include <limits>

namespace catena {

Dtype common_dtype(Dtype a, Dtype b) {
    const auto rank = [](Dtype d) {
        switch (d) {
            case Dtype::bool8: return 0;
            case Dtype::uint8: return 1;
            case Dtype::int32: return 2;
            case Dtype::int64: return 3;
            default: return 4;
        }
    };
    return rank(a) < rank(b) ? b : a;
}
Dtype common_dtype(Dtype x, Scalar c) {
    if (is_floating(x)) return x;
    if (c.is_wide_integer())
        fail<DtypeError>(
            "[number] expected an integer from -2^63 to 2^63 - 1 next to {}, got {:.0f}", name(x),
            c.value());
    if (!c.is_integer()) return Dtype::float32;
    if (x != Dtype::int64 && static_cast<std::int32_t>(c.integer()) != c.integer())
        fail<DtypeError>("[number] expected an integer from -2^31 to 2^31 - 1 next to {}, got {}",
                         name(x), c.integer());
    return arithmetic_dtype(x);
}
Variable promoted(const Variable& x, Dtype dtype) {
    if (is_floating(x.data()) || x.dtype() == dtype) return x;
    const Variable result = as_variable(x.data().astype(dtype));
    result.set_volatile(x.is_volatile());
    return result;
}

namespace {

// Returns an integer as a 0-d array of an integer dtype. A double would round integers above 2^53.
Array integer_in(Dtype dtype, std::int64_t value, Device device) {
    return Array::from({value}, {}, device).astype(dtype);
}
// Whether c, next to x, must be an array, because it is an integer that a double rounds.
template <class X>
bool needs_array(const X& x, Scalar c) {
    constexpr std::int64_t limit = std::int64_t{1} << 53;
    return c.is_integer() && (c.integer() > limit || c.integer() < -limit) && x &&
           !is_floating(elements(x));
}
template <class X>
X array_next_to(const X& x, Scalar c) {
    return constant(
        x, integer_in(computed_dtype(common_dtype(x.dtype(), c)), c.integer(), x.device()));
}

// Returns whether float32 x may be a mask times a number: it has zeros and one other value.
bool is_like_mask(const Array& x) {
    const std::vector<float> v = x.to_vector<float>();
    const auto other = std::ranges::find_if(v, [](float e) { return e != 0; });
    return other != v.end() && std::ranges::find(v, 0.0F) != v.end() &&
           std::all_of(other, v.end(), [&](float e) { return e == 0 || e == *other; });
}

// Calls a function of operands that are not both of one floating dtype.
template <bool floats, class X>
[[gnu::noinline]] X call_promoted(const PluginFunction& function, const X& x0, const X& x1) {
    if (!x0 || !x1) return run(function, x0, x1);  // which reports it
    const Dtype a = x0.dtype();
    const Dtype b = x1.dtype();
    if (is_floating(a) && is_floating(b)) {
        try {
            return run(function, x0, x1);
        } catch (const DtypeError& error) {
            const bool is_mask_times = (a == Dtype::float32 && is_like_mask(elements(x0))) ||
                                       (b == Dtype::float32 && is_like_mask(elements(x1)));
            if (!is_mask_times) throw;
            fail<DtypeError>(
                "{} (integers and bool with a floating number, as in 0.5 * (x > 0) * y, are "
                "float32: write 0.5 * y * (x > 0))",
                error.what());
        }
    }
    Dtype dtype = arithmetic_dtype(common_dtype(a, b));
    if (floats && !is_floating(dtype)) dtype = Dtype::float32;
    return run_in(
        dtype, [&](const X& y0, const X& y1) { return run(function, y0, y1); }, x0, x1);
}
template <bool floats = false, class X>
X call(const PluginFunction& function, const X& x0, const X& x1) {
    if (x0 && x1 && same_dtype(elements(x0), elements(x1)) && is_floating(elements(x0))) [[likely]]
        return run(function, x0, x1);
    return call_promoted<floats>(function, x0, x1);
}

// Calls a function of a number, which is bound to it. `floats`: the function has no integers.
template <bool floats = false, class X>
X call(const PluginFunction& function, const X& x, Scalar c) {
    if (x && !is_floating(elements(x))) [[unlikely]]
        return run_in(
            floats ? Dtype::float32 : common_dtype(x.dtype(), c),
            [&](const X& y) { return run(function, y); }, x);
    return run(function, x);
}
// The same. An integer that a double rounds is an operand of the function of two arrays instead.
template <Name of_number, Name of_two, bool number_first = false, bool floats = false, class X>
X call(const X& x, Scalar c) {
    if (!floats && needs_array(x, c)) [[unlikely]] {
        const X number = array_next_to(x, c);
        return call(plain<of_two>(), number_first ? number : x, number_first ? x : number);
    }
    return call<floats>(with<of_number, "value">(c.value()), x, c);
}

template <std::same_as<Array>... Masks>
Array of_masks(const char* what, const PluginFunction& function, const Masks&... masks) {
    for (const Array* x : {&masks...})
        if (!*x || x->dtype() != Dtype::bool8)
            fail<DtypeError>("[{}] operand: expected a bool array, got {}", what,
                             *x ? name(x->dtype()) : "an empty handle");
    return run(function, masks...);
}

const Array& assign(const char* op, const Array& x, const Array& result) {
    if (result.shape() != x.shape())
        fail<ShapeError>(
            "[{}] y: expected a shape that broadcasts to {} of x, got one that gives {}", op,
            to_string(x.shape()), to_string(result.shape()));
    if (result.dtype() != x.dtype())
        fail<DtypeError>("[{}] y: expected a dtype that gives {} of x, got one that gives {}", op,
                         name(x.dtype()), name(result.dtype()));
    x.copy_from(result);
    return x;
}

// The number as an array, because x / 49 would multiply by the rounded 1 / 49.
template <bool number_first, class X>
X floor_divide_of(const X& x, Scalar c) {
    expect("floor_divide", "x", x);
    const Dtype dtype = common_dtype(x.dtype(), c);
    const bool floats = is_floating(dtype);
    const X number =
        constant(x, floats ? Array::full({}, c.value(), dtype, x.device())
                           : integer_in(computed_dtype(dtype), c.integer(), x.device()));
    return run_in(
        dtype,
        [&](const X& y) {
            const PluginFunction& function = plain<"catena.floor_divide">();
            return number_first ? run(function, number, y) : run(function, y, number);
        },
        x);
}

}  // namespace

#define CATENA_OPERATORS(X)                                                                        \
    X operator+(const X& x0, const X& x1) { return call(plain<"catena.add">(), x0, x1); }          \
    X operator-(const X& x0, const X& x1) { return call(plain<"catena.sub">(), x0, x1); }          \
    X operator*(const X& x0, const X& x1) { return call(plain<"catena.mul">(), x0, x1); }          \
    X operator/(const X& x0, const X& x1) { return call<true>(plain<"catena.div">(), x0, x1); }    \
    X pow(const X& x0, const X& x1) { return call(plain<"catena.pow">(), x0, x1); }                \
    X dot(const X& a, const X& b) { return call(plain<"catena.matmul">(), a, b); }                 \
    X operator-(const X& x) { return call(plain<"catena.neg">(), x, 1); }                          \
    X operator+(const X& x, Scalar c) { return call<"catena.add_constant", "catena.add">(x, c); }  \
    X operator*(const X& x, Scalar c) { return call<"catena.mul_constant", "catena.mul">(x, c); }  \
    X operator-(Scalar c, const X& x) {                                                            \
        return call<"catena.sub_from_constant", "catena.sub", true>(x, c);                         \
    }                                                                                              \
    X operator/(Scalar c, const X& x) {                                                            \
        return call<"catena.div_from_constant", "catena.div", true, true>(x, c);                   \
    }                                                                                              \
    X pow(const X& x, Scalar c) { return call<"catena.pow_var_const", "catena.pow">(x, c); }       \
    X pow(Scalar c, const X& x) { return call<"catena.pow_const_var", "catena.pow", true>(x, c); } \
    X floor_divide(const X& x0, const X& x1) {                                                     \
        return call(plain<"catena.floor_divide">(), x0, x1);                                       \
    }                                                                                              \
    X floor_divide(const X& x, Scalar c) { return floor_divide_of<false>(x, c); }                  \
    X floor_divide(Scalar c, const X& x) { return floor_divide_of<true>(x, c); }
CATENA_OPERATORS(Variable)
CATENA_OPERATORS(Array)
#undef CATENA_OPERATORS

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
const Array& operator+=(const Array& x, Scalar c) { return assign("+=", x, x + c); }
const Array& operator*=(const Array& x, Scalar c) { return assign("*=", x, x * c); }

Array operator&(const Array& x0, const Array& x1) {
    return of_masks("&", plain<"catena.minimum">(), x0, x1);
}
Array operator|(const Array& x0, const Array& x1) {
    return of_masks("|", plain<"catena.maximum">(), x0, x1);
}
Array operator~(const Array& x) { return of_masks("~", plain<"catena.invert">(), x); }

}  // namespace catena

namespace catena::functions {
namespace {

template <class X>
std::vector<X> split(const X& x, std::span<const std::int64_t> indices, int axis) {
    const Shape shape = expect("split_axis", "x", x).shape();
    const auto d = static_cast<std::size_t>(axis_index("split_axis", axis, shape));
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
    const std::int64_t length = shape[axis_index("split_axis", axis, shape)];
    if (sections < 1 || length % sections != 0)
        fail<ShapeError>(
            "[split_axis] sections: expected a divisor of {}, the length of axis {} of {}, got {}",
            length, axis, to_string(shape), sections);
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 1; i < sections; ++i) indices.push_back(i * (length / sections));
    return indices;
}

Variable copy(const Variable& x, Device device) {
    return apply<Copy>({expect("copy", "x", x)}, device)[0];
}

Array copy(const Array& x, Device device) {
    expect("copy", "x", x);
    if (!device) throw InvalidError("[copy] device: expected a device, got none");
    return x.device() == device ? x.copy() : x.to(device);
}

Variable copy(const Variable& x, int gpu) { return copy(x, target(x, gpu)); }
Array copy(const Array& x, int gpu) { return copy(x, target(x, gpu)); }

}  // namespace catena::functions
