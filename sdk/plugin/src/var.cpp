// The operators of Var: calls of the host's functions, with constants folded.
#include "catena/plugin/var.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "catena/plugin/math.hpp"

namespace catena::plugin {

using Integers = Row<std::int64_t, std::int32_t, std::uint8_t, bool>;

Meta Var::meta() const {
    Meta meta;
    meta.struct_size = sizeof(catena_meta);
    check_status(host().meta(ctx_, var_, &meta));
    return meta;
}

Var scalar_like(const Var& x, double value) {
    return call<"catena.scalar_like">({x}, {set("value", value)});
}

void detail::call_all(std::atomic<const catena_callable*>& found, const char* name,
                      std::span<const Var> inputs, std::span<const catena_named_value> attrs,
                      std::span<Var> y) {
    const Var* first = nullptr;
    for (const Var& input : inputs)
        if (first == nullptr && !input.is_constant()) first = &input;
    catena_ctx* const ctx = first == nullptr ? callback.ctx : first->context();
    const catena_callable* callable = found.load(std::memory_order_relaxed);
    if (callable == nullptr) {
        check_status(host().find(ctx, name, &callable));
        found.store(callable, std::memory_order_relaxed);
    }
    std::array<catena_var*, CATENA_MAX_PORTS> few;
    std::vector<catena_var*> many(inputs.size() > few.size() ? inputs.size() : 0);
    catena_var** const x = many.empty() ? few.data() : many.data();
    std::uint32_t n_x = 0;
    for (const Var& input : inputs) {
        if (!input.is_constant() || input.is_missing()) {
            x[n_x++] = input.get();
            continue;
        }
        if (first == nullptr)
            throw Error(CATENA_E_INTERNAL, std::string(name) + ": constants alone");
        x[n_x++] = scalar_like(*first, input.constant()).get();
    }
    std::array<catena_var*, CATENA_MAX_PORTS> made;
    check_status(host().call(ctx, callable, attrs.data(), static_cast<std::uint32_t>(attrs.size()),
                             x, n_x, made.data(), static_cast<std::uint32_t>(y.size())));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = Var(ctx, made[i]);
}

std::vector<std::int64_t> detail::elements(catena_ctx* ctx, const char* function, const Var& x) {
    const void* data = nullptr;
    check_status(host().read(ctx, x.get(), &data));
    const Meta meta = x.meta();
    std::vector<std::int64_t> values;
    values.reserve(static_cast<std::size_t>(meta.size()));
    const int index = index_in(Integers(), meta.dtype);
    if (index < 0) plugin::fail(CATENA_E_DTYPE, function, "elements()", "integers", meta.dtype);
    with_type(Integers(), index, [&](auto type) {
        const auto* const from = static_cast<const decltype(type)*>(data);
        values.assign(from, from + meta.size());
    });
    return values;
}

void detail::store(const char* function, const catena_compose_call& call, Vars y) {
    if (y.size() != call.n_y)
        plugin::fail(CATENA_E_INTERNAL, function, "compose(): results", call.n_y, y.size());
    for (std::uint32_t i = 0; i < call.n_y; ++i) {
        if (y[i].is_constant()) {
            plugin::fail(CATENA_E_INTERNAL, function,
                         ("compose(): result " + std::to_string(i)).c_str(), "a variable",
                         "a constant");
        }
        const auto* const end = call.x + call.n_x;
        const bool is_input = std::find(call.x, end, y[i].get()) != end;
        call.y[i] = (is_input ? plugin::call<"catena.identity">({y[i]}) : y[i]).get();
    }
}

catena_var* detail::gradient_like(const char* function, const Var& gradient, const catena_meta* x) {
    if (gradient.is_constant()) {
        if (!gradient.is_constant(0))
            plugin::fail(CATENA_E_INTERNAL, function, "gradient", "a multiple of gy", "a constant");
        return nullptr;
    }
    return (same_shape(gradient.meta(), *x) ? gradient : sum_to(gradient, shape_of(*x))).get();
}

Var operator-(const Var& a) {
    return a.is_constant() ? Var(-a.constant()) : call<"catena.neg">({a});
}
Var operator+(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() + b.constant();
    if (a.is_constant(0)) return b;
    if (b.is_constant(0)) return a;
    if (a.is_constant()) return call<"catena.add_constant">({b}, {set("value", a.constant())});
    if (b.is_constant()) return call<"catena.add_constant">({a}, {set("value", b.constant())});
    return call<"catena.add">({a, b});
}
Var operator-(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() - b.constant();
    if (a.is_constant(0)) return -b;
    if (b.is_constant()) return a + -b;
    if (a.is_constant()) return call<"catena.sub_from_constant">({b}, {set("value", a.constant())});
    return call<"catena.sub">({a, b});
}
Var operator*(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() * b.constant();
    if (b.is_constant()) return b * a;
    if (a.is_constant(1)) return b;
    if (a.is_constant(0) && !detail::callback.composes) return a;
    if (a.is_constant()) return call<"catena.mul_constant">({b}, {set("value", a.constant())});
    return call<"catena.mul">({a, b});
}
Var operator/(const Var& a, const Var& b) {
    if (b.is_constant()) return a * Var(1 / b.constant());
    if (a.is_constant(0) && !detail::callback.composes) return a;
    if (a.is_constant()) return call<"catena.div_from_constant">({b}, {set("value", a.constant())});
    return call<"catena.div">({a, b});
}

Var operator>(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() > b.constant() ? 1.0 : 0.0;
    return call<"catena.greater">({a, b});
}
Var operator>=(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() >= b.constant() ? 1.0 : 0.0;
    return call<"catena.greater_equal">({a, b});
}
Var operator<(const Var& a, const Var& b) { return b > a; }
Var operator<=(const Var& a, const Var& b) { return b >= a; }
Var operator==(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() == b.constant() ? 1.0 : 0.0;
    return call<"catena.equal">({a, b});
}
Var operator&(const Var& a, const Var& b) { return a * b; }

namespace {
// Calls a function of one input, or computes it here for a constant.
template <Name name>
Var folded(const Var& x, double (*function)(double)) {
    return x.is_constant() ? Var(function(x.constant())) : call<name>({x});
}
}  // namespace

namespace math {
Var where(const Var& condition, const Var& yes, const Var& no) {
    if (condition.is_constant()) return condition.constant() != 0 ? yes : no;
    if (yes.is_constant() && no.is_constant() && yes.constant() == no.constant()) return yes;
    // A constant gets the dtype of the other value: the condition may be bool.
    const auto value = [](const Var& x, const Var& like) {
        return x.is_constant() && !like.is_constant() ? scalar_like(like, x.constant()) : x;
    };
    return call<"catena.where">({condition, value(yes, no), value(no, yes)});
}
Var isnan(const Var& x) { return 1.0 - (x == x); }
Var unless_nan(const Var& x, const Var& value) {
    return where(x == x, value, std::numeric_limits<double>::quiet_NaN());
}
Var max(const Var& a, const Var& b) { return call<"catena.maximum">({a, b}); }
Var min(const Var& a, const Var& b) { return call<"catena.minimum">({a, b}); }
Var abs(const Var& x) { return folded<"catena.abs">(x, std::fabs); }
Var sqrt(const Var& x) { return folded<"catena.sqrt">(x, std::sqrt); }
Var exp(const Var& x) { return folded<"catena.exp">(x, std::exp); }
Var log(const Var& x) { return folded<"catena.log">(x, std::log); }
Var erf(const Var& x) { return folded<"catena.erf">(x, std::erf); }
Var sin(const Var& x) { return folded<"catena.sin">(x, std::sin); }
Var cos(const Var& x) { return folded<"catena.cos">(x, std::cos); }
Var tanh(const Var& x) { return folded<"catena.tanh">(x, std::tanh); }
Var sigmoid(const Var& x) { return folded<"catena.sigmoid">(x, sigmoid<double>); }
Var pow(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return std::pow(a.constant(), b.constant());
    if (b.is_constant(1)) return a;
    if (b.is_constant()) return call<"catena.pow_var_const">({a}, {set("value", b.constant())});
    if (a.is_constant()) return call<"catena.pow_const_var">({b}, {set("value", a.constant())});
    return call<"catena.pow">({a, b});
}
}  // namespace math

Var sum_to(const Var& x, const IntList& shape) {
    return x.is_constant(0) ? x : call<"catena.sum_to">({x}, {set("shape", Ints(shape))});
}
Var reshape(const Var& x, const IntList& shape) {
    return x.is_constant(0) ? x : call<"catena.reshape">({x}, {set("shape", Ints(shape))});
}
Var broadcast_to(const Var& x, const IntList& shape) {
    return x.is_constant(0) ? x : call<"catena.broadcast_to">({x}, {set("shape", Ints(shape))});
}
Var transpose(const Var& x, const IntList& axes) {
    return x.is_constant(0) ? x : call<"catena.transpose">({x}, {set("axes", Ints(axes))});
}
Var sum(const Var& x, const IntList& axis, bool keepdims) {
    if (x.is_constant(0)) return x;
    return call<"catena.sum">({x}, {set("axis", Ints(axis)), set("keepdims", keepdims)});
}
Var cast(const Var& x, catena_dtype dtype) {
    return x.is_constant(0) ? x : call<"catena.cast">({x}, {set("dtype", dtype)});
}
Var matmul(const Var& a, const Var& b, bool transa, bool transb) {
    if (a.is_constant(0) || b.is_constant(0)) return 0.0;
    return call<"catena.matmul">({a, b}, {set("transa", transa), set("transb", transb)});
}

}  // namespace catena::plugin
