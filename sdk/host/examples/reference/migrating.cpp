// "Migrating From Old-Style Functions To New-Style Functions" of Chainer 7: the code of the old backward
// becomes the forward of a function of its own.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

namespace {

// y = x^3 / 3
struct MyOldFunc : Function<MyOldFunc> {
    std::vector<Array> forward(std::span<const Array> inputs) override {
        const Array& x = inputs[0];
        return {x * x * x / 3};
    }
    std::vector<Array> backward(std::span<const Array> inputs,
                                std::span<const Array> grad_outputs) override {
        const Array &x = inputs[0], &gy = grad_outputs[0];
        return {gy * x * x};
    }
};

struct MyFuncGrad : FunctionNode {
    std::vector<Array> forward(std::span<const Array> inputs) override {
        const auto [x, gy] = unpack<2>(inputs);
        return {gy * x * x};
    }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable>) override {
        // Not needed but for gradients of higher order.
        throw NotDifferentiableError("[MyFuncGrad] backward: it has no gradient of second order");
    }
};

struct MyFunc : FunctionNode {
    std::vector<Array> forward(std::span<const Array> inputs) override {
        retain_inputs({0});
        const Array& x = inputs[0];
        return {x * x * x / 3};
    }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable> grad_outputs) override {
        const auto [x] = unpack<1>(get_retained_inputs());
        return apply<MyFuncGrad>({x, grad_outputs[0]});
    }
};

}  // namespace

int main() {
    const auto draw = [] { return initializers::Uniform(1)({3, 2}, Dtype::float64); };
    const Array x = draw(), gy = draw(), ggx = draw();
    using VariableTuple = std::vector<Variable>;
    const auto old_style = [](const VariableTuple& v) -> VariableTuple {
        return {MyOldFunc()(v[0])};
    };
    const auto new_style = [](const VariableTuple& v) { return apply<MyFunc>({v[0]}); };
    gradient_check::check_backward(old_style, {{x}}, {{gy}});
    gradient_check::check_backward(new_style, {{x}}, {{gy}});
    try {
        gradient_check::check_double_backward(new_style, {{x}}, {{gy}}, {{ggx}});
    } catch (const NotDifferentiableError&) {
        return 0;
    }
    return 1;
}
