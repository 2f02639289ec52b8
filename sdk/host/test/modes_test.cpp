// Tests of volatile variables, of configuration scopes and threads, of debug mode, of use_cudnn.
#include "nodes.hpp"

#include <catena/links.hpp>

#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

template <class Body>
void in_a_thread(const Body& body) {
    std::thread(body).join();
}
Variable ones(bool is_volatile) { return Variable(Array::ones({2, 3}), is_volatile); }

const double nan64 = std::nan("");

struct BadForward : FunctionNode {
    Arrays forward(ArraySpan x) override { return {x[0] * nan64}; }
    Variables backward(Targets, VariableSpan gy) override { return {gy[0]}; }
};
struct BadBackward : FunctionNode {
    Arrays forward(ArraySpan x) override { return {x[0].copy()}; }
    Variables backward(Targets, VariableSpan gy) override { return {gy[0] * nan64}; }
};
struct OldBad : Function<OldBad> {
    Arrays forward(ArraySpan x) override { return {x[0].copy()}; }
    Arrays backward(ArraySpan, ArraySpan gy) override { return {gy[0] * nan64}; }
};

}  // namespace

// Functions whose names appear in stack traces.
__attribute__((noinline)) Variable where_a_node_is_made(bool good_forward, const Variable& x) {
    Variable y = good_forward ? apply<BadBackward>({x})[0] : apply<BadForward>({x})[0];
    asm volatile("" ::: "memory");  // prevents a tail call
    return y;
}
__attribute__((noinline)) Variable where_an_old_function_is_called(const Variable& x) {
    Variable y = OldBad()(x);
    asm volatile("" ::: "memory");
    return y;
}
__attribute__((noinline)) Variable where_a_plugin_is_called(bool root, const Variable& x) {
    Variable y = root ? F::sqrt(x) : F::log(x);
    asm volatile("" ::: "memory");
    return y;
}

TEST_CASE("a volatile variable passes links and leaves no graph") {
    links::Linear l1(3, 4);
    links::Linear l2(4, 2);
    const Variable h = F::relu(l1(ones(true)));
    const Variable y = l2(h);
    for (const Variable& v : {h, y}) {
        CHECK(v.is_volatile());
        CHECK(v.creator() == nullptr);
        CHECK_FALSE(v.requires_grad());
    }
    const Variable same = l2(F::relu(l1(ones(false))));
    CHECK(same.creator() != nullptr);
    CHECK(y.data().to_vector<float>() == same.data().to_vector<float>());
    CHECK_THROWS_AS(F::sum(y).backward(), GraphError);
    CHECK_FALSE(l1.W.grad());
    CHECK_FALSE(l2.W.grad());
    CHECK_FALSE(l1.W.is_volatile());
}

TEST_CASE("a predictor on top of a network that is not learned, with and without parameters") {
    links::Linear fixed(3, 4);
    links::Linear learned(4, 4);
    const std::function<Variable(const Variable&)> predictors[] = {
        [&](const Variable& v) { return learned(v); },
        [](const Variable& v) { return v * v; },
        [](const Variable& v) { return mul_add(v, v, v); },
        [](const Variable& v) {
            return F::concat({v, v}, 0);
        },
    };
    const std::function<Variable(const Variable&)> extractors[] = {
        [&](const Variable& v) { return F::relu(fixed(v)); },
        [](const Variable& v) { return v * 2; },
        [](const Variable& v) { return mul_add(v, v, v); },
    };
    for (std::size_t e = 0; e < std::size(extractors); ++e) {
        for (std::size_t p = 0; p < std::size(predictors); ++p) {
            if (p == 0 && e != 0) continue;  // feat has 3 columns, learned needs 4
            CAPTURE(e);
            CAPTURE(p);
            const Variable x = ones(true);
            const Variable feat = extractors[e](x);
            feat.set_volatile(false);  // feat.volatile = False in Chainer
            F::sum(predictors[p](feat)).backward();
            const Variable leaf(feat.data());
            F::sum(predictors[p](leaf)).backward();
            REQUIRE(feat.grad());
            CHECK(feat.grad().to_vector<float>() == leaf.grad().to_vector<float>());
            CHECK_FALSE(x.grad());
            CHECK_FALSE(fixed.W.grad());
        }
    }
    CHECK(learned.W.grad());
}

