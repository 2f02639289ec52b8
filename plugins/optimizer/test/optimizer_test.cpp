// Tests optimizer.catena alone: compares updates with their formulas in double.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

namespace {

World& world() {
    static World world({OPTIMIZER_PLUGIN});
    return world;
}

// Runs steps of Adam with the kernels for one instruction set. Returns param, m and v.
std::vector<Array> adam(std::vector<Array> state, const Array& grad, int steps, const char* isa,
                        int threads) {
    Options options;
    options.isa = isa;
    options.threads = threads;
    for (std::int64_t t = 1; t <= steps; ++t)
        state = world().forward("catena.adam_update", {state[0], grad, state[1], state[2]},
                                {set("t", t)}, options);
    return state;
}

}  // namespace

TEST_CASE("sgd_update") {
    const Array p = Array::from<float>({1, -2}, {2});
    const Array g = Array::from<float>({0.5f, -0.25f}, {2});
    std::vector<Array> x = {p};
    for (int i = 0; i < 3; ++i) x = world().forward("catena.sgd_update", {x[0], g});
    CHECK(x[0].at(0) == doctest::Approx(0.985));
    CHECK(x[0].at(1) == doctest::Approx(-1.9924998));
    for (const char* isa : world().isas("catena.sgd_update")) {
        Options options;
        options.isa = isa;
        options.threads = 3;
        const Array large = Array::random<double>({3, 50001}, 1);
        const Array grad = Array::random<double>({3, 50001}, 2);
        const Array y =
            world().forward("catena.sgd_update", {large, grad}, {set("lr", 0.5)}, options)[0];
        bool right = true;
        for (std::int64_t i = 0; i < y.size(); ++i)
            right = right && std::abs(y.at(i) - (large.at(i) - 0.5 * grad.at(i))) < 1e-15;
        CHECK(right);
    }
    CHECK_THROWS_WITH(world().forward("catena.sgd_update", {p, Array::from<float>({1}, {1})}),
                      "[catena.sgd_update] grad.shape: expected (2,), got (1,)");
}

TEST_CASE("lamb_update: the quotient of the squares of the norms may overflow") {
    const Array zero = Array::from<double>({0}, {1});
    const auto y = world().forward(
        "catena.lamb_update",
        {Array::from<double>({1e150}, {1}), Array::from<double>({1e-10}, {1}), zero, zero},
        {set("t", std::int64_t{1}), set("lr", 0.5), set("eps", 1.0),
         set("weight_decay_rate", 0.0)});
    CHECK(y[0].at(0) / 0.5e150 == doctest::Approx(1).epsilon(1e-6));
    CHECK_THROWS_WITH(
        world().forward("catena.lamb_update", {zero, zero, zero, Array::from<double>({0}, {})},
                        {set("t", std::int64_t{1})}),
        "[catena.lamb_update] v.shape: expected (1,), got ()");
}

TEST_CASE("adam_update") {
    const Array p = Array::from<float>({1, -2}, {2});
    const Array g = Array::from<float>({0.5f, -0.25f}, {2});
    const Array zero = Array::from<float>({0, 0}, {2});
    for (const char* isa : world().isas("catena.adam_update")) {
        const auto state = adam({p, zero, zero}, g, 3, isa, 1);
        CHECK(state[0].at(0) == doctest::Approx(0.99700004));
        CHECK(state[0].at(1) == doctest::Approx(-1.9969999));
    }
    const Array large = Array::random<double>({70001}, 1);
    const Array grad = Array::random<double>({70001}, 2);
    const Array none = Array::from<double>(std::vector<double>(70001, 0.0), {70001});
    std::vector<double> expected(70001);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        double m = 0;
        double v = 0;
        const auto k = static_cast<std::int64_t>(i);
        double x = large.at(k);
        for (int t = 1; t <= 4; ++t) {
            m += (1 - 0.9) * (grad.at(k) - m);
            v += (1 - 0.999) * (grad.at(k) * grad.at(k) - v);
            x -= 0.001 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m /
                 (std::sqrt(v) + 1e-8);
        }
        expected[i] = x;
    }
    for (const char* isa : world().isas("catena.adam_update"))
        CHECK(compare(adam({large, none, none}, grad, 4, isa, 2)[0],
                      Array::from<double>(expected, {70001}), {1e-12, 1e-12}) == "");
}

