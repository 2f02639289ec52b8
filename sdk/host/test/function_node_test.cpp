// Tests of FunctionNode: values, gradients of any order, targets, devices.
#include "nodes.hpp"

TEST_CASE("gradients of first and second order") {
    const auto f = [](const Variables& v) -> Variables { return {mul_add(v[0], v[1], v[2])}; };
    const auto inputs = [](const Shape& shape) {
        return Arrays{draw(shape), draw(shape), draw(shape)};
    };
    for (const Shape& shape : {Shape{3, 2}, Shape{1}, Shape{}, Shape{0, 4}}) {
        gradient_check::check_backward(f, inputs(shape), Arrays{draw(shape)});
        gradient_check::check_double_backward(f, inputs(shape), Arrays{draw(shape)}, inputs(shape));
    }
    const auto two = [](const Variables& v) { return apply<ExpSquare>({v[0] * v[0]}, 0.5); };
    const Array x = draw({4});
    gradient_check::check_backward(two, Arrays{x}, Arrays{draw({4}), draw({4})});
    gradient_check::check_double_backward(two, Arrays{x}, Arrays{draw({4}), draw({4})},
                                          Arrays{draw({4})});
    for (const std::size_t i : {0U, 1U}) {
        const auto one = [i](const Variables& v) -> Variables {
            return {apply<ExpSquare>({v[0]}, 3.0)[i]};
        };
        gradient_check::check_backward(one, Arrays{x}, Arrays{draw({4})});
        gradient_check::check_double_backward(one, Arrays{x}, Arrays{draw({4})}, Arrays{draw({4})});
    }
}

TEST_CASE("one variable as several inputs, and nodes in a row") {
    const Variable x = var({3});
    const Variable y = mul_add(x, x, mul_add(x, x, x));  // 2 x^2 + x
    CHECK(values(y.data()) == Doubles{21});
    y.backward();
    CHECK(values(x.grad()) == Doubles{13});
    CHECK(y.creator()->label() == "MulAdd");
    CHECK(y.rank() == 2);
}

TEST_CASE("grad() goes through it, to any order") {
    struct Cube : FunctionNode {
        Arrays forward(ArraySpan x) override {
            retain_inputs({0});
            return {x[0] * x[0] * x[0]};
        }
        Variables backward(Targets, VariableSpan gy) override {
            const Variable x = get_retained_inputs()[0];
            return {3 * gy[0] * mul_add(x, x, as_variable(Array::zeros({1}, Dtype::float64)))};
        }
    };
    const Variable x = var({2});
    const GradOptions record{.enable_double_backprop = true};
    const Variable g1 = grad({apply<Cube>({x})[0]}, {x}, {}, {}, record)[0];
    const Variable g2 = grad({g1}, {x}, {}, {}, record)[0];
    const Variable g3 = grad({g2}, {x})[0];
    CHECK(values(g1.data()) == Doubles{12});
    CHECK(values(g2.data()) == Doubles{12});
    CHECK(values(g3.data()) == Doubles{6});
    CHECK_FALSE(x.grad());
}

TEST_CASE("targets are the inputs that want a gradient; one for each is enough") {
    std::vector<std::size_t> seen;
    const auto call = [&](const Variables& v) {
        return apply<Any>(
            v, [](Any&, ArraySpan x) -> Arrays { return {x[0] + x[1] + x[2]}; },
            [&](Any&, Targets t, VariableSpan gy) {
                seen.assign(t.begin(), t.end());
                return Variables(t.size(), gy[0]);
            })[0];
    };
    const Variable a = var({1});
    const Variable b = as_variable(Array::from({2.0}, {1}));
    const Variable c = var({3});
    call({a, b, c}).backward();
    CHECK(seen == std::vector<std::size_t>{0, 2});
    CHECK(values(c.grad()) == Doubles{1});
    CHECK_FALSE(b.grad());
    CHECK_FALSE(call({b, b, b}).requires_grad());
    CHECK(call({b, b, b}).creator() == nullptr);
    const Variable y = call({a, b, Variable(Array::from({2.0}, {1}))});  // a leaf without a handle
    y.backward();
    CHECK(seen == std::vector<std::size_t>{0});
    (void)grad({call({a, b, c})}, {c});
    CHECK(seen == std::vector<std::size_t>{2});
}

