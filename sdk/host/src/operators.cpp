// Operators: each is one registered function.
#include <catena/bound_function.hpp>
#include <catena/operators.hpp>

namespace catena {
namespace {

Variable with_constant(BoundFunction<double>& function, const Variable& x, double c) {
    return function(c).first({&x});
}

}  // namespace

Variable operator+(const Variable& x0, const Variable& x1) {
    static const PluginFunction add("catena.add");
    return add.first({&x0, &x1});
}

Variable operator-(const Variable& x0, const Variable& x1) {
    static const PluginFunction sub("catena.sub");
    return sub.first({&x0, &x1});
}

Variable operator*(const Variable& x0, const Variable& x1) {
    static const PluginFunction mul("catena.mul");
    return mul.first({&x0, &x1});
}

Variable operator/(const Variable& x0, const Variable& x1) {
    static const PluginFunction div("catena.div");
    return div.first({&x0, &x1});
}

Variable pow(const Variable& x0, const Variable& x1) {
    static const PluginFunction pow("catena.pow");
    return pow.first({&x0, &x1});
}

Variable operator-(const Variable& x) {
    static const PluginFunction neg("catena.neg");
    return neg.first({&x});
}

Variable operator+(const Variable& x, double c) {
    thread_local BoundFunction<double> function("catena.add_constant", {"value"});
    return with_constant(function, x, c);
}

Variable operator*(const Variable& x, double c) {
    thread_local BoundFunction<double> function("catena.mul_constant", {"value"});
    return with_constant(function, x, c);
}

Variable operator-(double c, const Variable& x) {
    thread_local BoundFunction<double> function("catena.sub_from_constant", {"value"});
    return with_constant(function, x, c);
}

Variable operator/(double c, const Variable& x) {
    thread_local BoundFunction<double> function("catena.div_from_constant", {"value"});
    return with_constant(function, x, c);
}

Variable pow(const Variable& x, double c) {
    thread_local BoundFunction<double> function("catena.pow_var_const", {"value"});
    return with_constant(function, x, c);
}

Variable pow(double c, const Variable& x) {
    thread_local BoundFunction<double> function("catena.pow_const_var", {"value"});
    return with_constant(function, x, c);
}

}  // namespace catena
