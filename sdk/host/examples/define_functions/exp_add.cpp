// z = exp(x) + exp(y): catena's functions work on arrays of any device, and on variables.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

struct ExpAdd : FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        const auto [x, y] = unpack<2>(inputs);
        retain_inputs({0, 1});
        return {F::exp(x) + F::exp(y)};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        const auto [x, y] = unpack<2>(get_retained_inputs());
        const Variable& gz = grad_outputs[0];
        return {gz * F::exp(x), gz * F::exp(y)};
    }
};

Variable exp_add(const Variable& x, const Variable& y) {
    const auto [z] = apply<ExpAdd>(x, y);
    return z;
}

int main() {
    const auto draw = [] { return random::uniform({3, 2}, -1, 1, Dtype::float64); };
    gradient_check::check_backward(exp_add, {draw(), draw()}, draw());
    gradient_check::check_double_backward(exp_add, {draw(), draw()}, draw(), {draw(), draw()});

    const Device second = Device::get(std::string(Device::current().backend()) + ":1");
    const Variable x(draw().to(second)), y(draw().to(second));
    F::sum(exp_add(x, y)).backward();
    gradient_check::assert_allclose(x.grad(), F::exp(x.data()));
    return x.grad().device() == second ? 0 : 1;
}