TEST_CASE("inputs may be missing, and so may gradients") {
    const auto call = [](const Variable& x, const Variable& b) {
        return apply<Any>(
            {x, b},
            [](Any& n, ArraySpan v) -> Arrays {
                n.retain_inputs({0, 1});
                return {v[1] ? v[0] + v[1] : v[0] * 1};
            },
            [](Any& n, Targets, VariableSpan gy) -> Variables {
                const Variables kept = n.get_retained_inputs();
                CHECK(kept.size() == 2);
                return {gy[0] * 2, kept[1] ? Variable() : gy[0]};
            })[0];
    };
    const Variable x = var({1});
    const Variable b = var({1});
    call(x, {}).backward();
    CHECK(values(x.grad()) == Doubles{2});
    call(x, b).backward();
    CHECK(values(x.grad()) == Doubles{4});
    CHECK_FALSE(b.grad());
}

TEST_CASE("without inputs a call still has a backward; without a backward no gradient") {
    int runs = 0;
    const auto call = [&] {
        return apply<Any>(
            {},
            [](Any&, ArraySpan x) -> Arrays {
                return {Array::ones({1 + static_cast<int>(x.size())})};
            },
            [&](Any&, Targets t, VariableSpan) {
                ++runs;
                return Variables(t.size());
            })[0];
    };
    const Variable y = call();
    CHECK(y.requires_grad());
    (y * 2).backward();
    CHECK(runs == 1);
    {
        const no_backprop_mode scope;
        CHECK_FALSE(call().requires_grad());
    }
    struct NoGradient : FunctionNode {
        Arrays forward(ArraySpan x) override { return {x[0] * 2}; }
    };
    const Variable x = var({1});
    apply<NoGradient>({x})[0].backward();
    CHECK_FALSE(x.grad());
}

TEST_CASE("integers in, integers out") {
    const Variable ids(Array::from<std::int32_t>({1, 2}, {2}));
    const Variable x = var({1, 2});
    const auto y = apply<Any>(
        {x, ids},
        [](Any&, ArraySpan v) -> Arrays {
            return {v[0] * 2, v[1].copy()};
        },
        [](Any&, Targets t, VariableSpan gy) -> Variables {
            CHECK(t.size() == 1);
            CHECK_FALSE(gy[1]);
            return {gy[0] * 2};
        });
    CHECK(y[0].requires_grad());
    CHECK_FALSE(y[1].requires_grad());
    F::sum(y[0]).backward();
    CHECK(values(x.grad()) == Doubles{2, 2});
}

TEST_CASE("an output may be an input; a gradient may be another's") {
    const Variable x = var({1, 2});
    const Variable y = apply<Any>(
        {x}, [](Any&, ArraySpan v) -> Arrays { return {v[0]}; }, hand_on)[0];
    CHECK(y.data().body() == x.data().body());
    const Variable z = mul_add(y, y, y);
    F::sum(z + z).backward();
    CHECK(values(x.grad()) == Doubles{6, 10});
    // Gradients returned for two inputs do not share memory.
    const Variable a = var({1, 1});
    const Variable b = var({1, 1});
    const Variable sum = apply<Any>(
        {a, b}, [](Any&, ArraySpan v) -> Arrays { return {v[0] + v[1]}; },
        [](Any&, Targets, VariableSpan gy) -> Variables {
            return {gy[0], gy[0]};
        })[0];
    F::sum(sum).backward();
    a.grad().fill(7);
    CHECK(values(b.grad()) == Doubles{1, 1});
}

