// w = x * y + z as one function, differentiable to any order.
#include <catena/catena.hpp>

using namespace catena;

struct MulAdd : FunctionNode {
    std::vector<Array> forward(std::span<const Array> inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        retain_inputs({0, 1});
        return {x * y + z};
    }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable> grad_outputs) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        const Variable& gw = grad_outputs[0];
        return {y * gw, x * gw, gw};
    }
};

Variable mul_add(const Variable& x, const Variable& y, const Variable& z) {
    return apply<MulAdd>({x, y, z})[0];
}

int main() {
    const auto draw = [] { return initializers::Normal(1)({3, 2}, Dtype::float64); };
    const Array x = draw(), y = draw(), z = draw();
    const Variable w = mul_add(Variable(x), Variable(y), Variable(z));
    gradient_check::assert_allclose(w.data(), x * y + z);

    using Vars = std::vector<Variable>;
    const auto f = [](const Vars& v) -> Vars { return {mul_add(v[0], v[1], v[2])}; };
    gradient_check::check_backward(f, {{x, y, z}}, {{draw()}});
    gradient_check::check_double_backward(f, {{x, y, z}}, {{draw()}}, {{draw(), draw(), draw()}});
}
