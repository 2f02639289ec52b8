// Tests activation.catena (gradients compose functions of math and array).
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

namespace {

World& world() {
    static World world({ACTIVATION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN});
    return world;
}
constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float quiet = std::numeric_limits<float>::quiet_NaN();

// Random numbers away from the kink at 0.
Array off_zero(const Dims& shape) {
    Array x = Array::random<double>(shape, 1);
    for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, x.at(i) + (x.at(i) < 0 ? -0.5 : 0.5));
    return x;
}

}  // namespace

TEST_CASE("elementwise activations") {
    for (const Dims& shape : {Dims{}, Dims{3, 5}, Dims{0, 4}, Dims{2, 1, 70}})
        for (const char* name : {"relu", "leaky_relu", "sigmoid", "tanh"})
            CHECK(check(world(), {std::string("catena.") + name, {off_zero(shape)}}) == "");
    const Attrs slope = {set("slope", 0.5)};
    CHECK(check(world(), {"catena.leaky_relu", {off_zero({4, 4})}, slope}) == "");
}

TEST_CASE("special values") {
    const Array x = Array::from<float>({-1, 0, 2, -inf, inf, quiet, 1e4f}, {7});
    const auto values = [&](const char* name) {
        return world().forward(std::string("catena.") + name, {x})[0].values<float>();
    };
    const auto relu = values("relu");
    CHECK(std::vector<float>(relu.begin(), relu.begin() + 5) ==
          std::vector<float>{0, 0, 2, 0, inf});
    CHECK(std::isnan(relu[5]));
    const auto leaky = values("leaky_relu");
    CHECK(leaky[0] == -0.2f);
    CHECK(leaky[3] == -inf);
    CHECK(std::isnan(leaky[5]));
    CHECK(values("sigmoid")[3] == 0);
    CHECK(values("sigmoid")[6] == 1);
    CHECK(values("tanh")[6] == 1);
    // As in Chainer 7.8.1, the gradient at 0 is 0 for relu and the slope for leaky_relu.
    const Array zero = Array::from<float>({0, -0.0f}, {2});
    const Array one = Array::from<float>({1, 1}, {2});
    const auto both = [](const Array& a, double value) {
        return a.at(0) == value && a.at(1) == value;
    };
    CHECK(both(world().backward("catena.relu", {zero}, {zero}, {one})[0], 0));
    for (const double slope : {0.2, 0.0, -0.5}) {
        const Attrs attrs = {set("slope", slope)};
        const double expected = static_cast<float>(slope);
        CHECK(
            both(world().backward("catena.leaky_relu", {zero}, {zero}, {one}, attrs)[0], expected));
        CHECK(
            both(world().gradient("catena.leaky_relu", {zero}, {zero}, {one}, attrs)[0], expected));
    }
}

TEST_CASE("a NaN does not vanish in a gradient") {
    const Array x = Array::from<float>({quiet, 2, -2}, {3});
    const Array gy = Array::from<float>({1, 1, 1}, {3});
    const auto by_both = [&](const char* name, const std::vector<Array>& in, std::size_t i,
                             const auto& check, const Attrs& attrs = {}) {
        const auto y = world().forward(name, in, attrs);
        CHECK(std::isnan(y[0].at(0)));
        check(world().backward(name, in, y, {gy}, attrs)[i]);
        check(world().gradient(name, in, y, {gy}, attrs)[i]);
    };
    const auto as_relu = [](const Array& gx) {
        CHECK(std::isnan(gx.at(0)));
        CHECK(gx.at(1) == 1);
        CHECK(gx.at(2) == 0);
    };
    by_both("catena.relu", {x}, 0, as_relu);
    // With slopes of 0, these functions are relu.
    by_both("catena.leaky_relu", {x}, 0, as_relu, {set("slope", 0.0)});
    const Array w = Array::from<float>({0}, {});
    by_both("catena.broadcast_prelu", {x, w}, 0, as_relu);
    by_both("catena.broadcast_prelu", {x, w}, 1,
            [](const Array& gw) { CHECK(std::isnan(gw.at(0))); });
}

