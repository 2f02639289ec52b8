// A function whose gradient is a function of its own, both computed on arrays.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

// gx = gy * d softplus / dx, the gradient that Softplus returns.
struct SoftplusGrad : FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        const auto [x, gy] = unpack<2>(inputs);
        retain_inputs({0, 1});
        return {gy * F::sigmoid(x)};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        const auto [x, gy] = unpack<2>(get_retained_inputs());
        const Variable& ggx = grad_outputs[0];
        const Variable s = F::sigmoid(x);
        return {ggx * gy * s * (1 - s), ggx * s};
    }
};

// y = log(1 + exp(x)), without overflow.
struct Softplus : FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        const Array& x = inputs[0];
        retain_inputs({0});
        return {F::where(x > 0, x, 0 * x) + F::log(1 + F::exp(-F::abs(x)))};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        const auto [gx] = apply<SoftplusGrad>(get_retained_inputs()[0], grad_outputs[0]);
        return {gx};
    }
};

Variable softplus(const Variable& x) {
    const auto [y] = apply<Softplus>(x);
    return y;
}

int main() {
    const auto draw = [] { return random::normal({4, 3}, 0, 2, Dtype::float64); };
    gradient_check::check_backward(softplus, draw(), draw());
    gradient_check::check_double_backward(softplus, draw(), draw(), draw());

    // Differentiates a penalty on the gradient of softplus.
    const Variable x(draw());
    const Variable gx =
        grad({F::sum(softplus(x))}, {x}, {}, {}, {.enable_double_backprop = true})[0];
    F::sum(gx * gx).backward();
    const Array s = F::sigmoid(x.data());
    gradient_check::assert_allclose(x.grad(), 2 * s * s * (1 - s));
}
