// Nodes shared by tests of FunctionNode.
#pragma once

#include <catena/catena.hpp>

#include <cmath>
#include <functional>

#include "temporary.hpp"

using namespace catena;
namespace F = catena::functions;

inline Array draw(const Shape& shape, double scale = 1) {
    return initializers::Uniform(scale)(shape, Dtype::float64);
}
inline Variable var(std::initializer_list<double> values) {
    return Variable(Array::from(values, {static_cast<std::int64_t>(values.size())}));
}
inline std::vector<double> values(const Array& x) { return x.to_vector<double>(); }
using Doubles = std::vector<double>;

struct MulAdd : FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        retain_inputs({0, 1});
        return {x * y + z};
    }
    Variables backward(Targets, VariableSpan gw) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        return {y * gw[0], x * gw[0], gw[0]};
    }
};
inline Variable mul_add(const Variable& x, const Variable& y, const Variable& z) {
    return apply<MulAdd>({x, y, z})[0];
}

// e = exp(x), with a gradient from e; s = scale * x^2, with one from x. Either gy may be missing.
struct ExpSquare : FunctionNode {
    explicit ExpSquare(double s) : scale(s) {}
    Arrays forward(ArraySpan x) override {
        retain_inputs({0});
        retain_outputs({0});
        return {F::exp(x[0]), scale * x[0] * x[0]};
    }
    Variables backward(Targets, VariableSpan gy) override {
        Variable gx;
        if (gy[0]) gx += gy[0] * get_retained_outputs()[0];
        if (gy[1]) gx += gy[1] * (2 * scale) * get_retained_inputs()[0];
        return {gx};
    }
    double scale;
};

// A node that runs f in forward and g in backward.
struct Any : FunctionNode {
    using Forward = std::function<Arrays(Any&, ArraySpan)>;
    using Backward = std::function<Variables(Any&, Targets, VariableSpan)>;
    Any(Forward f, Backward g) : f_(std::move(f)), g_(std::move(g)) {}
    Arrays forward(ArraySpan x) override { return f_(*this, x); }
    Variables backward(Targets t, VariableSpan gy) override { return g_(*this, t, gy); }
    using FunctionNode::get_retained_inputs;
    using FunctionNode::get_retained_outputs;
    using FunctionNode::retain_inputs;
    using FunctionNode::retain_outputs;
    using FunctionNode::unpack;
    Forward f_;
    Backward g_;
};
inline Arrays pass_on(Any&, ArraySpan x) { return {x[0].copy()}; }
inline Variables hand_on(Any&, Targets, VariableSpan gy) { return {gy[0]}; }
