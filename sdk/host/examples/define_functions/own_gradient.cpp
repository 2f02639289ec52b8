// A function whose gradient is a function too: each computes on arrays what the other needs.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

// gx = gy * d softplus / dx, the gradient that Softplus hands out.
struct SoftplusGrad : FunctionNode {
    std::vector<Array> forward(std::span<const Array> inputs) override {
        const auto [x, gy] = unpack<2>(inputs);
        retain_inputs({0, 1});
        return {gy * F::sigmoid(x)};
    }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable> grad_outputs) override {
        const auto [x, gy] = unpack<2>(get_retained_inputs());
        const Variable& ggx = grad_outputs[0];
        const Variable s = F::sigmoid(x);
        return {ggx * gy * s * (1 - s), ggx * s};
    }
};

// y = log(1 + exp(x)), without overflow.
struct Softplus : FunctionNode {
    std::vector<Array> forward(std::span<const Array> inputs) override {
        const Array& x = inputs[0];
        retain_inputs({0});
        return {F::where(x > 0, x, 0 * x) + F::log(1 + F::exp(-F::abs(x)))};
    }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable> grad_outputs) override {
        return apply<SoftplusGrad>({get_retained_inputs()[0], grad_outputs[0]});
    }
};

Variable softplus(const Variable& x) { return apply<Softplus>({x})[0]; }

int main() {
    const auto draw = [] { return initializers::Normal(2)({4, 3}, Dtype::float64); };
    using Vars = std::vector<Variable>;
    const auto f = [](const Vars& v) -> Vars { return {softplus(v[0])}; };
    gradient_check::check_backward(f, {{draw()}}, {{draw()}});
    gradient_check::check_double_backward(f, {{draw()}}, {{draw()}}, {{draw()}});

    // A penalty on the size of the gradient.
    const Variable x(draw());
    const Variable gx =
        grad({F::sum(softplus(x))}, {x}, {}, {}, {.enable_double_backprop = true})[0];
    F::sum(gx * gx).backward();
    const Array s = F::sigmoid(x.data());
    gradient_check::assert_allclose(x.grad(), 2 * s * s * (1 - s));
}
