// A link that multiplies its input with a parameter elementwise.
#include <catena/catena.hpp>

using namespace catena;

struct EltwiseParamProduct : Link {
    Parameter W;

    explicit EltwiseParamProduct(const Shape& shape) : W(initializers::Normal(1), shape) {}
    void visit(Visitor& v) override { v("W", W); }
    Variable operator()(const Variable& x) const override { return W * x; }
};

int main() {
    const auto draw = [](const Shape& shape) { return random::normal(shape); };
    const EltwiseParamProduct product({3, 2});
    const auto f = [&](const Variable& x) { return product(x); };
    const Array x = draw({5, 3, 2}), gy = draw({5, 3, 2});
    const gradient_check::Options options{.params = {product.W}, .dtype = Dtype::float64};
    gradient_check::check_backward(f, x, gy, options);
    gradient_check::check_double_backward(f, x, gy, {draw({5, 3, 2}), draw({3, 2})}, options);

    // Calls on volatile variables record no graph.
    if (product(Variable(x, /*is_volatile=*/true)).creator()) return 1;

    // It can be used like any other link, for example in a set.
    const FunctionSet model{{"scale", product}, {"l1", links::Linear(6, 1)}};
    return model.collect_parameters()[2].name == "scale/W" ? 0 : 1;
}
