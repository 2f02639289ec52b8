// The reference of chainer.Function: the graph that a call records.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;
using gradient_check::assert_allclose;

namespace {

// Keeps the output as a member. Each call runs on its own copy of the function.
struct Exp : Function<Exp> {
    Arrays forward(ArraySpan inputs) override {
        y = F::exp(inputs[0]);
        return {y};
    }
    Arrays backward(ArraySpan, ArraySpan grad_outputs) override { return {grad_outputs[0] * y}; }
    Array y;
};

// Uses the default backward(), which returns no gradient.
struct Constant : Function<Constant> {
    Arrays forward(ArraySpan inputs) override { return {inputs[0] + 0}; }
};

}  // namespace

int main() {
    Exp f;
    const Variable x(Array::from({0.0, 1.0}, {2}));
    const Variable y = f(x);
    const Variable z = f(x);  // another branch from the same variable
    if (f.y || y.creator() == z.creator()) return 1;
    GraphNode& call = *y.creator();
    if (call.inputs()[0].get() != &x.node() || call.outputs()[0] != &y.node()) return 1;

    F::sum(y * z).backward();
    assert_allclose(x.grad(), 2 * F::exp(x.data()) * F::exp(x.data()));

    call.unchain();
    if (y.creator() || !z.creator()) return 1;

    Constant constant;
    x.cleargrad();
    F::sum(constant(x)).backward();
    if (x.grad()) return 1;

    // The recorded function of a call can compute outputs from other arrays.
    const auto [two] = unpack<1>(constant(x).creator()->forward(Arrays{Array::full({2}, 2)}));
    assert_allclose(two, Array::full({2}, 2));

    // A function without parameters has the accessors of parameters, too.
    if (!f.parameters().empty() || !f.gradients().empty()) return 1;
    f.to_cpu();
    const Variable evaluated = f(Variable(x.data(), /*is_volatile=*/true));
    return evaluated.creator() ? 1 : 0;
}
