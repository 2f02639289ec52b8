// w = x * y + z and z = exp(x) + exp(y) with gradients on arrays: shorter, but only first order.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

struct MulAdd : Function<MulAdd> {
    Arrays forward(ArraySpan inputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        return {x * y + z};
    }
    Arrays backward(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y, z] = unpack<3>(inputs);
        const auto [gw] = unpack<1>(grad_outputs);
        return {y * gw, x * gw, gw};
    }
};

struct ExpAdd : Function<ExpAdd> {
    Arrays forward(ArraySpan inputs) override {
        const auto [x, y] = unpack<2>(inputs);
        return {F::exp(x) + F::exp(y)};
    }
    Arrays backward(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x, y] = unpack<2>(inputs);
        const Array& gz = grad_outputs[0];
        return {gz * F::exp(x), gz * F::exp(y)};
    }
};

int main() {
    const auto draw = [] { return random::normal({3, 2}, 0, 1, Dtype::float64); };
    const Array x = draw(), y = draw(), z = draw();
    const Variable w = MulAdd()(Variable(x), Variable(y), Variable(z));
    gradient_check::assert_allclose(w.data(), x * y + z);

    gradient_check::check_backward(MulAdd(), {x, y, z}, draw());
    gradient_check::check_backward(ExpAdd(), {x, y}, draw());
}