TEST_CASE("log_softmax") {
    struct Example {
        Dims shape;
        std::int64_t axis;
    };
    for (const Example& e :
         {Example{{3, 5}, 1}, Example{{3, 5}, 0}, Example{{4}, -1}, Example{{2, 7, 70}, 1},
          Example{{3, 90}, -1}, Example{{0, 5}, 1}, Example{{2, 0}, 1}, Example{{2, 1}, 1}}) {
        const Attrs attrs = {set("axis", e.axis)};
        const Array x = Array::random<double>(e.shape, 2);
        CHECK(check(world(), {"catena.log_softmax", {x}, attrs}) == "");
        const Array y = world().forward("catena.log_softmax", {x}, attrs)[0];
        const Array p = world().forward("catena.softmax", {x}, attrs)[0];
        for (std::int64_t i = 0; i < x.size(); ++i)
            CHECK(y.at(i) == doctest::Approx(std::log(p.at(i))).epsilon(1e-12));
    }
    // Unlike log(softmax(x)), this is finite where the probability is 0 in float32.
    const Array x = Array::from<float>({1000, 0, -1000, 1e30f, 0, -1e30f}, {2, 3});
    const auto y = world().forward("catena.log_softmax", {x})[0].values<float>();
    CHECK(y == std::vector<float>{0, -1000, -2000, 0, -1e30f, -2e30f});
    const Array bad = Array::from<float>({quiet, 1}, {1, 2});
    CHECK(std::isnan(world().forward("catena.log_softmax", {bad})[0].at(1)));
    const Array masked = Array::from<float>({-inf, 1}, {1, 2});
    const auto z = world().forward("catena.log_softmax", {masked});
    CHECK(z[0].at(0) == -inf);
    const auto gx =
        world().backward("catena.log_softmax", {masked}, z, {Array::from<float>({0, 1}, {1, 2})});
    CHECK(gx[0].at(0) == 0);
    CHECK_THROWS_WITH(world().forward("catena.log_softmax", {Array::from<float>({1}, {1})}),
                      "[catena.log_softmax] axis: expected from -1 to 0, got 1");
}

TEST_CASE("softmax") {
    struct Example {
        Dims shape;
        std::int64_t axis;
    };
    for (const Example& e : {Example{{3, 5}, 1}, Example{{3, 5}, 0}, Example{{4}, 0},
                             Example{{4}, -1}, Example{{2, 3, 4}, 1}, Example{{2, 7, 70}, 1},
                             Example{{3, 40}, -1}, Example{{0, 5}, 1}, Example{{2, 1}, 1}}) {
        const Attrs attrs = {set("axis", e.axis)};
        CHECK(check(world(), {"catena.softmax", {Array::random<double>(e.shape, 2)}, attrs}) == "");
    }
    const Array x = Array::random<double>({2, 3}, 3);
    const Array y = world().forward("catena.softmax", {x})[0];
    for (int i = 0; i < 2; ++i) {
        double sum = 0;
        for (int k = 0; k < 3; ++k) sum += std::exp(x.at(3 * i + k));
        for (int k = 0; k < 3; ++k)
            CHECK(y.at(3 * i + k) == doctest::Approx(std::exp(x.at(3 * i + k)) / sum));
    }
    const Array large = Array::from<float>({1000, 999, -1000, 1e30f, 0, -1e30f}, {2, 3});
    const auto p = world().forward("catena.softmax", {large})[0].values<float>();
    CHECK(p[0] == doctest::Approx(0.7310586));
    CHECK(p[2] == 0);
    CHECK(p[3] == 1);
    const Array bad = Array::from<float>({quiet, 1}, {1, 2});
    CHECK(std::isnan(world().forward("catena.softmax", {bad})[0].at(1)));
    CHECK_THROWS_WITH(world().forward("catena.softmax", {Array::from<float>({1}, {1})}),
                      "[catena.softmax] axis: expected from -1 to 0, got 1");
}