TEST_CASE("volatile and other variables do not mix") {
    const Variable a = ones(true);
    const Variable b = ones(false);
    CHECK_THROWS_AS((void)(a + b), GraphError);
    CHECK_THROWS_AS((void)(b * a), GraphError);
    CHECK_THROWS_AS((void)F::concat({b, a}, 0), GraphError);
    CHECK((a + a).is_volatile());
    CHECK((a + as_variable(Array::ones({2, 3}))).is_volatile());  // the array requires no gradient
    CHECK((a * 2 - 1).is_volatile());
    a.set_volatile(false);
    CHECK((a + b).creator() != nullptr);
}

TEST_CASE("no_backprop_mode: results only, for as long as the scope lasts") {
    links::Linear linear(3, 4);
    {
        const no_backprop_mode scope;
        const Variable y = linear(ones(false));
        CHECK(y.creator() == nullptr);
        CHECK_FALSE(y.requires_grad());
        CHECK_FALSE(y.is_volatile());
        {
            const force_backprop_mode inner;
            CHECK(linear(ones(false)).creator() != nullptr);
        }
        CHECK(linear(ones(false)).creator() == nullptr);
        const no_backprop_mode again;
        CHECK(linear(ones(false)).creator() == nullptr);
        (void)(y + linear(ones(true)));  // no graph is recorded, so variables may mix
    }
    const Variable y = linear(ones(false));
    CHECK(y.creator() != nullptr);
    // backward() in the scope follows the graph recorded before it.
    const no_backprop_mode scope;
    CHECK_THROWS_AS(F::sum(y).backward(), GraphError);  // F::sum itself was not recorded
    CHECK_FALSE(linear.W.grad());
    y.set_grad(Array::ones({2, 4}));
    y.backward();
    CHECK(linear.W.grad().to_vector<float>() == std::vector<float>(12, 2));
}

TEST_CASE("a scope ends with an exception, too") {
    try {
        const no_backprop_mode off;
        const using_config test(&Config::train, false);
        const using_config debug(&Config::debug, true);
        throw std::runtime_error("out");
    } catch (const std::runtime_error&) {
    }
    CHECK(config().enable_backprop);
    CHECK(config().train);
    CHECK_FALSE(config().debug);
    // Also after an exception from backward().
    CHECK_THROWS_AS(F::sum(apply<Any>({var({1})}, pass_on,
                                      [](Any&, Targets, VariableSpan) -> Variables {
                                          throw std::runtime_error("backward");
                                      })[0])
                        .backward(),
                    std::runtime_error);
    CHECK(config().enable_backprop);
}

TEST_CASE("scopes are the thread's own: another thread sees the defaults") {
    const no_backprop_mode off;
    const using_config test(&Config::train, false);
    const using_config debug(&Config::debug, true);
    const using_config exact(&Config::deterministic, true);
    const using_device device("cpu:1");
    links::BatchNormalization norm(3);
    norm.to(Device::get("cpu:0"));
    bool as_by_default = false;
    bool recorded = false;
    bool trained = false;
    bool quiet = false;
    in_a_thread([&] {
        const Config& c = config();
        as_by_default = c.train && c.enable_backprop && !c.debug && !c.deterministic &&
                        Device::current() == Device::get("cpu:0");
        const Variable x(Array::from({1.F, 2.F, 3.F, 5.F, 6.F, 7.F}, {2, 3}));
        recorded = norm(x).creator() != nullptr;
        trained = norm.avg_mean.to_vector<float>() != std::vector<float>(3, 0);
        quiet = std::isnan(apply<BadForward>({var({1})})[0].data().item<double>());
    });
    CHECK(as_by_default);
    CHECK(recorded);
    CHECK(trained);
    CHECK(quiet);
    CHECK(Device::current() == Device::get("cpu:1"));
}

