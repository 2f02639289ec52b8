// Tests of differentiable functions from formulas.
#include "formula_values.hpp"
#include "temporary.hpp"

namespace F = catena::functions;

namespace {

Array draw(const Shape& shape) { return initializers::Uniform(1)(shape, Dtype::float64); }

const ElementwiseFormula value{"T x, T y, T z", "T w", "w = x * y + z", "muladd"};
const ElementwiseFormula gradient{"T x, T y, T z, T gw", "T gx, T gy, T gz",
                                  "gx = gw * y; gy = gw * x; gz = gw"};
const ElementwiseFormula second{"T x, T y, T gw, T ggx, T ggy, T ggz", "T gx, T gy, T ggw",
                                "gx = ggy * gw; gy = ggx * gw; ggw = ggx * y + ggy * x + ggz"};

}  // namespace

TEST_CASE("values, and gradients of the first order") {
    const ElementwiseFunction muladd(value, gradient);
    const Array x = draw({3, 2}), y = draw({3, 2}), z = draw({3, 2});
    gradient_check::assert_allclose(muladd(Variable(x), Variable(y), Variable(z)).data(),
                                    x * y + z);
    gradient_check::assert_allclose(muladd(x, y, z), x * y + z);
    const auto f = [&](const Variables& v) -> Variables { return {muladd(v[0], v[1], v[2])}; };
    gradient_check::check_backward(f, {{x, y, z}}, {{draw({3, 2})}});
    gradient_check::check_backward(f, {{draw({3, 1}), draw({2}), draw({})}}, {{draw({3, 2})}});
    gradient_check::check_backward(f, {{draw({1}), draw({1, 1}), draw({4, 1, 2})}},
                                   {{draw({4, 1, 2})}});
}

TEST_CASE("with a gradient of its own the gradient is differentiable") {
    const ElementwiseFunction muladd(value, gradient, second);
    const auto f = [&](const Variables& v) -> Variables { return {muladd(v[0], v[1], v[2])}; };
    const Array x = draw({3, 2}), y = draw({3, 2}), z = draw({3, 2});
    gradient_check::check_backward(f, {{x, y, z}}, {{draw({3, 2})}});
    gradient_check::check_double_backward(f, {{x, y, z}}, {{draw({3, 2})}},
                                          {{draw({3, 2}), draw({3, 2}), draw({3, 2})}});
    gradient_check::check_double_backward(f, {{draw({3, 1}), draw({2}), z}}, {{draw({3, 2})}},
                                          {{draw({3, 1}), draw({2}), draw({3, 2})}});
}

TEST_CASE("without one, asking for more is an error that says how") {
    const ElementwiseFunction muladd(value, gradient);
    const Variable x(draw({2})), y(draw({2})), z(draw({2}));
    const std::string text = thrown<NotDifferentiableError>([&] {
        const std::vector<Variable> gx =
            grad({F::sum(muladd(x, y, z))}, {x}, {}, {}, {.enable_double_backprop = true});
        F::sum(gx[0]).backward();
    });
    CHECK(has(text, "[muladd_grad] backward: expected a formula for its gradient"));
    const ElementwiseFunction constant(value);
    CHECK_THROWS_AS(F::sum(constant(x, y, z)).backward(), NotDifferentiableError);
}

TEST_CASE("what the gradient does not read is not kept") {
    const ElementwiseFunction muladd(value, gradient);
    const std::int64_t n = 1 << 18;
    const Variable x(Array::ones({n})), y(Array::ones({n}));
    const auto in_use = [] { return Device::current().memory().in_use; };
    const std::int64_t before = in_use();
    Variable w;
    {
        const Variable z = Variable(Array::ones({n})) * 2;
        w = muladd(x, y, z);
    }
    CHECK(in_use() - before < 2 * n * 4);  // w is kept, z is not
}

