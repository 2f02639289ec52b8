// Tests of FunctionNode: lifetime of arrays and nodes, threads, misuse.
#include "nodes.hpp"

#include <cmath>
#include <thread>

namespace {

std::int64_t in_use() { return Device::current().memory().in_use; }

}  // namespace

TEST_CASE("what is not retained is freed, what is retained is freed with the graph") {
    constexpr std::int64_t n = 1 << 20;
    constexpr std::int64_t bytes = n * 8;
    const auto big = [] { return Array::ones({n}, Dtype::float64); };
    const auto call = [](const Variable& x, bool keep_input, bool keep_output) {
        return apply<Any>(
            {x},
            [=](Any& node, ArraySpan v) -> Arrays {
                if (keep_input) node.retain_inputs({0});
                if (keep_output) node.retain_outputs({0});
                return {v[0] * 2};
            },
            [](Any&, Targets, VariableSpan gy) -> Variables { return {gy[0] * 2}; })[0];
    };
    const std::int64_t before = in_use();
    const auto measure = [&](bool keep_input, bool keep_output) {
        const Variable x(big());
        Variable y = call(call(x, false, false), keep_input, keep_output);
        const Variable z = F::sum(y);
        y = Variable();
        return (in_use() - before) / bytes;
    };
    CHECK(measure(false, false) == 1);  // only x
    CHECK(measure(true, false) == 2);
    CHECK(measure(false, true) == 2);
    CHECK(measure(true, true) == 3);
    CHECK((in_use() - before) / bytes == 0);
    const Variable x(big());
    Variable loss = F::sum(call(call(x, true, true), true, true));
    CHECK((in_use() - before) / bytes == 3);
    std::move(loss).backward();
    CHECK((in_use() - before) / bytes == 2);  // x and x.grad
    CHECK(values(F::sum(x.grad())) == Doubles{4.0 * n});
}

TEST_CASE("a retained output that the user let go comes back with its graph") {
    // The gradient is gy * y with y = exp(x): under double backprop, y must lead to x again.
    const Variable x = var({0.5});
    Variable g;
    {
        Variable y = apply<ExpSquare>({x}, 1.0)[0] * 2;  // the variable of exp(x) no longer exists
        y.backward(false, true);
        g = x.grad_variable();
    }
    x.cleargrad();
    g.backward();
    CHECK(values(x.grad())[0] == doctest::Approx(2 * std::exp(0.5)));
}

TEST_CASE("a retained input that the user let go comes back, too") {
    const Variable x = var({3});
    Variable h = x * x;
    const Variable y = mul_add(h, h, h);  // x^4 + x^2
    h = Variable();
    const Variable g = grad({y}, {x}, {}, {}, {.enable_double_backprop = true})[0];
    CHECK(values(g.data()) == Doubles{4 * 27 + 6});
    CHECK(values(grad({g}, {x})[0].data()) == Doubles{12 * 9 + 2});
}

TEST_CASE("data that changed since is noticed") {
    const Variable x = var({2});
    const Variable y = mul_add(x, x, x);
    CHECK(x.data().host<const double>()[0] == 2);
    y.backward();
    x.cleargrad();
    x.data().host<double>()[0] = 5;
    CHECK(error_of<GraphError>([&] { y.backward(); }) ==
          "[MulAdd] backward: expected input 0 unmodified since the call, got one that was changed "
          "in place; host<T>() counts as a change unless T is const");
    CHECK_FALSE(x.grad());
    const Variable z = var({2});
    mul_add(x, x, z).backward();
    CHECK(values(z.grad()) == Doubles{1});
    const Variable e = apply<ExpSquare>({x}, 1.0)[0];
    e.data().fill(0);
    contains(error_of<GraphError>([&] { e.backward(); }),
             "[ExpSquare] backward: expected output 0");
    const Variable w = mul_add(z, z, z);
    z.set_data(Array::zeros({1}, Dtype::float64));
    contains(error_of<GraphError>([&] { w.backward(false, true); }),
             "[MulAdd] backward: the data of input 0 was replaced after the call");
    w.backward();  // a first-order gradient uses the retained array
    CHECK(values(z.grad()) == Doubles{1 + 5});
    // An array that is not retained may change.
    const Variable free = var({2});
    const Variable sum = mul_add(var({1}), var({1}), free);
    free.data().fill(9);
    sum.backward();
    CHECK(values(free.grad()) == Doubles{1});
}

TEST_CASE("backward runs as often as it is asked for; a consuming one frees") {
    const Variable x = var({3});
    Variable y = mul_add(x, x, x);
    y.backward();
    y.backward();
    CHECK(values(x.grad()) == Doubles{14});
    std::move(y).backward();
    CHECK(values(x.grad()) == Doubles{21});
    CHECK_THROWS_AS(y.backward(), GraphError);
}

