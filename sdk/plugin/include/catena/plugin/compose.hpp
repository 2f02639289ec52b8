// Compositions: forward passes that call functions of the host, as F::compose(g).
#pragma once

#include <limits>
#include <vector>

#include "catena/plugin/kernel.hpp"
#include "catena/plugin/var.hpp"

namespace catena::plugin {

// The argument of F::compose(g), which returns a Var for each output: one, an array, or a vector.
template <class F>
class Composition : public VariableCall<F, catena_compose_call>,
                    public PortChecks<F, Composition<F>> {
    using Base = VariableCall<F, catena_compose_call>;
    using Base::call_, Base::ctx_;

public:
    Composition(catena_ctx* ctx, const catena_compose_call& call) : Base(ctx, call, true) {}

    bool has(std::size_t i) const { return i < call_.n_x && call_.x[i] != nullptr; }
    // The variable of an input; Var::missing() for a missing optional one.
    Var x(std::size_t i) const { return has(i) ? Var(ctx_, call_.x[i]) : Var::missing(); }
    // The variables from port i on, for a variadic one.
    std::vector<Var> xs(std::size_t i) const {
        std::vector<Var> all;
        for (; i < call_.n_x; ++i) all.push_back(x(i));
        return all;
    }
    Meta x_meta(std::size_t i) const {
        if (!has(i)) detail::fail_missing(F::about.name, "compose", i);
        return x(i).meta();
    }
    // The elements of an input whose port is .host(): integers of any dtype.
    std::vector<std::int64_t> elements(std::size_t i) const {
        static_assert(detail::has_host_port<F>(), "elements(): no input port is .host()");
        return detail::elements(ctx_, F::about.name, x(i));
    }
    // Stores the results. One that is an input becomes a variable of its own.
    void store(const Var& y) const { store(Vars{y}); }
    void store(Vars y) const { detail::store(F::about.name, call_, y); }
};

// A list of extents or axes.
using List = std::vector<std::int64_t>;
inline List list_of(Ints values) { return {values.begin(), values.end()}; }

// New arrays on the device of the callback. arange: start, start + step, ...: n integers.
inline Var full(const IntList& shape, double value, catena_dtype dtype = dtype_of<float>()) {
    return call<"catena.full">(
        {}, {set("shape", Ints(shape)), set("value", value), set("dtype", dtype)});
}
inline Var arange(std::int64_t n, catena_dtype dtype = dtype_of<std::int64_t>(),
                  std::int64_t start = 0, std::int64_t step = 1) {
    return call<"catena.arange">(
        {}, {set("n", n), set("start", start), set("step", step), set("dtype", dtype)});
}
// The numbers as an int64 array.
inline Var integers(const IntList& values) {
    return call<"catena.integers">({}, {set("values", Ints(values))});
}

inline Var concat(Vars xs, std::int64_t axis) {
    return call<"catena.concat">(xs, {set("axis", axis)});
}
inline Var stack(Vars xs, std::int64_t axis) {
    return call<"catena.stack">(xs, {set("axis", axis)});
}
inline Var expand_dims(const Var& x, const IntList& axis) {
    return call<"catena.expand_dims">({x}, {set("axis", Ints(axis))});
}
inline Var squeeze(const Var& x, const IntList& axis) {
    return call<"catena.squeeze">({x}, {set("axis", Ints(axis))});
}
// x[begin:end:step], a number for each of the first axes.
inline Var get_item(const Var& x, const IntList& begin, const IntList& end,
                    const IntList& step = {}) {
    return call<"catena.get_item">(
        {x}, {set("begin", Ints(begin)), set("end", Ints(end)), set("step", Ints(step))});
}
// x[..., begin:end, ...] along an axis, which is not negative.
inline Var slice(const Var& x, std::int64_t axis, std::int64_t begin,
                 std::int64_t end = std::numeric_limits<std::int64_t>::max()) {
    const auto d = static_cast<std::size_t>(axis);
    List from(d + 1), to(d + 1, std::numeric_limits<std::int64_t>::max());
    from[d] = begin;
    to[d] = end;
    return get_item(x, from, to);
}
inline Var take(const Var& x, const Var& indices, std::int64_t axis = 0) {
    return call<"catena.take">({x, indices}, {set("axis", axis)});
}
inline Var take_along_axis(const Var& x, const Var& indices, std::int64_t axis) {
    return call<"catena.take_along_axis">({x, indices}, {set("axis", axis)});
}
inline Var mean(const Var& x, const IntList& axis = {}, bool keepdims = false) {
    return call<"catena.mean">({x}, {set("axis", Ints(axis)), set("keepdims", keepdims)});
}
// widths: before and after each axis.
inline Var pad(const Var& x, const IntList& widths, double value = 0) {
    return call<"catena.pad">({x}, {set("pad_width", Ints(widths)), set("constant_values", value)});
}

}  // namespace catena::plugin
