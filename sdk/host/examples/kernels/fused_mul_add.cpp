// w = x * y + z as one kernel each for forward and backward, from formulas: on CPUs and GPUs.
#include <catena/catena.hpp>

using namespace catena;

// A separate function without a gradient, so that asking for its gradient is an error.
struct MulAddGrad : FunctionNode {
    static constexpr std::size_t n_outputs = 2;
    Arrays forward(ArraySpan inputs) override {
        const auto [x, y, gw] = unpack<3>(inputs);
        const auto bwd = elementwise<2>("T x, T y, T gw", "T gx, T gy", "gx = y * gw; gy = x * gw",
                                        "muladd_bwd");
        const auto [gx, gy] = bwd(x, y, gw);
        return {gx, gy};
    }
    Variables backward(Targets, VariableSpan) override {
        throw NotDifferentiableError("[muladd_bwd] gradient: not written yet");
    }
};

struct MulAdd : FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        retain_inputs({0, 1});
        const auto fwd = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd_fwd");
        return {fwd(x, y, z)};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        const Variable& gw = grad_outputs[0];
        const auto [gx, gy] = apply<MulAddGrad>(x, y, gw);
        return {gx, gy, gw};
    }
};

Variable mul_add(const Variable& x, const Variable& y, const Variable& z) {
    const auto [w] = apply<MulAdd>(x, y, z);
    return w;
}

int main() {
    const auto draw = [] { return random::uniform({3, 2}, -1, 1, Dtype::float64); };
    const Arrays x = {draw(), draw(), draw()};
    const Array gw = draw();
    gradient_check::check_backward(mul_add, x, gw);
    try {
        gradient_check::check_double_backward(mul_add, x, gw, {draw(), draw(), draw()});
    } catch (const NotDifferentiableError&) {
        return 0;
    }
    return 1;
}