TEST_CASE("unchain_backward drops the node") {
    int freed = 0;
    struct Counting : MulAdd {
        explicit Counting(int& n) : count(n) {}
        ~Counting() override { ++count; }
        int& count;
    };
    const Variable x = var({3});
    const Variable y = apply<Counting>({x, x, x}, freed)[0];
    const Variable z = y * 2;
    z.unchain_backward();
    CHECK(freed == 1);
    CHECK(y.creator() == nullptr);
    CHECK_THROWS_AS(z.backward(), GraphError);
    CHECK_FALSE(x.grad());
    // unchain_backward() also releases a node to which the caller holds a shared_ptr.
    const auto node = std::make_shared<Counting>(freed);
    const Variable w = node->apply({x, x, x})[0];
    w.unchain_backward();
    CHECK(node.use_count() == 1);
}

TEST_CASE("a node is applied once, and lives in a shared_ptr") {
    const Variable x = var({3});
    const auto node = std::make_shared<MulAdd>();
    const Variable y = node->apply({x, x, x})[0];
    CHECK(error_of<GraphError>([&] {
              node->apply({x, x, x});
          }) ==
          "[MulAdd] apply: expected a new node for each call, got one that was applied before");
    y.backward();
    CHECK(values(x.grad()) == Doubles{7});
    MulAdd outside;
    contains(error_of<InvalidError>([&] { outside.apply({x, x, x}); }), "[MulAdd] apply: expected");
    // Also after an error.
    const auto failing = std::make_shared<MulAdd>();
    CHECK_THROWS_AS(failing->apply({x, x}), InvalidError);
    CHECK_THROWS_AS(failing->apply({x, x, x}), GraphError);
}

TEST_CASE("errors name the function and say what was expected") {
    const Variable x = var({1, 2});
    const auto text_of = [&](const Any::Forward& f, const Any::Backward& g) {
        return error_of<Error>([&] { F::sum(apply<Any>({x, x}, f, g)[0]).backward(); });
    };
    const auto returns = [](std::vector<Array> gx) {
        return [gx](Any&, Targets, VariableSpan) {
            Variables result;
            for (const Array& array : gx) result.push_back(array ? Variable(array) : Variable());
            return result;
        };
    };
    CHECK(text_of([](Any&, ArraySpan) { return Arrays(); }, hand_on) ==
          "[Any] forward: expected at least one output, got none");
    CHECK(text_of(pass_on, returns({})) == "[Any] backward: expected 2 gradients, got 0");
    CHECK(text_of(pass_on, returns({Array(), Array(), Array()})) ==
          "[Any] backward: expected 2 gradients, got 3");
    CHECK(text_of(pass_on, returns({Array(), Array::zeros({3}, Dtype::float64)})) ==
          "[Any] backward: gradient of input 1: expected shape (2,), got (3,)");
    CHECK(text_of(pass_on, returns({Array::zeros({2}), Array()})) ==
          "[Any] backward: gradient of input 0: expected float64, got float32");
    const Device second = Device::get(std::string(Device::current().backend()) + ":1");
    contains(text_of(pass_on, returns({Array::zeros({2}, Dtype::float64, second), Array()})),
             "[Any] backward: gradient of input 0: expected " + x.device().name());
    contains(text_of(
                 [](Any& n, ArraySpan v) {
                     n.retain_inputs({2});
                     return Arrays{v[0]};
                 },
                 hand_on),
             "[Any] retain_inputs: expected indexes below 2, got 2");
    contains(text_of(
                 [](Any& n, ArraySpan v) {
                     n.retain_outputs({1});
                     return Arrays{v[0]};
                 },
                 hand_on),
             "[Any] retain_outputs: expected indexes below 1, got 1");
    contains(text_of(
                 [](Any& n, ArraySpan v) {
                     (void)n.unpack<3>(v);
                     return Arrays{v[0]};
                 },
                 hand_on),
             "[Any] unpack: expected 3, got 2");
    contains(text_of(
                 [](Any& n, ArraySpan v) {
                     (void)n.get_retained_inputs();
                     return Arrays{v[0]};
                 },
                 hand_on),
             "[Any] get_retained_inputs: only within backward()");
    contains(text_of(pass_on,
                     [](Any& n, Targets, VariableSpan gy) {
                         n.retain_inputs({0});
                         return Variables{gy[0]};
                     }),
             "[Any] retain_inputs: only within forward()");
    CHECK_THROWS_AS(F::sum(apply<Any>({x}, pass_on,
                                      [](Any&, Targets, VariableSpan) -> Variables {
                                          throw std::runtime_error("mine");
                                      })[0])
                        .backward(),
                    std::runtime_error);
    CHECK_FALSE(x.grad());
    // If only some inputs want a gradient, the error names both numbers.
    const Variable c = as_variable(x.data());
    contains(error_of<InvalidError>([&] {
                 F::sum(apply<Any>({x, c}, pass_on, returns({}))[0]).backward();
             }),
             "expected 2 gradients (one for each input) or 1 (for each that wants one), got 0");
}

