// Section 1.1.3 of Chainer 1.0.1's manual: its f.W and f.b are f.W.data() and f.b.data(), its f.gW
// is f.W.grad().
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;
using gradient_check::assert_allclose;

int main() {
    links::Linear f(3, 2);
    assert_allclose(f.b.data(), Array::zeros({2}));

    const Variable x(Array::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}));
    const Variable y = f(x);
    assert_allclose(y.data(), dot(x.data(), F::transpose(f.W.data())) + f.b.data());

    f.W.zerograd();  // f.gW.fill(0)
    f.b.zerograd();
    y.set_grad(Array::ones({2, 2}));
    y.backward();
    assert_allclose(f.W.grad(), Array::from<float>({5, 7, 9, 5, 7, 9}, {2, 3}));
    assert_allclose(f.b.grad(), Array::from<float>({2, 2}, {2}));

    y.backward();  // gradients are added up
    assert_allclose(f.b.grad(), Array::from<float>({4, 4}, {2}));
}
