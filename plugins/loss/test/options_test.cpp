// Tests class weights, label smoothing, reductions and soft targets: edges that reference values
// do not reach.
#include <doctest/doctest.h>

#include <catena/plugin/half.hpp>
#include <catena/testing.hpp>

#include <cmath>
#include <limits>
#include <numeric>

using namespace catena::testing;

namespace {

const double inf = std::numeric_limits<double>::infinity();
const double no_number = std::nan("");

World& world() {
    static World world({LOSS_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN, ACTIVATION_PLUGIN});
    return world;
}
Array labels(const Dims& shape, const std::vector<std::int64_t>& values) {
    return Array::from<std::int64_t>(values, shape);
}
struct Result {
    std::vector<double> y, gx, composed;
};
// The loss and its gradient, by the kernel and as a composition, for gy = 1.
Result run(const std::string& name, const std::vector<Array>& x, const Attrs& attrs = {}) {
    const auto y = world().forward(name, x, attrs);
    std::vector<Array> gy(y.size());
    gy[0] = Array(y[0].shape(), y[0].dtype());
    for (std::int64_t i = 0; i < gy[0].size(); ++i) gy[0].set(i, 1);
    const auto wide = [](const Array& a) {
        return a.to(dtype_of<double>()).template values<double>();
    };
    return {wide(y[0]), wide(world().backward(name, x, y, gy, attrs)[0]),
            wide(world().gradient(name, x, y, gy, attrs)[0])};
}
// The same of a composition without kernels.
Result composed(const std::string& name, const std::vector<Array>& x, const Attrs& attrs) {
    const Array y = world().forward(name, x, attrs)[0];
    Array gy(y.shape(), y.dtype());
    for (std::int64_t i = 0; i < gy.size(); ++i) gy.set(i, 1);
    const Array gx = world().gradient(name, x, {y}, {gy}, attrs)[0];
    const auto wide = [](const Array& a) { return a.to(dtype_of<double>()).values<double>(); };
    return {wide(y), wide(gx), {}};
}
double sum(const std::vector<double>& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
bool all_zero(const std::vector<double>& v) {
    return std::all_of(v.begin(), v.end(), [](double a) { return a == 0; });
}
Attrs with(const char* reduce, double smoothing = 0) {
    Attrs attrs = {set("reduce", reduce)};
    if (smoothing != 0) attrs.push_back(set("label_smoothing", smoothing));
    return attrs;
}
const char* const entropy = "catena.softmax_cross_entropy";
const char* const soft = "catena.softmax_cross_entropy_soft";
const char* const nll = "catena.nll_loss";

}  // namespace

TEST_CASE_TEMPLATE("all labels are ignored, or weigh nothing", T, float, double) {
    const Array x = Array::random<T>({3, 4}, 1);
    const Array none = labels({3}, {-1, -1, -1});
    const Array zero = Array::from<T>({0, 0, 0, 0}, {4});
    for (const char* name : {entropy, nll})
        for (const char* reduce : {"mean", "sum", "no"}) {
            CAPTURE(reduce);
            const Attrs attrs = with(reduce);
            for (const auto& inputs : {std::vector<Array>{x, none},
                                       {x, labels({3}, {0, 1, 2}), zero},
                                       {x, none, Array::random<T>({4}, 2, 0.5, 2)}}) {
                const Result r = run(name, inputs, attrs);
                CHECK(all_zero(r.y));
                CHECK(all_zero(r.gx));
                CHECK(all_zero(r.composed));
            }
        }
}

TEST_CASE_TEMPLATE("ignored rows may have any scores", T, float, double) {
    const T bad = static_cast<T>(no_number), big = static_cast<T>(inf);
    const Array x = Array::from<T>({bad, 1, big, 0, 1, 2}, {2, 3});
    const Array alone = Array::from<T>({0, 1, 2}, {1, 3});
    for (const char* reduce : {"mean", "sum", "no"}) {
        const Result r = run(entropy, {x, labels({2}, {-1, 2})}, with(reduce, 0.25));
        const Result one = run(entropy, {alone, labels({1}, {2})}, with(reduce, 0.25));
        CHECK(r.y.back() == one.y.back());
        if (r.y.size() == 2) CHECK(r.y[0] == 0);
        CHECK(std::vector<double>(r.gx.begin(), r.gx.begin() + 3) == std::vector<double>(3, 0));
        CHECK(std::vector<double>(r.gx.begin() + 3, r.gx.end()) == one.gx);
        CHECK(std::vector<double>(r.composed.begin(), r.composed.begin() + 3) ==
              std::vector<double>(3, 0));
        CHECK(std::vector<double>(r.composed.begin() + 3, r.composed.end()) == one.composed);
    }
    CHECK(run(nll, {x, labels({2}, {-1, 2})}, with("no")).y == std::vector<double>{0, -2});
}

TEST_CASE_TEMPLATE("one class, no rows, huge scores", T, float, double) {
    const Array one = Array::from<T>({3, static_cast<T>(-1e30)}, {2, 1});
    for (const double smoothing : {0.0, 0.5, 1.0}) {
        CAPTURE(smoothing);
        const Result r = run(entropy, {one, labels({2}, {0, 0})}, with("no", smoothing));
        CHECK(all_zero(r.y));
        CHECK(all_zero(r.gx));
        for (const char* reduce : {"mean", "sum", "no"}) {
            const auto y = world().forward(entropy, {Array::random<T>({0, 3}, 1), labels({0}, {})},
                                           with(reduce, smoothing));
            CHECK(y[0].size() == (std::string(reduce) == "no" ? 0 : 1));
            if (y[0].size() == 1) CHECK(y[0].at(0) == 0);
        }
        // The loss is 1e4 at the wrong class; its part of the smoothed target is 1 / 2.
        const Array huge = Array::from<T>({10000, 0}, {1, 2});
        const Result wrong = run(entropy, {huge, labels({1}, {1})}, with("mean", smoothing));
        CHECK(wrong.y[0] == doctest::Approx(1e4 * (1 - smoothing / 2)));
        CHECK(wrong.gx[0] == doctest::Approx(1 - smoothing / 2));
        CHECK(wrong.gx[1] == doctest::Approx(smoothing / 2 - 1));
    }
    CHECK(std::isnan(run(entropy,
                         {Array::from<T>({static_cast<T>(no_number), 1}, {1, 2}), labels({1}, {1})},
                         with("mean", 0.5))
                         .y[0]));
}

TEST_CASE("many rows and classes: threads, and the mean of the separate losses") {
    constexpr std::int64_t rows = 700;
    for (const Dims& shape : {Dims{rows, 301}, Dims{7, 301, 100}, Dims{70, 301, 2, 5}}) {
        Dims of_t = {shape[0]};
        of_t.insert(of_t.end(), shape.begin() + 2, shape.end());
        const Array x = Array::random<float>(shape, 1, -4, 4);
        const Array weight = Array::random<float>({301}, 2, 0.5, 2);
        std::vector<std::int64_t> t(rows);
        double weights = 0;
        for (std::size_t i = 0; i < rows; ++i) {
            t[i] = static_cast<std::int64_t>(i * 7919 % 302) - 1;
            if (t[i] >= 0) weights += weight.at(t[i]);
        }
        const std::vector<Array> in = {x, labels(of_t, t), weight};
        const Result each = run(entropy, in, with("no", 0.1));
        const Result total = run(entropy, in, with("sum", 0.1));
        const Result mean = run(entropy, in, with("mean", 0.1));
        CHECK(total.y[0] == doctest::Approx(sum(each.y)).epsilon(1e-6));
        CHECK(mean.y[0] == doctest::Approx(total.y[0] / weights).epsilon(1e-6));
        CHECK(total.gx == each.gx);
        Options options;
        options.threads = 3;
        for (const char* reduce : {"no", "mean"}) {
            const auto y = world().forward(entropy, in, with(reduce, 0.1));
            CHECK(world().forward(entropy, in, with(reduce, 0.1), options) == y);
            Array gy(y[0].shape(), y[0].dtype());
            for (std::int64_t i = 0; i < gy.size(); ++i) gy.set(i, 0.5);
            const std::vector<Array> gradients = {gy, Array(), Array()};
            CHECK(world().backward(entropy, in, y, gradients, with(reduce, 0.1), options) ==
                  world().backward(entropy, in, y, gradients, with(reduce, 0.1)));
        }
    }
}

TEST_CASE_TEMPLATE("soft targets: one-hot ones are labels; parts that are 0", T, float, double) {
    const Array x = Array::random<T>({3, 4, 2}, 1, -3, 3);
    const std::vector<std::int64_t> t = {0, 3, 1, 2, 2, 1};
    Array q({3, 4, 2}, dtype_of<T>());
    for (std::int64_t i = 0; i < q.size(); ++i) q.set(i, 0);
    for (std::int64_t i = 0; i < 6; ++i)
        q.set((i / 2 * 4 + t[static_cast<std::size_t>(i)]) * 2 + i % 2, 1);
    for (const double smoothing : {0.0, 0.25}) {
        const Result hard = run(entropy, {x, labels({3, 2}, t)}, with("no", smoothing));
        const Result same = run(soft, {x, q}, with("no", smoothing));
        const double close = sizeof(T) == 4 ? 1e-6 : 1e-14;
        for (std::size_t i = 0; i < hard.y.size(); ++i)
            CHECK(std::abs(hard.y[i] - same.y[i]) < 10 * close);
        for (std::size_t i = 0; i < hard.gx.size(); ++i)
            CHECK(std::abs(hard.gx[i] - same.gx[i]) < close);
    }
    // A class with score -inf and probability 0 adds nothing.
    const Array masked = Array::from<T>({static_cast<T>(-inf), 1, 2}, {1, 3});
    const Result r = run(soft, {masked, Array::from<T>({0, 0, 1}, {1, 3})});
    CHECK(r.y[0] == doctest::Approx(std::log(1 + std::exp(-1.0))));
    CHECK(r.gx[0] == 0);
    CHECK(run(soft, {masked, Array::from<T>({1, 0, 0}, {1, 3})}).y[0] == inf);
    // The probabilities need not sum to 1: -sum of t * log softmax(0) = 2.5 log 2.
    CHECK(run(soft, {Array::from<T>({0, 0}, {1, 2}), Array::from<T>({2, 0.5}, {1, 2})}).y[0] ==
          doctest::Approx(2.5 * std::log(2)));
    CHECK(std::isnan(run(soft, {Array::from<T>({static_cast<T>(no_number), 0}, {1, 2}),
                                Array::from<T>({0.5, 0.5}, {1, 2})})
                         .y[0]));
    for (const char* reduce : {"mean", "sum"})
        CHECK(run(soft, {Array::random<T>({0, 2}, 1), Array::random<T>({0, 2}, 1)}, with(reduce))
                  .y[0] == 0);
    const Array many = Array::random<float>({500, 301}, 3, -3, 3);
    const Array p = Array::random<float>({500, 301}, 4, 0, 1);
    Options options;
    options.threads = 3;
    CHECK(world().forward(soft, {many, p}, {}, options) == world().forward(soft, {many, p}));
}

TEST_CASE("bce_with_logits and huber: edges") {
    const auto bce = [](double x, double t) {
        return run("catena.bce_with_logits",
                   {Array::from<double>({x}, {1}), Array::from<double>({t}, {1})});
    };
    CHECK(bce(0, 0.25).y[0] == doctest::Approx(std::log(2)));
    CHECK(bce(1e4, 1).y[0] == 0);
    CHECK(bce(-1e4, 1).y[0] == 1e4);
    CHECK(bce(-1e4, 1).gx[0] == -1);
    CHECK(bce(40, 1).y[0] == doctest::Approx(std::exp(-40.0)).epsilon(1e-12));
    CHECK(bce(-700, 0).y[0] == doctest::Approx(std::exp(-700.0)).epsilon(1e-12));
    CHECK(std::isnan(bce(no_number, 1).y[0]));
    CHECK(std::isnan(bce(no_number, 1).gx[0]));
    const auto huber = [](double d, double delta) {
        return run("catena.huber", {Array::from<double>({d}, {1}), Array::from<double>({0}, {1})},
                   {set("delta", delta)});
    };
    CHECK(huber(-1, 1).y[0] == 0.5);
    CHECK(huber(-1, 1).gx[0] == -1);
    CHECK(huber(3, 0.5).y[0] == 0.5 * (3 - 0.25));
    CHECK(huber(inf, 0.5).y[0] == inf);
    CHECK(huber(-inf, 0.5).gx[0] == -0.5);
    CHECK(huber(5, 0).y[0] == 0);
    CHECK(std::isnan(huber(no_number, 1).y[0]));
    CHECK(std::isnan(huber(no_number, 1).gx[0]));
}

TEST_CASE("refused") {
    const Array x = Array::random<float>({2, 3}, 1);
    for (const std::string name : {entropy, nll}) {
        const auto loss = [&](const std::vector<Array>& in) { world().forward(name, in); };
        CHECK_THROWS_WITH(loss({x, labels({2}, {0, 3})}),
                          ("[" + name +
                           "] t[1]: expected a label from 0 to 2, or -1 to ignore, "
                           "got 3")
                              .c_str());
        CHECK_THROWS_WITH(loss({x, labels({2}, {0, 1}), Array::random<float>({2}, 1)}),
                          ("[" + name + "] class_weight.shape: expected (3,), got (2,)").c_str());
        CHECK_THROWS_WITH(loss({x, labels({3}, {0, 1, 1})}),
                          ("[" + name + "] t.shape: expected (2,), got (3,)").c_str());
    }
    CHECK_THROWS_WITH(world().forward(soft, {x, Array::random<float>({2, 2}, 1)}),
                      "[catena.softmax_cross_entropy_soft] t.shape: expected (2, 3), got (2, 2)");
    CHECK_THROWS_WITH(
        world().forward(soft, {Array::random<float>({2, 0}, 1), Array::random<float>({2, 0}, 1)}),
        "[catena.softmax_cross_entropy_soft] x.shape[1]: expected at least 1 class, "
        "got 0");
    CHECK_THROWS_WITH(
        world().forward(soft, {Array::random<float>({2}, 1), Array::random<float>({2}, 1)}),
        "[catena.softmax_cross_entropy_soft] x.ndim: expected at least 2, got 1");
}

TEST_CASE_TEMPLATE("contrastive and triplet: small and large vectors", T, catena::plugin::Float16,
                   catena::plugin::BFloat16, float, double) {
    const auto pair = [](double x, double near, double margin) {
        const Array zero = Array::from<double>({0, 0}, {1, 2}).to(dtype_of<T>());
        return composed("catena.contrastive",
                        {Array::from<double>({x, 0}, {1, 2}).to(dtype_of<T>()), zero,
                         Array::from<double>({near}, {1}).to(dtype_of<std::int32_t>())},
                        {set("margin", margin), set("reduce", "no")});
    };
    const double close = sizeof(T) == 2 ? 0.01 : 1e-6;
    const double small = sizeof(T) == 2 ? 1e-4 : sizeof(T) == 4 ? 1e-25 : 1e-200;
    CHECK(pair(small, 1, 1).gx[0] == doctest::Approx(small).epsilon(close));
    CHECK(pair(small, 0, 1).gx[0] == doctest::Approx(-1).epsilon(close));
    CHECK(pair(small, 0, 1).y[0] == doctest::Approx(0.5).epsilon(close));
    CHECK(pair(200, 1, 1).y[0] == doctest::Approx(20000).epsilon(close));
    // The square of the distance is not in the range of the dtype, and does not matter.
    const double large = sizeof(T) == 2 ? 2000 : sizeof(T) == 4 ? 1e25 : 1e200;
    CHECK(pair(large, 0, 1).y[0] == 0);
    CHECK(all_zero(pair(large, 0, 1).gx));
    CHECK(all_zero(pair(0, 0, 1).gx));

    // |x - p|^2 = |x - n|^2 = 300^2, which float16 does not hold.
    const auto vector = [](double a, double b) {
        return Array::from<double>({a, b}, {1, 2}).to(dtype_of<T>());
    };
    const Result r = composed("catena.triplet", {vector(0, 0), vector(300, 0), vector(0, 300)},
                              {set("margin", 0.5)});
    CHECK(r.y[0] == 0.5);
    CHECK(r.gx[0] == doctest::Approx(-600).epsilon(close));
    CHECK(r.gx[1] == doctest::Approx(600).epsilon(close));
}

TEST_CASE("contrastive: the second gradient of a pair of equal vectors") {
    const Array x = Array::from<double>({1, 2, 3}, {1, 3});
    CHECK(check(world(), {.function = "catena.contrastive",
                          .inputs = {x, x, Array::from<std::int32_t>({1}, {1})}}) == "");
}

TEST_CASE("losses that are 0 do not depend on NaN and infinity") {
    const Array x = Array::from<double>({1, 2, 3, 4}, {2, 2});
    const Array w = Array::from<double>({no_number, inf, 1, 2, 3, 4}, {3, 2});
    for (const Array& scores : {x, Array::from<double>({no_number, inf, 3, 4}, {2, 2})}) {
        const Result r = composed("catena.negative_sampling",
                                  {scores, labels({2}, {-1, 1}), w, labels({2, 1}, {0, 2})},
                                  {set("reduce", "no")});
        CHECK(r.y[0] == 0);
        CHECK(r.y[1] == doctest::Approx(std::log1p(std::exp(-11)) + std::log1p(std::exp(25))));
        CHECK(r.gx[0] == 0);
        CHECK(r.gx[1] == 0);
    }
    const Array log_p = Array::from<double>({-inf, no_number, -1}, {3});
    const Result r = composed("catena.kl_div", {log_p, Array::from<double>({0, 0, 1}, {3})},
                              {set("reduce", "no")});
    CHECK(r.y == std::vector<double>{0, 0, 1});
    CHECK(r.gx == std::vector<double>{0, 0, -1});
    const Result logs =
        composed("catena.kl_div", {log_p, Array::from<double>({-inf, -inf, 0}, {3})},
                 {set("reduce", "no"), set("log_target", true)});
    CHECK(logs.y == std::vector<double>{0, 0, 1});
    CHECK(logs.gx == std::vector<double>{0, 0, -1});
}

TEST_CASE("sampled losses refuse a W that does not fit") {
    for (const std::string name : {"catena.black_out", "catena.negative_sampling"})
        CHECK_THROWS_WITH(
            world().forward(name, {Array::random<float>({1, 2}, 1), labels({1}, {0}),
                                   Array::random<float>({3, 1}, 2), labels({1, 1}, {1})}),
            ("[" + name + "] W.shape: expected (3, 2), got (3, 1)").c_str());
}
