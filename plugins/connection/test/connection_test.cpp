// connection.catena alone (gradients compose functions of math and array).
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

namespace {

World& world() {
    static World world({CONNECTION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN});
    return world;
}

}  // namespace

TEST_CASE("linear") {
    for (const Dims& shape : {Dims{4, 3}, Dims{1, 3}, Dims{2, 3, 1}, Dims{5, 1, 3}, Dims{0, 3}}) {
        const Array x = Array::random<double>(shape, 1);
        const Array w = Array::random<double>({5, 3}, 2);
        const Array b = Array::random<double>({5}, 3);
        CHECK(check(world(), {"catena.linear", {x, w, b}}) == "");
        CHECK(check(world(), {"catena.linear", {x, w, Array()}}) == "");
        const Array y = world().forward("catena.linear", {x, w, b})[0];
        CHECK(y.shape() == Dims{shape[0], 5});
        for (std::int64_t i = 0; i < y.size(); ++i) {
            double sum = b.at(i % 5);
            for (int k = 0; k < 3; ++k) sum += x.at(i / 5 * 3 + k) * w.at(i % 5 * 3 + k);
            CHECK(y.at(i) == doctest::Approx(sum));
        }
    }
    const Array x = Array::random<double>({4}, 1);
    CHECK(check(world(), {"catena.linear",
                          {x, Array::random<double>({2, 1}, 2), Array::random<double>({2}, 3)}}) ==
          "");
}

TEST_CASE("the bias's gradient over many rows") {
    const Array x = Array::random<float>({3000, 2}, 1);
    const Array w = Array::random<float>({300, 2}, 2);
    const Array b = Array::random<float>({300}, 3);
    const Array gy = Array::random<float>({3000, 300}, 4);
    const auto y = world().forward("catena.linear", {x, w, b});
    Options options;
    options.targets = 4;
    const auto gx = world().backward("catena.linear", {x, w, b}, y, {gy}, {}, options);
    std::vector<double> sum(300, 0.0);
    for (std::int64_t i = 0; i < gy.size(); ++i) sum[static_cast<std::size_t>(i % 300)] += gy.at(i);
    CHECK(compare(gx[2], Array::of<double>({300}, sum), {1e-5, 1e-5}) == "");
    options.threads = 4;
    CHECK(world().backward("catena.linear", {x, w, b}, y, {gy}, {}, options) == gx);
}

TEST_CASE("wrong shapes") {
    const auto message = [](const Dims& x, const Dims& w, const Dims& b) -> std::string {
        try {
            world().forward("catena.linear",
                            {Array::random<float>(x, 1), Array::random<float>(w, 1),
                             Array::random<float>(b, 1)});
        } catch (const Failure& e) {
            CHECK(e.status() == CATENA_E_SHAPE);
            return e.what();
        }
        return "";
    };
    CHECK(message({2, 3}, {5, 4}, {5}) ==
          "[catena.linear] x.shape[1:]: expected 4 elements, as W.shape[1] says, got (3,)");
    CHECK(message({2, 4}, {5, 4}, {4}) == "[catena.linear] b.shape: expected (5,), got (4,)");
    CHECK(message({2, 4}, {5}, {5}) == "[catena.linear] W.ndim: expected 2, got 1");
    CHECK(message({}, {5, 1}, {5}) == "[catena.linear] x.ndim: expected at least 1, got 0");
}
