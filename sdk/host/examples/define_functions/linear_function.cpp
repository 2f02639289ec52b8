// y = x W^T + b as a function, and a link that owns its parameters.
#include <catena/catena.hpp>

#include <cmath>

using namespace catena;
namespace F = catena::functions;

struct LinearFunction : FunctionNode {
    Arrays forward(ArraySpan inputs) override {
        const auto [x, W, b] = unpack<3>(inputs);
        retain_inputs({0, 1});
        return {dot(x, F::transpose(W)) + b};
    }
    Variables backward(Targets target_input_indexes, VariableSpan grad_outputs) override {
        const auto [x, W] = unpack<2>(get_retained_inputs());
        const Variable& gy = grad_outputs[0];
        Variables grads;
        for (const std::size_t i : target_input_indexes) {  // only the requested gradients
            if (i == 0) grads.push_back(dot(gy, W));
            if (i == 1) grads.push_back(dot(F::transpose(gy), x));
            if (i == 2) grads.push_back(F::sum(gy, 0));
        }
        return grads;
    }
};

Variable linear(const Variable& x, const Variable& W, const Variable& b) {
    const auto [y] = apply<LinearFunction>(x, W, b);
    return y;
}

struct Linear : Link {
    Parameter W, b;

    Linear(std::int64_t in, std::int64_t out)
        : W(initializers::Normal(1 / std::sqrt(static_cast<double>(in))), {out, in}), b(0, {out}) {}
    void visit(Visitor& v) override { v("W", W)("b", b); }
    Variable operator()(const Variable& x) const override { return linear(x, W, b); }
};

int main() {
    const auto draw = [](const Shape& shape) { return random::normal(shape); };
    const Linear link(4, 2);
    const auto f = [&](const Variable& x) { return link(x); };
    const Array x = draw({3, 4}), gy = draw({3, 2});
    const gradient_check::Options options{.params = link.parameters(), .dtype = Dtype::float64};
    gradient_check::check_backward(f, x, gy, options);
    gradient_check::check_double_backward(f, x, gy, {draw({3, 4}), draw({2, 4}), draw({2})},
                                          options);
    gradient_check::assert_allclose(link(Variable(x)).data(),
                                    F::linear(x, link.W.data(), link.b.data()));

    if (link(Variable(x, /*is_volatile=*/true)).creator()) return 1;

    // Four steps of gradient descent on one minibatch.
    optimizers::SGD optimizer(0.1);
    optimizer.setup(link);
    const Variable t = as_variable(draw({3, 2}));
    double before = 1e9;
    for (int i = 0; i < 4; ++i) {
        const Variable loss = F::mean_squared_error(link(as_variable(x)), t);
        if (loss.item() >= before) return 1;
        before = loss.item();
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
    }
}