TEST_CASE("scopes of another thread are not seen here") {
    bool there = true;
    in_a_thread([&] {
        const no_backprop_mode off;
        const using_config test(&Config::train, false);
        there = (var({1}) * 2).creator() != nullptr;
        in_a_thread([&] { CHECK((var({1}) * 2).creator() != nullptr); });
        config().debug = true;  // applies to this thread only
    });
    CHECK_FALSE(there);
    CHECK(config().train);
    CHECK_FALSE(config().debug);
    CHECK((var({1}) * 2).creator() != nullptr);
    // Several threads at once, each with its own modes.
    std::vector<std::thread> threads;
    std::vector<int> wrong(6);
    for (std::size_t i = 0; i < wrong.size(); ++i) {
        threads.emplace_back([&wrong, i] {
            for (int round = 0; round < 200; ++round) {
                const using_config scope(&Config::enable_backprop, i % 2 == 0);
                const using_config train(&Config::train, i % 3 == 0);
                wrong[i] += ((var({1}) * 2).creator() != nullptr) != (i % 2 == 0);
                const auto y = F::dropout(Variable(Array::ones({64})), 0.5).data();
                wrong[i] += (y.to_vector<float>() != std::vector<float>(64, 1)) != (i % 3 == 0);
            }
        });
    }
    for (auto& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(6));
}

TEST_CASE("debug mode: NaN from a node of one's own, by name and place") {
    const Variable x = var({1, 2});
    CHECK_NOTHROW(where_a_node_is_made(false, x));
    CHECK_NOTHROW(F::sum(where_a_node_is_made(true, x)).backward());
    x.cleargrad();
    const using_config debug(&Config::debug, true);
    const auto forward = error_of<ValueError>([&] { where_a_node_is_made(false, x); });
    // The error names the multiplication that made the NaN, and the node that called it.
    contains(forward, "expected numbers, got NaN in 2 of 2 elements");
    contains(forward, "BadForward::forward(");
    contains(forward, "where_a_node_is_made(");
    const Variable y = F::sum(where_a_node_is_made(true, x));
    const auto backward = error_of<ValueError>([&] { y.backward(); });
    contains(backward, "BadBackward");
    contains(backward, "the call was made at");
    contains(backward, "where_a_node_is_made(");
    CHECK_FALSE(x.grad());
    const Variable z = F::sum(where_an_old_function_is_called(x));
    const auto old = error_of<ValueError>([&] { z.backward(); });
    contains(old, "OldBad");
    contains(old, "where_an_old_function_is_called(");
    CHECK_FALSE(x.grad());
}

TEST_CASE("debug mode: NaN from a plugin's function, by name and place") {
    const using_config debug(&Config::debug, true);
    const auto forward = error_of<ValueError>([&] {
        where_a_plugin_is_called(false, var({1, -1, 0}));
    });
    CHECK(
        forward.starts_with("[catena.log] forward: y: expected numbers, got NaN in 1 of 3 "
                            "elements; the call was made at\n  "));
    contains(forward, "where_a_plugin_is_called(");
    for (const bool composed : {false, true}) {
        const Variable x = var({0, 4});
        const Variable y = where_a_plugin_is_called(true, x);
        y.set_grad(Array::from({0.0, 1.0}, {2}));  // 0 / sqrt(0)
        const auto backward = error_of<ValueError>([&] { y.backward(false, composed); });
        contains(backward, "catena.sqrt");
        contains(backward, "where_a_plugin_is_called(");
        x.cleargrad();                             // the kernel wrote the gradient before the check
        y.set_grad(Array::from({1.0, 1.0}, {2}));  // infinity is not NaN
        CHECK_NOTHROW(y.backward(false, false));
        CHECK(values(x.grad()) == Doubles{HUGE_VAL, 0.25});
    }
}

