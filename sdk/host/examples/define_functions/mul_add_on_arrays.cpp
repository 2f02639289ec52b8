// w = x * y + z with the gradient on arrays: shorter, and of first order only.
#include <catena/catena.hpp>

using namespace catena;

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

int main() {
    const auto draw = [] { return random::normal({3, 2}, 0, 1, Dtype::float64); };
    const Array x = draw(), y = draw(), z = draw();
    const Variable w = MulAdd()(Variable(x), Variable(y), Variable(z));
    gradient_check::assert_allclose(w.data(), x * y + z);

    gradient_check::check_backward(MulAdd(), {x, y, z}, draw());
}
