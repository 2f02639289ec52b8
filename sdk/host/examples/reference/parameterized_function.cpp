// Section 1.4.3 of Chainer 1.0.1's manual: a function with trainable arrays.
#include <catena/catena.hpp>

using namespace catena;
namespace F = catena::functions;
using gradient_check::assert_allclose;

namespace {

struct EltwiseParamProduct : Function<EltwiseParamProduct> {
    Array w, gw;

    // parameter_names = 'w', gradient_names = 'gw'
    std::vector<FunctionParameter> parameter_names() override { return {{"w", w, gw}}; }

    explicit EltwiseParamProduct(const Shape& shape)
        : w(random::normal(shape)), gw(Array::empty(shape)) {}

    Arrays forward(ArraySpan inputs) override {
        const auto [x] = unpack<1>(inputs);
        const Array y = w * x;
        return {y};
    }
    Arrays backward(ArraySpan inputs, ArraySpan grad_outputs) override {
        const auto [x] = unpack<1>(inputs);
        const auto [gy] = unpack<1>(grad_outputs);
        gw += gy * x;
        const Array gx = gy * w;
        return {gx};
    }
};

Array draw() { return random::normal({4, 3}); }

// Follows the manual's note: the same product with a link that has only a parameter.
bool by_parameter() {
    const links::Parameter p(draw());
    const Variable x(draw());
    const Variable y = p() * x;
    F::sum(y).backward();
    assert_allclose(p.W.grad(), x.data());
    return p.parameters().size() == 1;
}

void learn(EltwiseParamProduct& f, optimizers::SGD& optimizer) {
    optimizer.zero_grads();
    const Variable x(draw());
    const Variable y = f(x);
    y.set_grad(draw());
    const Array w = f.w.copy();
    y.backward();
    assert_allclose(f.gw, y.grad() * x.data());
    assert_allclose(x.grad(), y.grad() * w);
    y.backward();  // a second backward pass adds to the gradients
    assert_allclose(f.gw, 2 * y.grad() * x.data());
    optimizer.update();
    assert_allclose(f.w, w - 0.5 * f.gw);
}

}  // namespace

int main() {
    FunctionSet model{{"product", EltwiseParamProduct({4, 3})}, {"l1", links::Linear(3, 1)}};
    auto& f = model.get<EltwiseParamProduct>("product");
    optimizers::SGD optimizer(0.5);
    optimizer.setup(model.collect_parameters());
    learn(f, optimizer);

    // The function has the parameters(), gradients(), to_cpu() and to_gpu() of links.
    if (f.parameters().size() != 1 || f.gradients()[0].body() != f.gw.body()) return 1;
    if (cuda::available()) {
        f.to_gpu();
        if (!cuda::is_gpu(f.w.device()) || !cuda::is_gpu(f.gw.device())) return 1;
    }
    f.to_cpu();
    const gradient_check::Options options{.params = f.parameters(), .dtype = Dtype::float64};
    gradient_check::check_backward(f, draw(), draw(), options);
    return by_parameter() ? 0 : 1;
}