namespace {

// Logs the named setting "use_cudnn" in forward and backward.
struct Choice : FunctionNode {
    explicit Choice(std::vector<std::int64_t>* to) : noted(to) {}
    Arrays forward(ArraySpan x) override {
        note();
        return {x[0].copy()};
    }
    Variables backward(Targets, VariableSpan gy) override {
        note();
        return {gy[0]};
    }
    void note() const {
        const auto found = config().named.find("use_cudnn");
        noted->push_back(found == config().named.end() ? -1 : found->second);
    }
    std::vector<std::int64_t>* noted;
};
struct Chosen : Link {
    explicit Chosen(std::vector<std::int64_t>* to, double = 0) : noted(to) {}
    Variable operator()(const Variable& x) override { return apply<Choice>({x}, noted)[0]; }
    Variable operator()(const Variable& x, const Variable& t) { return (*this)(x * t); }
    Variable operator()(const Variable& x, double by) const {
        return apply<Choice>({x * by}, noted)[0];
    }
    void visit(Visitor& v) override { v("W", W); }
    std::vector<std::int64_t>* noted;
    Parameter W{Array::ones({2})};
};

}  // namespace

TEST_CASE("use_cudnn: of a thread, of one call, of a link; gradients follow the call") {
    using Seen = std::vector<std::int64_t>;
    Seen seen;
    const auto noted = [&] { return std::exchange(seen, {}); };
    const Variable x = var({1});
    const auto f = [&](const Variable& v) { return apply<Choice>({v}, &seen)[0]; };
    const Variable y = cuda::with_cudnn(false, [&] { return f(x); });
    const Variable z = cuda::with_cudnn(true, f, f(y));
    CHECK(noted() == Seen{0, -1, 1});
    z.backward();
    CHECK(noted() == Seen{1, -1, 0});
    {
        const cuda::use_cudnn scope(false);
        z.backward();
    }
    CHECK(noted() == Seen{1, 0, 0});

    cuda::WithCudnn<Chosen> link(false, &seen, 0.5);
    Link& base = link;
    base(link(x)).backward();
    CHECK(noted() == Seen{0, 0, 0, 0});
    link.is_used = true;
    link(x, x).backward();
    CHECK(noted() == Seen{1, 1});
    const auto& constant = link;
    constant(x, 2.0).backward();
    CHECK(noted() == Seen{1, 1});
    static_assert(!std::invocable<decltype(constant), const Variable&, const Variable&>);
    CHECK(link.collect_parameters().size() == 1);
    const auto copy = deep_copy(link);
    CHECK(copy.is_used);
    // WithCudnn also works in a FunctionSet, and passes on constructor arguments.
    FunctionSet set{{"conv", cuda::WithCudnn<links::Convolution2D>(false, 1, 2, 3)}};
    const Variable image = as_variable(Array::ones({1, 1, 4, 4}));
    CHECK(set["conv"](image).shape() == Shape{1, 2, 2, 2});
}

TEST_CASE("threads share a net for inference") {
    struct Net : Chain {
        links::Convolution2D conv{1, 4, 3};
        links::BatchNormalization norm{4};
        links::Linear in{4 * 4 * 4, 16}, out{16, 5};
        links::MultiHeadAttention attention{16, 4};
        void visit(Visitor& v) override {
            v("conv", conv)("norm", norm)("in", in)("out", out)("attention", attention);
        }
        Variable operator()(const Variable& x) const override {
            const Variable h = in(F::dropout(F::relu(norm(conv(x)))));
            return out(F::reshape(attention(F::reshape(h, {1, x.shape()[0], 16})), {-1, 16}));
        }
    };
    const Net net;
    std::vector<std::vector<std::pair<Array, Array>>> results(8);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < results.size(); ++i) {
            const auto infer = [&net, &result = results[i]] {
                const no_backprop_mode no_graph;
                const using_config testing(&Config::train, false);
                for (int call = 0; call < 20; ++call) {
                    const Array x = random::normal({3, 1, 6, 6});
                    result.emplace_back(x, net(as_variable(x)).data());
                }
            };
            threads.emplace_back(infer);
        }
    }
    const no_backprop_mode no_graph;
    const using_config testing(&Config::train, false);
    for (const auto& of_thread : results) {
        REQUIRE(of_thread.size() == 20);
        for (const auto& [x, y] : of_thread)
            CHECK(y.to_vector<float>() == net(as_variable(x)).data().to_vector<float>());
    }
}
