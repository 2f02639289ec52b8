// Tests of graph nodes that a host defines.
#include "toys.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

using namespace catena;
using namespace toys;

namespace {

Array map(const Array& x, double (*f)(double)) {
    std::vector<double> v = x.to_vector<double>();
    for (double& value : v) value = f(value);
    return Array::from<double>(v, x.shape()).astype(x.dtype());
}

struct Broken : std::out_of_range {
    using std::out_of_range::out_of_range;
};

// (x + 1, x^2) for each element; requires_grad of the second output can be turned off.
class Pair final : public GraphNode {
public:
    static std::vector<Variable> call(const Variable& x, bool second_differentiable = true) {
        const Ref<GraphNode> owner(new Pair);
        auto& node = static_cast<Pair&>(*owner);
        std::vector<Variable> y = {Variable(map(x.data(), [](double v) { return v + 1; })),
                                   Variable(map(x.data(), [](double v) { return v * v; }))};
        y[1].set_requires_grad(second_differentiable);
        const Variable* const inputs[] = {&x};
        node.recorded = node.record(inputs, y);
        last_recorded = node.recorded;
        if (node.recorded) node.retain_input(0, x);
        return y;
    }
    ~Pair() override { ++dead; }

    std::string_view label() const noexcept override { return "Pair"; }
    void gradients(std::span<const Variable> gy, std::span<const bool> wanted,
                   std::span<Variable> gx) override {
        if (fail) throw Broken("no more");
        if (!config().enable_backprop) ++runs;
        if (!wanted[0]) return;
        gx[0] = gy[0];
        if (!gy[1]) return;
        const Variable x = retained_input(0);
        const Variable product = mul.first({&gy[1], &x});
        const Variable twice = add.first({&product, &product});
        gx[0] = gx[0] ? add.first({&gx[0], &twice}) : twice;
    }

    bool recorded = false;
    inline static bool last_recorded = false;
    inline static bool fail = false;
    inline static int dead = 0;
    inline static int runs = 0;
};

// A node without inputs: a parameter that stores its own gradient.
class Source final : public GraphNode {
public:
    static Variable call(Array value) {
        const Ref<GraphNode> owner(new Source);
        const Variable y(std::move(value));
        static_cast<Source&>(*owner).record({}, std::span(&y, 1));
        return y;
    }
    std::string_view label() const noexcept override { return "Source"; }
    std::string input_name(std::size_t) const override { return "nothing"; }
    std::string output_name(std::size_t) const override { return "value"; }
    void gradients(std::span<const Variable> gy, std::span<const bool>,
                   std::span<Variable>) override {
        gradient = gy[0].data();
    }

    inline static Array gradient;
};

}  // namespace

TEST_CASE("a host's call: both outputs, either gradient, both orders") {
    const Variable x(doubles({3}));
    const auto y = Pair::call(x);
    CHECK(Pair::last_recorded);
    CHECK(values(y[0].data()) == Values{4});
    CHECK(y[0].requires_grad());
    CHECK(y[0].rank() == 1);
    CHECK(y[1].creator()->outputs().size() == 2);
    CHECK(y[1].creator()->input_name(0) == "input 0");
    CHECK(y[1].creator()->output_name(1) == "output 1");
    y[1].backward();
    CHECK(values(x.grad()) == Values{6});
    y[0].backward();
    CHECK(values(x.grad()) == Values{7});
    CHECK(values(grad(y, {x})[0].data()) == Values{7});
    const Variable z = mul.first({&y[0], &y[1]});  // (x + 1) x^2
    CHECK(values(grad({z}, {x})[0].data()) == Values{33});
    const auto gx = grad({z}, {x}, {}, {}, {.enable_double_backprop = true});
    CHECK(values(gx[0].data()) == Values{33});
    CHECK(values(grad(gx, {x})[0].data()) == Values{20});  // 6 x + 2
}

TEST_CASE("a host's call: when there is a graph") {
    const Variable x(doubles({3}));
    const auto partly = Pair::call(x, false);
    CHECK(partly[0].requires_grad());
    CHECK_FALSE(partly[1].requires_grad());
    const Variable constant = as_variable(doubles({3}));
    const auto none = Pair::call(constant);
    CHECK_FALSE(Pair::last_recorded);
    CHECK_FALSE(none[0].requires_grad());
    CHECK(none[0].creator() == nullptr);
    {
        const no_backprop_mode scope;
        CHECK_FALSE(Pair::call(x)[0].requires_grad());
        CHECK(Pair::call(x)[0].creator() == nullptr);
    }
    const Variable volatile_x(doubles({3}), true);
    const auto v = Pair::call(volatile_x);
    CHECK(v[0].is_volatile());
    CHECK(v[0].creator() == nullptr);
    CHECK_FALSE(v[0].requires_grad());
    v[1].set_volatile(false);
    CHECK(v[1].requires_grad());
    CHECK_THROWS_AS(mul.first({&v[0], &x}), GraphError);
}

