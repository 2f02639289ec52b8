// optimizer.catena alone: updates against their formulas in double.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

namespace {

World& world() {
    static World world({OPTIMIZER_PLUGIN});
    return world;
}

// Runs steps of Adam on every instruction set; what comes back are param, m and v.
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
    const Array p = Array::of<float>({2}, {1, -2});
    const Array g = Array::of<float>({2}, {0.5f, -0.25f});
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
    CHECK_THROWS_WITH(world().forward("catena.sgd_update", {p, Array::of<float>({1}, {1})}),
                      "[catena.sgd_update] grad.shape: expected (2,), got (1,)");
}

TEST_CASE("adam_update") {
    const Array p = Array::of<float>({2}, {1, -2});
    const Array g = Array::of<float>({2}, {0.5f, -0.25f});
    const Array zero = Array::of<float>({2}, {0, 0});
    for (const char* isa : world().isas("catena.adam_update")) {
        const auto state = adam({p, zero, zero}, g, 3, isa, 1);
        CHECK(state[0].at(0) == doctest::Approx(0.99700004));
        CHECK(state[0].at(1) == doctest::Approx(-1.9969999));
    }
    const Array large = Array::random<double>({70001}, 1);
    const Array grad = Array::random<double>({70001}, 2);
    const Array none = Array::of<double>({70001}, std::vector<double>(70001, 0.0));
    std::vector<double> expected(70001);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        double m = 0;
        double v = 0;
        const auto k = static_cast<std::int64_t>(i);
        double x = large.at(k);
        for (int t = 1; t <= 4; ++t) {
            m += (1 - 0.9 * std::pow(1 - 1e-8, t - 1)) * (grad.at(k) - m);
            v += (1 - 0.999) * (grad.at(k) * grad.at(k) - v);
            x -= 0.001 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m /
                 (std::sqrt(v) + 1e-8);
        }
        expected[i] = x;
    }
    for (const char* isa : world().isas("catena.adam_update"))
        CHECK(compare(adam({large, none, none}, grad, 4, isa, 2)[0],
                      Array::of<double>({70001}, expected), {1e-12, 1e-12}) == "");
}
