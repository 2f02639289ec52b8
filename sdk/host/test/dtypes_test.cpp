// Tests of links and optimizers in every floating dtype.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

using namespace catena;
namespace F = catena::functions;

namespace {

constexpr Dtype floating[] = {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64};

double precision(Dtype dtype) {
    switch (dtype) {
        case Dtype::float16: return 0x1p-10;
        case Dtype::bfloat16: return 0x1p-7;
        case Dtype::float32: return 0x1p-23;
        default: return 0x1p-52;
    }
}

Array drawn(const Shape& shape) { return initializers::Normal(0.5)(shape); }
Array ids(std::vector<std::int32_t> values) {
    return Array::from(values, {static_cast<std::int64_t>(values.size())});
}

// Checks that the values differ by at most some roundings of the largest expected value.
void check_close(const Array& got, const Array& expected, Dtype dtype, double roundings = 32) {
    REQUIRE(got.shape() == expected.shape());
    const auto a = got.to_vector<double>();
    const auto b = expected.to_vector<double>();
    double largest = 1e-2;
    for (const double v : b) largest = std::max(largest, std::abs(v));
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    CHECK(std::isfinite(worst));
    CHECK(worst <= roundings * precision(dtype) * largest);
}

struct Result {
    Array y;
    std::vector<Array> gradients;  // of the parameters, then of x
};

// Compares values and gradients in each dtype with those in float64, from the same initial values.
template <class L>
void check_link(const L& link, const Array& x,
                const std::function<Variable(L&, const Variable&)>& call) {
    const auto run = [&](Dtype dtype) {
        L own = deep_copy(link);
        own.to(dtype);
        const Variable input(x && is_floating(x.dtype()) ? x.astype(dtype) : x);
        const Variable y = call(own, input);
        CHECK(y.dtype() == dtype);
        seed(7);
        y.set_grad(initializers::Uniform(1)(y.shape()).astype(dtype));
        y.backward();
        Result result{y.data(), own.gradients()};
        if (is_floating(x.dtype())) result.gradients.push_back(input.grad());
        return result;
    };
    const Result expected = run(Dtype::float64);
    for (const Dtype dtype : floating) {
        CAPTURE(name(dtype));
        const Result got = run(dtype);
        check_close(got.y, expected.y, dtype);
        REQUIRE(got.gradients.size() == expected.gradients.size());
        for (std::size_t i = 0; i < got.gradients.size(); ++i) {
            CAPTURE(i);
            REQUIRE(got.gradients[i]);
            CHECK(got.gradients[i].dtype() == dtype);
            check_close(got.gradients[i], expected.gradients[i], dtype);
        }
    }
    for (const Variable& p : link.parameters()) CHECK(p.dtype() == Dtype::float32);
}

template <class L>
void check_link(const L& link, const Array& x) {
    check_link<L>(link, x, [](L& l, const Variable& v) { return l(v); });
}

}  // namespace

TEST_CASE("every link computes, forward and backward, in every floating dtype") {
    seed(1);
    SUBCASE("Linear") { check_link(links::Linear(5, 4, 1, 0.25), drawn({3, 5})); }
    SUBCASE("Linear without b") { check_link(links::Linear(6, 2, 1, 0, true), drawn({2, 2, 3})); }
    SUBCASE("Convolution2D") {
        check_link(links::Convolution2D(2, 3, 3, 2, 1, 1, 0.5), drawn({2, 2, 5, 4}));
    }
    SUBCASE("EmbedID") { check_link(links::EmbedID(4, 3), ids({0, 3, 3})); }
    SUBCASE("PReLU") { check_link(links::PReLU({3}), drawn({2, 3})); }
    SUBCASE("PReLU with one slope") { check_link(links::PReLU(), drawn({2, 3})); }
    SUBCASE("Parameter") {
        check_link<links::Parameter>(
            links::Parameter(drawn({3})), drawn({3}),
            [](links::Parameter& l, const Variable& x) { return l() * x; });
    }
    SUBCASE("BinaryHierarchicalSoftmax") {
        const links::BinaryHierarchicalSoftmax link(
            3, create_huffman_tree({{0, 8}, {1, 5}, {2, 6}, {3, 4}}));
        check_link<links::BinaryHierarchicalSoftmax>(
            link, drawn({3, 3}), [](links::BinaryHierarchicalSoftmax& l, const Variable& x) {
                return l(x, as_variable(ids({0, 3, 1})));
            });
    }
    SUBCASE("BatchNormalization") {
        links::BatchNormalization link(3);
        link.beta.data().fill(0.5);
        check_link(link, drawn({8, 3}));
        check_link<links::BatchNormalization>(
            link, drawn({4, 3, 2}),
            [](links::BatchNormalization& l, const Variable& x) { return l(x, true); });
    }
    SUBCASE("Inception") {
        links::Inception link(2, 2, 2, 2, 1, 1, 2);
        for (const Variable& p : link.parameters()) {  // keeps activations away from relu's kink
            if (p.ndim() == 1) p.data().fill(3);
        }
        check_link(link, drawn({2, 2, 4, 4}));
    }
}

