// Section 1.1.2 of Chainer 1.0.1's manual: arithmetic on variables, and its gradient.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;
using gradient_check::assert_allclose;

int main() {
    {
        const Array x_data = Array::from<float>({5}, {1});
        const Variable x(x_data);
        const Variable y = pow(x, 2) - 2 * x + 1;
        assert_allclose(y.data(), Array::from<float>({16}, {1}));
        y.backward();
        assert_allclose(x.grad(), Array::from<float>({8}, {1}));
    }
    {
        const Variable x(Array::from<float>({5}, {1}));
        const Variable z = 2 * x;
        const Variable y = pow(x, 2) - z + 1;
        y.backward(/*retain_grad=*/true);
        assert_allclose(z.grad(), Array::from<float>({-1}, {1}));
    }
    {
        const Variable x(Array::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}));
        const Variable y = pow(x, 2) - 2 * x + 1;
        y.set_grad(Array::ones({2, 3}));
        y.backward();
        assert_allclose(x.grad(), Array::from<float>({0, 2, 4, 6, 8, 10}, {2, 3}));
    }
}