TEST_CASE("threads build and walk graphs of their own") {
    std::vector<std::thread> threads;
    std::vector<double> results(8);
    for (std::size_t i = 0; i < results.size(); ++i) {
        threads.emplace_back([&results, i] {
            for (int round = 0; round < 50; ++round) {
                const Variable x = var({static_cast<double>(i)});
                Variable y = x;
                for (int k = 0; k < 10; ++k) y = mul_add(y, var({1}), x);
                y.backward();
                results[i] = x.grad().item<double>() * 10 + static_cast<double>(i);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (std::size_t i = 0; i < results.size(); ++i) {
        CHECK(results[i] == 110 + static_cast<double>(i));
    }
}

TEST_CASE("a long chain of nodes goes without recursion") {
    Variable y = var({1});
    const Variable x = y;
    const Variable one = as_variable(Array::ones({1}, Dtype::float64));
    for (int i = 0; i < 20000; ++i) y = mul_add(y, one, one);
    y.backward();
    CHECK(values(x.grad()) == Doubles{1});
}

TEST_CASE("debug mode names the node that made a NaN") {
    const using_config debug(&Config::debug, true);
    contains(error_of<ValueError>([&] {
                 apply<Any>(
                     {var({1})},
                     [](Any&, ArraySpan v) -> Arrays {
                         return {Array::full({1}, std::nan(""), v[0].dtype())};
                     },
                     hand_on);
             }),
             "[Any] forward: output 0");
    const Variable x = var({1});
    const Variable y = apply<Any>({x}, pass_on, [](Any&, Targets, VariableSpan) -> Variables {
        return {as_variable(Array::full({1}, std::nan(""), Dtype::float64))};
    })[0];
    contains(error_of<ValueError>([&] { y.backward(); }), "[Any] backward: gradient of input 0");
}

TEST_CASE("what forward did not say to keep cannot be asked for") {
    const auto call = [](const Variable& x, const Any::Forward& f, const auto& kept) {
        apply<Any>({x}, f,
                   [&](Any& n, Targets, VariableSpan gy) -> Variables {
                       const Variables k = kept(n);
                       CHECK(k.empty());
                       return {gy[0]};
                   })[0]
            .backward();
    };
    const auto inputs = [](Any& n) { return n.get_retained_inputs(); };
    const auto outputs = [](Any& n) { return n.get_retained_outputs(); };
    const Any::Forward keeps_input = [](Any& n, ArraySpan x) -> Arrays {
        n.retain_inputs({0});
        return {x[0] * 2};
    };
    const Any::Forward keeps_output = [](Any& n, ArraySpan x) -> Arrays {
        n.retain_outputs({0});
        return {x[0] * 2};
    };
    const Any::Forward keeps_nothing = [](Any& n, ArraySpan x) -> Arrays {
        n.retain_inputs({});
        n.retain_outputs({});
        return {x[0] * 2};
    };
    const Variable x = var({1});
    CHECK(error_of<GraphError>([&] { call(x, keeps_output, inputs); }) ==
          "[Any] get_retained_inputs: expected retain_inputs() in forward(), got none");
    CHECK(error_of<GraphError>([&] { call(x, keeps_input, outputs); }) ==
          "[Any] get_retained_outputs: expected retain_outputs() in forward(), got none");
    CHECK_FALSE(x.grad());
    call(x, keeps_nothing, inputs);
    call(x, keeps_nothing, outputs);
    CHECK(values(x.grad()) == Doubles{2});

    struct Forgot : Function<Forgot> {
        Arrays forward(ArraySpan v) override { return {v[0] * 2}; }
        Arrays backward(ArraySpan, ArraySpan) override { return {get_retained_outputs()[0]}; }
    };
    CHECK(error_of<GraphError>([&] { Forgot()(x).backward(); }) ==
          "[Forgot] get_retained_outputs: expected retain_outputs() in forward(), got none");
    struct Early : Function<Early> {
        Arrays forward(ArraySpan v) override {
            retain_outputs({0});
            return {get_retained_outputs()[0] * v[0]};
        }
    };
    CHECK(error_of<GraphError>([&] { Early()(x); }) ==
          "[Early] get_retained_outputs: only within backward()");
}
