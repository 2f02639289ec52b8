// Tests a function: compares its gradient with numerical ones, by hand and in one call.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

// Compares the numerical gradient of sum(x * x) with 2 x.
void numerical() {
    const Array x = random::normal({4, 3}), gy = Array::ones({4, 3});
    const auto f = [&] { return x * x; };
    const auto [gx] = unpack<1>(gradient_check::numerical_grad(f, x, gy));
    gradient_check::assert_allclose(gx, 2 * x, 1e-3, 1e-3);
}

void relu(Device device) {
    const Variable x(Array::from({0.5, -1.5, 2.0, -0.25, 1.0, -3.0}, {3, 2}, device));
    const Variable y = F::relu(x);
    y.set_grad(random::normal({3, 2}, 0, 1, Dtype::float64, device));
    y.backward(/*retain_grad=*/true);

    const auto f = [&] { return y.creator()->forward(Arrays{x.data()}); };
    const auto [gx] = unpack<1>(gradient_check::numerical_grad(f, x.data(), y.grad()));
    gradient_check::assert_allclose(gx, x.grad());

    const auto g = [](const Variable& v) { return F::relu(v); };
    gradient_check::check_backward(g, x.data(), y.grad(), {.atol = 1e-4, .rtol = 1e-4});
    const Array x_grad_grad = random::normal({3, 2}, 0, 1, Dtype::float64, device);
    gradient_check::check_double_backward(g, x.data(), y.grad(), x_grad_grad);
}

int main() {
    numerical();
    if (!cuda::available()) cuda::set_backend("cpu");  // logical CPU devices stand for GPUs
    relu(cuda::host());
    relu(cuda::get_device(0));
}