TEST_CASE("sum_of_squares adds in double and gives the same bits with any number of threads") {
    for (const std::int64_t n : {0, 1, 31, 33, 16384, 16385, 100003}) {
        CAPTURE(n);
        const Array x = Array::random<float>({n}, 1);
        double expected = 0;
        for (std::int64_t i = 0; i < n; ++i) expected += x.at(i) * x.at(i);
        for (const char* isa : world().isas("catena.sum_of_squares")) {
            Options options;
            options.isa = isa;
            options.threads = 1;
            const double one = world().forward("catena.sum_of_squares", {x}, {}, options)[0].at(0);
            CHECK(one == doctest::Approx(expected).epsilon(1e-13));
            for (const int threads : {2, 3, 8}) {
                options.threads = threads;
                CHECK(world().forward("catena.sum_of_squares", {x}, {}, options)[0].at(0) == one);
            }
        }
    }
    const auto of = [](const Array& x) {
        return world().forward("catena.sum_of_squares", {x})[0].at(0);
    };
    CHECK(of(Array::from<float>({3e30f, 4e30f}, {2})) == doctest::Approx(25e60).epsilon(1e-6));
    CHECK(of(Array::from<float>({-2}, {})) == 4);
    CHECK(std::isnan(of(Array::from<double>({1, std::nan("")}, {2}))));
}

TEST_CASE("scale_update and decay_update work in place") {
    const Array x = Array::random<double>({3, 30001}, 1);
    const Array p = Array::random<double>({3, 30001}, 2);
    Options options;
    options.threads = 3;
    const Array scaled = world().forward("catena.scale_update",
                                         {x, Array::from<double>({-0.5}, {})}, {}, options)[0];
    const Array decayed =
        world().forward("catena.decay_update", {x, p}, {set("rate", 0.25)}, options)[0];
    bool right = true;
    for (std::int64_t i = 0; i < x.size(); ++i) {
        right = right && scaled.at(i) == -0.5 * x.at(i) &&
                std::abs(decayed.at(i) - (x.at(i) + 0.25 * p.at(i))) < 1e-15;
    }
    CHECK(right);
    CHECK_THROWS_WITH(world().forward("catena.scale_update", {x, Array::from<double>({1}, {1})}),
                      "[catena.scale_update] factor.shape: expected (), got (1,)");
    CHECK_THROWS_WITH(world().forward("catena.decay_update", {x, Array::from<double>({1}, {})},
                                      {set("rate", 1.0)}),
                      "[catena.decay_update] param.shape: expected (3, 30001), got ()");
}

TEST_CASE("clip_factor is 1 for a norm up to the limit and for a NaN norm") {
    const auto of = [](double squares, double maxnorm) {
        return world()
            .forward("catena.clip_factor", {Array::from<double>({squares}, {})},
                     {set("maxnorm", maxnorm)})[0]
            .at(0);
    };
    CHECK(of(25, 2) == 0.4);
    CHECK(of(25, 5) == 1);
    CHECK(of(0, 0) == 1);
    CHECK(of(25, 0) == 0);
    CHECK(of(HUGE_VAL, 2) == 0);
    CHECK(of(std::nan(""), 2) == 1);
    CHECK_THROWS_WITH(of(25, -1), doctest::Contains("maxnorm"));
    CHECK_THROWS_WITH(world().forward("catena.clip_factor", {Array::from<double>({1}, {1})},
                                      {set("maxnorm", 1.0)}),
                      "[catena.clip_factor] squares.ndim: expected 0, got 1");
}
