// The test of a function: its gradient against numerical ones, by hand and in one call.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

int main() {
    const Variable x(Array::from({0.5, -1.5, 2.0, -0.25, 1.0, -3.0}, {3, 2}));
    const Variable y = F::relu(x);
    y.set_grad(random::normal({3, 2}, 0, 1, Dtype::float64));
    y.backward(/*retain_grad=*/true);

    const auto f = [&] { return y.creator()->forward(Arrays{x.data()}); };
    const auto [gx] = unpack<1>(gradient_check::numerical_grad(f, x.data(), y.grad()));
    gradient_check::assert_allclose(gx, x.grad());

    gradient_check::check_backward([](const Variable& v) { return F::relu(v); }, x.data(),
                                   y.grad());
}