TEST_CASE("running statistics of halves are float32") {
    for (const Dtype dtype : floating) {
        CAPTURE(name(dtype));
        links::BatchNormalization link(2);
        link.avg_var.fill(1e5);  // exceeds float16's range
        link.to(dtype);
        const Dtype wide = dtype == Dtype::float64 ? dtype : Dtype::float32;
        CHECK(link.gamma.dtype() == dtype);
        CHECK(link.avg_mean.dtype() == wide);
        CHECK(link.avg_var.dtype() == wide);
        CHECK(link.avg_var.to_vector<double>()[1] == 1e5);
        const Array x = Array::from({1., 2., 3., 6.}, {2, 2}).astype(dtype);
        (void)link(Variable(x));
        CHECK(link.avg_mean.dtype() == wide);
        CHECK(link.avg_mean.to_vector<double>()[0] == doctest::Approx(0.2).epsilon(1e-6));
        CHECK(link.avg_var.to_vector<double>()[1] == doctest::Approx(0.9e5 + 0.8).epsilon(1e-6));
        CHECK(link(Variable(x), true).dtype() == dtype);
    }
}

TEST_CASE("to(dtype) converts all that is floating, keeps the variables, and chains") {
    struct Net : Chain {
        links::Linear l{2, 2};
        Array table = Array::full({2}, 0.5);
        Array counts = Array::from<std::int64_t>({1LL << 40}, {1});
        std::int64_t n = 3;
        void visit(Visitor& v) override { v("l", l)("table", table)("counts", counts)("n", n); }
    } net;
    const Variable w = net.l.W;
    const auto values = w.data().to_vector<float>();
    w.set_grad(Array::full({2, 2}, 0.25));
    CHECK(&net.to(Device::get("cpu:1")).to(Dtype::float64) == &net);
    CHECK(w.dtype() == Dtype::float64);
    CHECK(w.device() == Device::get("cpu:1"));
    CHECK(w.grad().dtype() == Dtype::float64);
    CHECK(w.grad().to_vector<float>() == std::vector<float>(4, 0.25F));
    CHECK(w.data().to_vector<float>() == values);
    CHECK(w.requires_grad());
    CHECK(net.table.dtype() == Dtype::float64);
    CHECK(net.counts.to_vector<std::int64_t>()[0] == 1LL << 40);
    net.to(Dtype::bfloat16);
    CHECK(net.table.dtype() == Dtype::bfloat16);
    CHECK(net.l.b.dtype() == Dtype::bfloat16);
    CHECK_THROWS_AS(net.to(Dtype::int32), DtypeError);
    CHECK_THROWS_AS(net.to(Device()), InvalidError);
    net.to(Device::get("cpu:0"));
    {
        // Only b is part of a graph, but W must stay unchanged too.
        const Variable y = net.l.b + net.l.b;
        contains(error_of<GraphError>([&] { net.to(Dtype::float32); }), "[to] l/b: expected");
        CHECK(net.l.W.dtype() == Dtype::bfloat16);
        CHECK(net.table.dtype() == Dtype::bfloat16);
        CHECK_NOTHROW(net.to(Dtype::bfloat16));  // all have this dtype already
    }
    net.to(Dtype::float32);
    CHECK(net.l.b.dtype() == Dtype::float32);
}

TEST_CASE("all optimizers learn in every dtype; state of halves is float32") {
    const auto x = Array::from({1., 0., -1., 2., 0.5, 1.}, {3, 2});
    const auto t = Array::from({0.5, -2., 1.}, {3, 1});
    std::vector<std::function<std::unique_ptr<Optimizer>()>> kinds{
        [] { return std::make_unique<optimizers::SGD>(0.1); },
        [] { return std::make_unique<optimizers::MomentumSGD>(0.02); },
        [] { return std::make_unique<optimizers::AdaGrad>(0.1); },
        [] { return std::make_unique<optimizers::AdaDelta>(0.9, 1e-4); },
        [] { return std::make_unique<optimizers::RMSprop>(0.02); },
        [] { return std::make_unique<optimizers::Adam>(0.05); }};
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        double expected = 0;
        for (const Dtype dtype :
             {Dtype::float64, Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
            CAPTURE(k);
            CAPTURE(name(dtype));
            seed(3);
            links::Linear l(2, 1);
            l.to(dtype);
            const auto optimizer = kinds[k]();
            optimizer->setup(l);
            const auto loss = [&] {
                return F::mean_squared_error(l(as_variable(x.astype(dtype))),
                                             as_variable(t.astype(dtype)));
            };
            const double before = loss().data().item<double>();
            for (int i = 0; i < 60; ++i) {
                optimizer->cleargrads();
                loss().backward();
                optimizer->weight_decay(1e-3);
                optimizer->clip_grads(2);
                optimizer->update();
            }
            const double after = loss().data().item<double>();
            CHECK(after < 0.7 * before);
            if (dtype == Dtype::float64) expected = after;
            CHECK(std::abs(after - expected) < 12 * precision(dtype) + 1e-12);
        }
    }
    // The squared gradient underflows in float16. The step must be Adam's lr, not m / eps.
    links::Linear l(1, 1);
    l.to(Dtype::float16);
    l.W.data().fill(0);
    optimizers::Adam adam(0.125);
    adam.setup(l);
    l.W.set_grad(Array::full({1, 1}, 1e-4, Dtype::float16));
    adam.update();
    CHECK(l.W.data().item<double>() == doctest::Approx(-0.125).epsilon(1e-2));
}

TEST_CASE("state that does not fit after to(dtype) is an error; setup() is the way on") {
    links::Linear l(2, 2);
    optimizers::Adam adam;
    adam.setup(l);
    l.to(Dtype::float64).zerograds();
    const auto before = l.W.data().to_vector<double>();
    contains(error_of<InvalidError>([&] { adam.update(); }),
             "[update] W: expected (2, 2) float32 as at setup(), got (2, 2) float64");
    CHECK(adam.t() == 0);
    CHECK(l.W.data().to_vector<double>() == before);
    adam.setup(l);
    CHECK_NOTHROW(adam.update());
}
