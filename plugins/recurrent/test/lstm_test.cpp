// Tests lstm of recurrent.catena (gradients compose functions of math, array and activation).
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>
#include <limits>

using namespace catena::testing;

namespace {

World& world() {
    static World world({RECURRENT_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN, ACTIVATION_PLUGIN});
    return world;
}
constexpr float quiet = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("lstm: all kernels and gradients") {
    struct Sample {
        Dims c, x;
    };
    for (const Sample& s :
         {Sample{{2, 3}, {2, 12}}, Sample{{1, 1}, {1, 4}}, Sample{{2, 70}, {2, 280}},
          Sample{{3, 2}, {1, 8}}, Sample{{2, 2, 3}, {2, 8, 3}}, Sample{{3, 1, 2, 2}, {2, 4, 2, 2}},
          Sample{{1, 1, 67}, {1, 4, 67}}, Sample{{2, 3}, {0, 12}}, Sample{{0, 3}, {0, 12}},
          Sample{{2, 0}, {2, 0}}, Sample{{2, 3, 1}, {2, 12, 1}}})
        CHECK(check(world(), {"catena.lstm",
                              {Array::random<double>(s.c, 1), Array::random<double>(s.x, 2)}}) ==
              "");
}

TEST_CASE("lstm: either gradient may be missing") {
    for (const std::int64_t rows : {3, 2}) {
        const Array c_prev = Array::random<double>({3, 5}, 1);
        const Array x = Array::random<double>({rows, 20}, 2);
        const auto y = world().forward("catena.lstm", {c_prev, x});
        const Array gc = Array::random<double>({3, 5}, 3);
        const Array gh = Array::random<double>({rows, 5}, 4);
        const auto zeros = [](const Array& like) {
            return Array::from<double>(
                std::vector<double>(static_cast<std::size_t>(like.size()), 0.0), like.shape());
        };
        const auto run = [&](const std::vector<Array>& gy) {
            return world().backward("catena.lstm", {c_prev, x}, y, gy);
        };
        CHECK(run({gc, Array()}) == run({gc, zeros(gh)}));
        CHECK(run({Array(), gh}) == run({zeros(gc), gh}));
        for (const auto& gy : {std::vector<Array>{gc, Array()}, std::vector<Array>{Array(), gh},
                               std::vector<Array>{gc, gh}}) {
            const auto kernel = run(gy);
            const auto composed = world().gradient("catena.lstm", {c_prev, x}, y, gy);
            for (std::size_t i = 0; i < 2; ++i)
                CHECK(compare(composed[i], kernel[i], {1e-12, 1e-14}) == "");
        }
        Options options;
        options.targets = 2;  // only x
        const auto none =
            world().gradient("catena.lstm", {c_prev, x}, y, {Array(), Array()}, {}, options);
        CHECK((!none[0] && none[1] == zeros(x)));
    }
}

TEST_CASE("lstm: values") {
    // The gates of a unit are adjacent; rows of c_prev beyond x's rows keep their cells.
    const Array c_prev = Array::from<double>({0.5, -1, 7, 8}, {2, 2});
    const Array x = Array::from<double>({1, 2, 3, 4, -1, -2, -3, -4}, {1, 8});
    const auto y = world().forward("catena.lstm", {c_prev, x});
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    const double c0 = std::tanh(1) * sigmoid(2) + 0.5 * sigmoid(3);
    const double c1 = std::tanh(-1) * sigmoid(-2) - sigmoid(-3);
    CHECK(y[0].at(0) == doctest::Approx(c0).epsilon(1e-12));
    CHECK(y[0].at(1) == doctest::Approx(c1).epsilon(1e-12));
    CHECK(y[0].at(2) == 7);
    CHECK(y[0].at(3) == 8);
    CHECK(y[1].shape() == Dims{1, 2});
    CHECK(y[1].at(0) == doctest::Approx(std::tanh(c0) * sigmoid(4)).epsilon(1e-12));
    CHECK(y[1].at(1) == doctest::Approx(std::tanh(c1) * sigmoid(-4)).epsilon(1e-12));
    // Saturated gates keep or replace the cell, and nothing overflows.
    const Array large = Array::from<float>({1000, 1000, -1000, 1000}, {1, 4});
    const auto z = world().forward("catena.lstm", {Array::from<float>({5}, {1, 1}), large});
    CHECK(z[0].at(0) == 1);
    CHECK(z[1].at(0) == doctest::Approx(std::tanh(1.0)));
    const Array keep = Array::from<float>({0, -1000, 1000, -1000}, {1, 4});
    const auto k = world().forward("catena.lstm", {Array::from<float>({5}, {1, 1}), keep});
    CHECK(k[0].at(0) == 5);
    CHECK(k[1].at(0) == 0);
    const Array bad = Array::from<float>({quiet, 0, 0, 0}, {1, 4});
    CHECK(std::isnan(
        world().forward("catena.lstm", {Array::from<float>({5}, {1, 1}), bad})[1].at(0)));
}

TEST_CASE("lstm: large states, several threads") {
    const Array c_prev = Array::random<float>({21, 650}, 1);
    const Array x = Array::random<float>({20, 2600}, 2);
    const auto y = world().forward("catena.lstm", {c_prev, x});
    const std::vector<Array> gy = {Array::random<float>({21, 650}, 3),
                                   Array::random<float>({20, 650}, 4)};
    const auto gx = world().backward("catena.lstm", {c_prev, x}, y, gy);
    Options options;
    options.threads = 3;
    CHECK(world().forward("catena.lstm", {c_prev, x}, {}, options) == y);
    CHECK(world().backward("catena.lstm", {c_prev, x}, y, gy, {}, options) == gx);
    const auto exact = world().gradient("catena.lstm", {c_prev, x}, y, gy);
    CHECK(compare(gx[0], exact[0], {1e-5, 1e-6}) == "");
    CHECK(compare(gx[1], exact[1], {1e-5, 1e-6}) == "");
}

TEST_CASE("lstm refuses") {
    const auto message = [](const Dims& c, const Dims& x) -> std::string {
        try {
            world().forward("catena.lstm",
                            {Array::random<float>(c, 1), Array::random<float>(x, 1)});
        } catch (const Failure& e) {
            CHECK(e.status() == CATENA_E_SHAPE);
            return e.what();
        }
        return "";
    };
    CHECK(message({2}, {8}) == "[catena.lstm] c_prev.ndim: expected at least 2, got 1");
    CHECK(message({2, 3}, {2, 12, 1}) == "[catena.lstm] x.ndim: expected 2 as c_prev, got 3");
    CHECK(message({2, 3}, {2, 9}) ==
          "[catena.lstm] x.shape[1]: expected 12, 4 times c_prev's, got 9");
    CHECK(message({2, 3}, {3, 12}) ==
          "[catena.lstm] x.shape[0]: expected at most c_prev's 2, got 3");
    CHECK(message({2, 3, 4}, {2, 12, 5}) == "[catena.lstm] x.shape[2:]: expected (4,), got (5,)");
}