TEST_CASE("the result does not depend on the position in memory") {
    const Array x = Array::random<float>({100000}, 1, -5, 5);
    for (const char* name : {"catena.tanh", "catena.sigmoid"}) {
        const Array y = world().forward(name, {x})[0];
        bool same = true;
        for (std::int64_t i = 0; i < 200; ++i) {  // alone, an element goes through the loop's tail
            const Array one = Array::from<float>({x.data<float>()[i * 499]}, {1});
            same = same &&
                   world().forward(name, {one})[0].data<float>()[0] == y.data<float>()[i * 499];
        }
        CHECK(same);
    }
}

TEST_CASE("prelu") {
    for (const Dims& shape : {Dims{2, 3, 4}, Dims{1, 3, 1}, Dims{5, 3}, Dims{0, 3, 2}})
        for (const Dims& slopes : {Dims{}, Dims{3}})
            CHECK(check(world(), {"catena.prelu",
                                  {off_zero(shape), Array::random<double>(slopes, 2)}}) == "");
    CHECK(check(world(), {"catena.prelu",
                          {off_zero({2, 3, 2, 2}), Array::random<double>({3, 2, 2}, 2)}}) == "");
    CHECK(check(world(), {"catena.prelu", {off_zero({7}), Array::random<double>({}, 2)}}) == "");
    CHECK(check(world(), {"catena.prelu", {off_zero({}), Array::random<double>({}, 2)}}) == "");
    const Array x = Array::from<float>({-2, 0, 3, quiet}, {1, 4});
    const Array w = Array::from<float>({1.5f}, {});
    const auto y = world().forward("catena.prelu", {x, w});
    CHECK(y[0].at(0) == -3);  // a slope above 1, where max(x, W x) would be wrong
    CHECK(y[0].at(2) == 3);
    CHECK(std::isnan(y[0].at(3)));
    const auto gx =
        world().gradient("catena.prelu", {x, w}, y, {Array::from<float>({1, 1, 1, 1}, {1, 4})});
    CHECK(gx[0].at(0) == 1.5);
    CHECK(gx[0].at(1) == 1);  // at 0
    const auto message = [](const Dims& shape, const Dims& slopes) -> std::string {
        try {
            world().forward("catena.prelu",
                            {Array::random<float>(shape, 1), Array::random<float>(slopes, 1)});
        } catch (const Failure& e) {
            CHECK(e.status() == CATENA_E_SHAPE);
            return e.what();
        }
        return "";
    };
    CHECK(message({2, 3, 4}, {4}) ==
          "[catena.prelu] W.shape: expected the extents of x (2, 3, 4) from axis 1 on, or (), got "
          "(4,)");
    CHECK(message({2}, {2}) != "");
    CHECK(message({}, {1}) != "");
}

TEST_CASE("prelu: the slopes' gradient over many elements") {
    for (const Dims& slopes : {Dims{}, Dims{33, 1}, Dims{33, 70}}) {
        const Array x = Array::random<float>({60, 33, 70}, 1);
        const Array w = Array::random<float>(slopes, 2);
        const Array gy = Array::random<float>(x.shape(), 3);
        const auto y = world().forward("catena.broadcast_prelu", {x, w});
        std::vector<double> sum(static_cast<std::size_t>(w.size()), 0.0);
        for (std::int64_t i = 0; i < x.size(); ++i) {
            const std::int64_t k = w.size() == 1 ? 0 : w.size() == 33 ? i / 70 % 33 : i % 2310;
            if (x.at(i) < 0) sum[static_cast<std::size_t>(k)] += gy.at(i) * x.at(i);
        }
        Options options;
        options.targets = 2;
        const auto gw = world().backward("catena.broadcast_prelu", {x, w}, y, {gy}, {}, options);
        CHECK(compare(gw[1], Array::from<double>(sum, slopes), {1e-5, 1e-4}) == "");
        options.threads = 3;
        CHECK(world().backward("catena.broadcast_prelu", {x, w}, y, {gy}, {}, options) == gw);
    }
}

TEST_CASE("prelu: no walk over rows without elements") {
    const Array x({std::int64_t{1} << 40, 0}, dtype_of<float>()), w({0}, dtype_of<float>());
    CHECK(world().forward("catena.prelu", {x, w})[0].shape() == x.shape());
}
