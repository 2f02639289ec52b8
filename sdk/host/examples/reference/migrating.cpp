// "Migrating From Old-Style Functions To New-Style Functions" of Chainer 7: the code of the old backward
// becomes the forward of a function of its own.
#include <catena/catena.hpp>

using namespace catena;

namespace {

// y = x^3 / 3
struct MyOldFunc : Function<MyOldFunc> {
    Arrays forward(ArraySpan inputs) override {
        const auto [x] = unpack<1>(inputs);
        return {x * x * x / 3};
    }
    Arrays backward(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x] = unpack<1>(inputs);
        const auto [gy] = unpack<1>(grad_outputs);
        return {gy * x * x};
    }
};

struct MyFuncGrad : FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        const auto [x, gy] = unpack<2>(inputs);
        return {gy * x * x};
    }
    Variables backward(Targets, VariableSpan) override {
        // Only gradients of higher order need it.
        throw NotDifferentiableError("[MyFuncGrad] backward: it has no gradient of second order");
    }
};

struct MyFunc : FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        retain_inputs({0});
        const auto [x] = unpack<1>(inputs);
        return {x * x * x / 3};
    }
    Variables backward(Targets, VariableSpan grad_outputs) override {
        const auto [x] = unpack<1>(get_retained_inputs());
        const auto [gy] = unpack<1>(grad_outputs);
        const auto [gx] = apply<MyFuncGrad>(x, gy);
        return {gx};
    }
};

Variable my_func(const Variable& x) {
    const auto [y] = apply<MyFunc>(x);
    return y;
}

}  // namespace

int main() {
    const auto draw = [] { return random::uniform({3, 2}, -1, 1, Dtype::float64); };
    const Array x = draw(), gy = draw();
    gradient_check::check_backward(MyOldFunc(), x, gy);
    gradient_check::check_backward(my_func, x, gy);
    try {
        gradient_check::check_double_backward(my_func, x, gy, draw());
    } catch (const NotDifferentiableError&) {
        return 0;
    }
    return 1;
}
