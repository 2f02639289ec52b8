// w = x * y + z as one function, differentiable to any order.
#include <catena/catena.hpp>

using namespace catena;

struct MulAdd : FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        retain_inputs({0, 1});
        return {x * y + z};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        const Variable& gw = grad_outputs[0];
        return {y * gw, x * gw, gw};
    }
};

Variable mul_add(const Variable& x, const Variable& y, const Variable& z) {
    const auto [w] = apply<MulAdd>(x, y, z);
    return w;
}

int main() {
    const auto draw = [] { return random::normal({3, 2}, 0, 1, Dtype::float64); };
    const Array x = draw(), y = draw(), z = draw();
    const Variable w = mul_add(Variable(x), Variable(y), Variable(z));
    gradient_check::assert_allclose(w.data(), x * y + z);

    gradient_check::check_backward(mul_add, {x, y, z}, draw());
    gradient_check::check_double_backward(mul_add, {x, y, z}, draw(), {draw(), draw(), draw()});
}
