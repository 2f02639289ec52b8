// Manual of Chainer 1.0.1, 1.4.4, and "Testing Functions" of Chainer 7.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

namespace {

using ArrayTuple = std::vector<Array>;

Array randn(const Shape& shape) { return initializers::Normal(1)(shape); }

void numerical_gradient() {
    const Array x = randn({4, 3});
    const Array gy = Array::ones({4, 3});
    const auto f = [&]() -> ArrayTuple { return {x * x}; };
    const Array gx = gradient_check::numerical_grad(f, ArrayTuple{x}, ArrayTuple{gy})[0];
    gradient_check::assert_allclose(gx, 2 * x, 1e-3, 1e-3);
}

void relu_backward(Device device) {
    const Variable x(randn({3, 2}).to(device));
    const Variable y = F::relu(x);
    y.set_grad(randn({3, 2}).to(device));
    y.backward(/*retain_grad=*/true);

    const auto f = [&]() -> ArrayTuple { return {F::relu(x.data())}; };
    const auto gx = gradient_check::numerical_grad(f, ArrayTuple{x.data()}, ArrayTuple{y.grad()});
    gradient_check::assert_allclose(gx[0], x.grad(), 1e-3, 1e-3);
}

void relu_checked() {
    const auto f = [](const std::vector<Variable>& v) -> std::vector<Variable> {
        return {F::relu(v[0])};
    };
    const Array x = randn({3, 2});
    const Array y_grad = randn({3, 2});
    gradient_check::check_backward(f, {{x}}, {{y_grad}},
                                   {.atol = 1e-4, .rtol = 1e-4, .dtype = Dtype::float64});
    const Array x_grad_grad = randn({3, 2});
    gradient_check::check_double_backward(f, {{x}}, {{y_grad}}, {{x_grad_grad}},
                                          {.dtype = Dtype::float64});
}

}  // namespace

int main() {
    seed(1);
    numerical_gradient();
    relu_backward(Device::current());
    relu_backward(Device::get("cpu:1"));
    relu_checked();
}
