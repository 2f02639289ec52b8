// A function that behaves differently in training: dropout of 0.5.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;

Variable dropout(const Variable& x) {
    if (!config().train) return x;
    const Array rand = random::uniform(x.shape(), 0, 1, x.dtype(), x.device());
    const Array mask = 2 * (rand > 0.5).astype(x.dtype());
    return x * mask;
}

int main() {
    const Variable x(Array::ones({1000}, Dtype::float64));
    const Variable y = dropout(x);
    F::sum(y).backward();
    gradient_check::assert_allclose(x.grad(), y.data());  // the same mask
    const double kept = F::sum(y).item() / 2;
    if (kept < 400 || kept > 600) return 1;

    const auto f = [](const Variable& v) {
        seed(1);  // gradient checks need the same mask in each call
        return dropout(v * v);
    };
    const Array sample = Array::from({0.5, -1.0, 2.0, 1.5}, {2, 2});
    gradient_check::check_backward(f, sample, sample);
    gradient_check::check_double_backward(f, sample, sample, sample);

    const using_config testing(&Config::train, false);
    gradient_check::assert_allclose(dropout(x).data(), x.data());
}