TEST_CASE("a host's call of volatile and other variables") {
    struct Two final : GraphNode {
        std::string_view label() const noexcept override { return "Two"; }
        void gradients(std::span<const Variable>, std::span<const bool>,
                       std::span<Variable>) override {}
        bool go(const Variable& a, const Variable& b) {
            const Variable* const inputs[] = {&a, &b, nullptr};
            return record(inputs, {});
        }
    };
    const Ref<GraphNode> node(new Two);
    const Variable a(doubles({1}), true), b(doubles({1})), none;
    CHECK_THROWS_WITH_AS(static_cast<Two&>(*node).go(a, b),
                         "[Two] input 1: expected a volatile variable as another input is, or a "
                         "Parameter (what a link learns, named in its visit()), got neither",
                         GraphError);
    CHECK_FALSE(static_cast<Two&>(*node).go(a, none));
    CHECK(static_cast<Two&>(*node).go(none, b));
    CHECK(node->inputs().size() == 3);
    CHECK_FALSE(node->inputs()[0]);
}

TEST_CASE("a host's call without inputs") {
    const Variable y = Source::call(doubles({2}));
    CHECK(y.requires_grad());
    CHECK(y.rank() == 1);
    Variable z = mul.first({&y, &y});
    z.backward();
    CHECK(values(Source::gradient) == Values{4});
    CHECK(values(grad({z}, {y})[0].data()) == Values{4});
    Source::gradient = Array();
    grad({z}, {y});
    CHECK_FALSE(Source::gradient);  // y is the only requested input: Source has none
    std::move(z).backward();
    CHECK(values(Source::gradient) == Values{4});
    {
        const no_backprop_mode scope;
        CHECK_FALSE(Source::call(doubles({2})).requires_grad());
    }
}

TEST_CASE("a host's exception comes out as it went in, and leaves nothing behind") {
    const Variable x(doubles({3}));
    const auto y = Pair::call(x);
    const Variable z = mul.first({&y[0], &y[1]});
    Pair::fail = true;
    CHECK_THROWS_WITH_AS(z.backward(), "no more", Broken);
    CHECK_THROWS_AS(grad({z}, {x}), Broken);
    Pair::fail = false;
    z.backward();  // adds no gradients of the failed passes
    CHECK(values(x.grad()) == Values{33});
}

TEST_CASE("a host's calls are consumed like others, and freed without recursion") {
    const Variable x(doubles({1}));
    Pair::dead = Pair::runs = 0;
    Variable y = x;
    for (int i = 0; i < 1000; ++i) y = Pair::call(y)[0];
    CHECK(Pair::dead == 0);
    std::move(y).backward();
    CHECK(Pair::runs == 1000);
    CHECK(Pair::dead == 999);  // y keeps the last node, for the error message below
    CHECK_THROWS_WITH_AS(
        y.backward(),
        "[Pair] backward: expected its graph, got one that an earlier backward() consumed",
        GraphError);
    y = x;
    for (int i = 0; i < toys::many / 10; ++i) y = Pair::call(y)[1];
    y = Variable();
    CHECK(Pair::dead == 1000 + toys::many / 10);
}

TEST_CASE("debug mode looks at a host's calls too") {
    const using_config scope(&Config::debug, true);
    const Variable bad(doubles({1, std::nan("")}));
    const auto text = [](auto&& body) -> std::string {
        try {
            body();
        } catch (const ValueError& error) {
            return error.what();
        }
        return "no error";
    };
    CHECK(text([&] {
              Pair::call(bad);
          }).find("[Pair] forward: output 0: expected numbers, got NaN in 1 of 2 elements") == 0);
    CHECK(text([&] {
              Source::call(doubles({std::nan("")}));
          }).find("[Source] forward: value: expected numbers") == 0);
    const Variable x(doubles({HUGE_VAL}));
    const auto y = Pair::call(x);
    CHECK_FALSE(y[1].creator()->created_at().empty());
    y[1].set_grad(doubles({0}));
    const std::string backward = text([&] { y[1].backward(); });
    INFO(backward);
    CHECK(backward.find("[toy.mul] forward: y: expected numbers, got NaN") == 0);
    CHECK(backward.find("\nin the backward of Pair; the call was made at\n") != backward.npos);
}

namespace {

// y = x. Its gradients() calls grad() for nodes that are pending in the outer pass.
class Nesting final : public GraphNode {
public:
    static Variable call(const Variable& h, const Variable& x) {
        const Ref<GraphNode> owner(new Nesting);
        auto& node = static_cast<Nesting&>(*owner);
        node.h_ = h;
        node.x_ = x;
        const Variable y(h.data().copy());
        const Variable* const inputs[] = {&h};
        node.record(inputs, std::span(&y, 1));
        return y;
    }
    std::string_view label() const noexcept override { return "Nesting"; }
    void gradients(std::span<const Variable> gy, std::span<const bool>,
                   std::span<Variable> gx) override {
        inner = values(grad({h_}, {x_})[0].data());
        gx[0] = gy[0];
    }
    inline static Values inner;

private:
    Variable h_, x_;
};

}  // namespace

TEST_CASE("a pass within a pass runs calls that wait in the outer one") {
    const Variable x(doubles({3}));
    const Variable h = mul.first({&x, &x});
    const Variable cube = mul.first({&h, &x});  // runs first, so that h is pending
    const Variable same = Nesting::call(h, x);
    const Variable y = add.first({&cube, &same});
    y.backward();
    CHECK(Nesting::inner == Values{6});
    CHECK(values(x.grad()) == Values{27 + 6});
    Nesting::inner.clear();
    CHECK(values(grad({y}, {x})[0].data()) == Values{33});
    CHECK(Nesting::inner == Values{6});
}