TEST_CASE("volatile inputs and no_backprop_mode record nothing") {
    int freed = 0;
    struct Counting : MulAdd {
        explicit Counting(int& n) : count(n) {}
        ~Counting() override { ++count; }
        int& count;
    };
    const auto leaf = [](bool is_volatile) { return Variable(draw({2}), is_volatile); };
    const Variable v = apply<Counting>({leaf(true), leaf(true), leaf(true)}, freed)[0];
    CHECK(v.is_volatile());
    CHECK(v.creator() == nullptr);
    CHECK_FALSE(v.requires_grad());
    CHECK(freed == 1);
    CHECK_THROWS_AS(mul_add(leaf(true), leaf(false), leaf(true)), GraphError);
    {
        const no_backprop_mode scope;
        const Variable y = apply<Counting>({leaf(false), leaf(false), leaf(false)}, freed)[0];
        CHECK(y.creator() == nullptr);
        CHECK(freed == 2);
        const force_backprop_mode inner;
        CHECK(mul_add(leaf(false), leaf(false), leaf(false)).creator() != nullptr);
    }
    Variable y = apply<Counting>({leaf(false), leaf(false), leaf(false)}, freed)[0];
    CHECK(freed == 2);
    y = Variable();
    CHECK(freed == 3);
}

TEST_CASE("names: the class's, or its own") {
    struct Named : MulAdd {
        std::string label() const override { return "named by me"; }
    };
    const Variable x = var({1});
    CHECK(apply<Named>({x, x, x})[0].creator()->label() == "named by me");
    contains(error_of<InvalidError>([&] { apply<Named>({x}); }), "[named by me] unpack");
}

TEST_CASE("forward and backward run on the inputs' device, as the call was made") {
    const Device second = Device::get(std::string(Device::current().backend()) + ":1");
    const Variable x(draw({3}).to(second));
    Device forward_on;
    Device backward_on;
    bool train = true;
    Variable y;
    {
        const using_config testing(&Config::train, false);
        y = apply<Any>(
            {x},
            [&](Any&, ArraySpan v) -> Arrays {
                forward_on = Device::current();
                return {v[0] + Array::ones({3}, Dtype::float64)};
            },
            [&](Any&, Targets, VariableSpan gy) -> Variables {
                backward_on = Device::current();
                train = config().train;
                return {gy[0] + as_variable(Array::ones({3}, Dtype::float64))};
            })[0];
    }
    F::sum(y).backward();
    CHECK(forward_on == second);
    CHECK(backward_on == second);
    CHECK_FALSE(train);
    CHECK(values(x.grad()) == Doubles{2, 2, 2});
    CHECK(Device::current() != second);
}

TEST_CASE("nothing that forward computes becomes a graph; gradients do if asked for") {
    bool recorded = false;
    const auto call = [&](const Variable& x) {
        return apply<Any>(
            {x}, [](Any&, ArraySpan v) -> Arrays { return {(Variable(v[0]) * 2).data()}; },
            [&](Any&, Targets, VariableSpan gy) -> Variables {
                const Variable gx = gy[0] * 2;
                recorded = gx.creator() != nullptr;
                return {gx};
            })[0];
    };
    const Variable x = var({1});
    const Variable y = call(x);
    CHECK(y.rank() == 1);
    y.backward();
    CHECK_FALSE(recorded);
    const Variable gy = var({1});
    (void)grad({y}, {x}, {gy}, {}, {.enable_double_backprop = true});
    CHECK(recorded);
}

TEST_CASE("retain_grad keeps what arrives at a node's outputs") {
    const Variable x = var({2});
    const Variable h = mul_add(x, x, x);
    const Variable y = h * 3;
    y.backward(true);
    CHECK(values(h.grad()) == Doubles{3});
    CHECK(values(x.grad()) == Doubles{15});
}
