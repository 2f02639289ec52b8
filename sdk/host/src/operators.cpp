// Operators: each is one registered function.
#include <catena/bound_function.hpp>
#include <catena/core/error.hpp>
#include <catena/operators.hpp>

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace catena {
namespace {

bool is_mask(const Array& x) { return x && x.body()->meta.dtype.code == CATENA_CODE_BOOL; }
bool is_mask(const Variable& x) { return x && is_mask(x.data()); }

// A mask as 1 and 0, where no other array says in which dtype.
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
// True if x0 and x1 are floating arrays of different dtypes, and one is float32 as masks with numbers are.
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
    throw DtypeError(fmt::format(
        "{} (a bool array with a number, as in 2 * (x > 0) * y, is float32: write 2 * y * (x > 0))",
        error.what()));
}

// Comparisons' 1 and 0 as a mask.
Array mask(const Array& x) { return x.astype(Dtype::bool8); }

void expect_mask(const char* what, const Array& x) {
    if (!is_mask(x)) {
        throw DtypeError(fmt::format("[{}] operand: expected a bool array, got {}", what,
                                     x ? name(x.dtype()) : "an empty handle"));
    }
}

// A number beside x; integers are compared with integers.
Array scalar(double c, const Array& x) {
    const double limit = x.dtype() == Dtype::int32 ? 0x1p31 : 0x1p63;
    if (!is_floating(x.dtype()) && !(c == std::trunc(c) && c >= -limit && c < limit)) {
        throw DtypeError(
            fmt::format("[comparison] number: expected an {}, got {}", name(x.dtype()), c));
    }
    return Array::full({}, c, x.dtype(), x.device());
}

using WithConstant = ThreadFunction<double>;

const PluginFunction& add() {
    static const PluginFunction function("catena.add");
    return function;
}
const PluginFunction& sub() {
    static const PluginFunction function("catena.sub");
    return function;
}
const PluginFunction& mul() {
    static const PluginFunction function("catena.mul");
    return function;
}
const PluginFunction& div() {
    static const PluginFunction function("catena.div");
    return function;
}
const PluginFunction& power() {
    static const PluginFunction function("catena.pow");
    return function;
}
const PluginFunction& matmul() {
    static const PluginFunction function("catena.matmul");
    return function;
}
const PluginFunction& neg() {
    static const PluginFunction function("catena.neg");
    return function;
}
const PluginFunction& greater() {
    static const PluginFunction function("catena.greater");
    return function;
}
const PluginFunction& greater_equal() {
    static const PluginFunction function("catena.greater_equal");
    return function;
}
const PluginFunction& add(double c) {
    thread_local constinit WithConstant function("catena.add_constant", {"value"});
    return function(c);
}
const PluginFunction& mul(double c) {
    thread_local constinit WithConstant function("catena.mul_constant", {"value"});
    return function(c);
}
const PluginFunction& sub_from(double c) {
    thread_local constinit WithConstant function("catena.sub_from_constant", {"value"});
    return function(c);
}
const PluginFunction& div_from(double c) {
    thread_local constinit WithConstant function("catena.div_from_constant", {"value"});
    return function(c);
}
const PluginFunction& power_to(double c) {
    thread_local constinit WithConstant function("catena.pow_var_const", {"value"});
    return function(c);
}
const PluginFunction& power_of(double c) {
    thread_local constinit WithConstant function("catena.pow_const_var", {"value"});
    return function(c);
}

}  // namespace

Variable operator+(const Variable& x0, const Variable& x1) { return call(add(), x0, x1); }
Variable operator-(const Variable& x0, const Variable& x1) { return call(sub(), x0, x1); }
Variable operator*(const Variable& x0, const Variable& x1) { return call(mul(), x0, x1); }
Variable operator/(const Variable& x0, const Variable& x1) { return call(div(), x0, x1); }
Variable pow(const Variable& x0, const Variable& x1) { return call(power(), x0, x1); }
Variable dot(const Variable& a, const Variable& b) { return call(matmul(), a, b); }
Variable operator-(const Variable& x) { return call(neg(), x); }
Variable operator+(const Variable& x, double c) { return call(add(c), x); }
Variable operator*(const Variable& x, double c) { return call(mul(c), x); }
Variable operator-(double c, const Variable& x) { return call(sub_from(c), x); }
Variable operator/(double c, const Variable& x) { return call(div_from(c), x); }
Variable pow(const Variable& x, double c) { return call(power_to(c), x); }
Variable pow(double c, const Variable& x) { return call(power_of(c), x); }

Array operator+(const Array& x0, const Array& x1) { return call(add(), x0, x1); }
Array operator-(const Array& x0, const Array& x1) { return call(sub(), x0, x1); }
Array operator*(const Array& x0, const Array& x1) { return call(mul(), x0, x1); }
Array operator/(const Array& x0, const Array& x1) { return call(div(), x0, x1); }
Array pow(const Array& x0, const Array& x1) { return call(power(), x0, x1); }
Array dot(const Array& a, const Array& b) { return call(matmul(), a, b); }
Array operator-(const Array& x) { return call(neg(), x); }
Array operator+(const Array& x, double c) { return call(add(c), x); }
Array operator*(const Array& x, double c) { return call(mul(c), x); }
Array operator-(double c, const Array& x) { return call(sub_from(c), x); }
Array operator/(double c, const Array& x) { return call(div_from(c), x); }
Array pow(const Array& x, double c) { return call(power_to(c), x); }
Array pow(double c, const Array& x) { return call(power_of(c), x); }

namespace {

const Array& assign(const char* op, const Array& x, const Array& result) {
    if (result.shape() != x.shape()) {
        throw ShapeError(fmt::format(
            "[{}] y: expected a shape that broadcasts to {} of x, got one that gives {}", op,
            to_string(x.shape()), to_string(result.shape())));
    }
    x.copy_from(result);
    return x;
}

}  // namespace

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

Array operator>(const Array& x0, const Array& x1) { return mask(call(greater(), x0, x1)); }
Array operator>=(const Array& x0, const Array& x1) { return mask(call(greater_equal(), x0, x1)); }
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