TEST_CASE("outputs of the function in the gradient, several outputs, inputs without gradient") {
    const ElementwiseFunction my_exp({"T x", "T y", "y = exp(x)", "my_exp"},
                                     {"T y, T gy", "T gx", "gx = gy * y"});
    const auto f = [&](const Variables& v) -> Variables { return {my_exp(v[0])}; };
    gradient_check::check_backward(f, {{draw({5})}}, {{draw({5})}});

    const ElementwiseFunction<2> sincos({"T x", "T s, T c", "s = sin(x); c = cos(x)", "my_sincos"},
                                        {"T s, T c, T gs, T gc", "T gx", "gx = gs * c - gc * s"});
    const auto g = [&](const Variables& v) -> Variables {
        const auto [s, c] = sincos(v[0]);
        return {s, c};
    };
    gradient_check::check_backward(g, {{draw({5})}}, {{draw({5}), draw({5})}});
    const Variable x(draw({5}));
    F::sum(sincos(x)[1]).backward();  // the other output gets no gradient
    gradient_check::assert_allclose(x.grad(), -sincos(x.data())[0]);

    const ElementwiseFunction pick({"T x, int64 k", "T y", "y = k > 0 ? x : 0", "pick"},
                                   {"int64 k, T gy", "T gx", "gx = k > 0 ? gy : 0"});
    const Variable label(Array::from<std::int64_t>({0, 1}, {2})), two(draw({2}));
    F::sum(pick(two, label)).backward();
    CHECK(two.grad().to_vector<double>() == std::vector<double>{0, 1});
    CHECK_FALSE(label.grad());
}

TEST_CASE("names that nothing has are refused when the function is made") {
    CHECK(has(
        thrown<InvalidError>([] {
            ElementwiseFunction({"T x", "T y", "y = x", "f"}, {"T q, T gy", "T gx", "gx = q * gy"});
        }),
        "[f_grad] q: expected an input or output of f"));
    CHECK(has(thrown<InvalidError>([] {
                  ElementwiseFunction({"T x, T gy", "T y", "y = x * gy", "f"},
                                      {"T gy", "T gx", "gx = gy"});
              }),
              "[f_grad] gy: expected a name for one thing, got the input of f and the gradient of "
              "its output y"));
    CHECK(has(thrown<InvalidError>([] {
                  ElementwiseFunction({"T x", "T y", "y = x", "f"}, {"T gy", "T gz", "gz = gy"});
              }),
              "[f_grad] gz: expected g and the name of an input of f"));
    CHECK(has(thrown<InvalidError>([] {
                  ElementwiseFunction<2>({"T x", "T y", "y = x", "f"});
              }),
              "[f] outputs: expected 2, as ElementwiseFunction<2> says, got 1"));
}

TEST_CASE("in a FunctionNode and in a Function") {
    struct Node : FunctionNode {
        std::vector<Array> forward(std::span<const Array> inputs) override {
            const auto [x, y, z] = unpack<3>(inputs);
            retain_inputs({0, 1});
            return {elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd_fwd")(x, y, z)};
        }
        std::vector<Variable> backward(std::span<const std::size_t>,
                                       std::span<const Variable> g) override {
            const auto [x, y] = unpack<2>(get_retained_inputs());
            return {y * g[0], x * g[0], g[0]};
        }
    };
    struct Plain : Function<Plain> {
        std::vector<Array> forward(std::span<const Array> inputs) override {
            const auto [x, y, z] = unpack<3>(inputs);
            const Array w = Array::empty(x.shape(), x.dtype());
            elementwise("double* w, const double* x, const double* y, const double* z",
                        "w[i] = x[i] * y[i] + z[i]", "muladd_fwd")(w, x, y, z);
            return {w};
        }
        std::vector<Array> backward(std::span<const Array> inputs,
                                    std::span<const Array> g) override {
            const auto [gx, gy] =
                elementwise<2>("T x, T y, T gw", "T gx, T gy", "gx = y * gw; gy = x * gw",
                               "muladd_bwd")(inputs[0], inputs[1], g[0]);
            return {gx, gy, g[0]};
        }
    };
    const Array x = draw({3, 2}), y = draw({3, 2}), z = draw({3, 2});
    const auto node = [](const Variables& v) { return apply<Node>(std::span<const Variable>(v)); };
    gradient_check::check_backward(node, {{x, y, z}}, {{draw({3, 2})}});
    const auto plain = [](const Variables& v) -> Variables { return {Plain()(v[0], v[1], v[2])}; };
    gradient_check::check_backward(plain, {{x, y, z}}, {{draw({3, 2})}});
}
