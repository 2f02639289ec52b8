// w = x * y + z with the gradient on arrays: shorter, and of first order only.
#include <catena/catena.hpp>

using namespace catena;

struct MulAdd : Function<MulAdd> {
    std::vector<Array> forward(std::span<const Array> inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        return {x * y + z};
    }
    std::vector<Array> backward(std::span<const Array> inputs,
                                std::span<const Array> grad_outputs) override {
        const Array &x = inputs[0], &y = inputs[1], &gw = grad_outputs[0];
        return {y * gw, x * gw, gw};
    }
};

int main() {
    const auto draw = [] { return initializers::Normal(1)({3, 2}, Dtype::float64); };
    const Array x = draw(), y = draw(), z = draw();
    const Variable w = MulAdd()(Variable(x), Variable(y), Variable(z));
    gradient_check::assert_allclose(w.data(), x * y + z);

    using Vars = std::vector<Variable>;
    const auto f = [](const Vars& v) -> Vars { return {MulAdd()(v[0], v[1], v[2])}; };
    gradient_check::check_backward(f, {{x, y, z}}, {{draw()}});
}
