// Tests layer_normalization, rms_normalization and group_normalization.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;

namespace {

World& world() {
    static World world({NORMALIZATION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN});
    return world;
}
std::int64_t size_of(const Dims& shape) {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n *= d;
    return n;
}

// y, the mean and the scale of each row of `length` elements; value_of: the index of gamma for
// element i of x.
template <class ValueOf>
std::vector<Array> normalized(const Array& x, const Array& gamma, const Array& beta, double eps,
                              std::int64_t length, bool centred, const Dims& statistics,
                              const ValueOf& value_of) {
    Array y(x.shape(), dtype_of<double>());
    Array means(statistics, dtype_of<double>());
    Array scales(statistics, dtype_of<double>());
    for (std::int64_t r = 0; r < means.size(); ++r) {
        double mean = 0;
        double var = 0;
        for (std::int64_t i = 0; centred && i < length; ++i)
            mean += x.at(r * length + i) / static_cast<double>(length);
        for (std::int64_t i = 0; i < length; ++i)
            var += std::pow(x.at(r * length + i) - mean, 2) / static_cast<double>(length);
        means.set(r, mean);
        scales.set(r, 1 / std::sqrt(var + eps));
        for (std::int64_t i = r * length; i < (r + 1) * length; ++i)
            y.set(i, (x.at(i) - mean) * scales.at(r) * (gamma ? gamma.at(value_of(i)) : 1) +
                         (beta ? beta.at(value_of(i)) : 0));
    }
    if (!centred) return {y, scales};
    return {y, means, scales};
}

}  // namespace

TEST_CASE("layer_normalization and rms_normalization") {
    struct Example {
        Dims shape, covered;
    };
    for (const Example& e :
         {Example{{4, 3}, {3}}, Example{{3}, {3}}, Example{{2, 3, 5}, {5}},
          Example{{2, 3, 5}, {3, 5}}, Example{{2, 3, 5}, {2, 3, 5}}, Example{{5, 1}, {1}},
          Example{{0, 3}, {3}}, Example{{3, 0}, {0}}, Example{{7, 133}, {133}}}) {
        const Array x = Array::random<double>(e.shape, 1, -2, 3);
        const Array gamma = Array::random<double>(e.covered, 2);
        const Array beta = Array::random<double>(e.covered, 3);
        const std::int64_t n = size_of(e.covered);
        const Dims statistics(e.shape.begin(),
                              e.shape.end() - static_cast<std::ptrdiff_t>(e.covered.size()));
        const auto value_of = [&](std::int64_t i) { return i % n; };
        const double eps = 1e-2;
        const auto expected = [&](const Array& g, const Array& b, bool centred) {
            return normalized(x, g, b, eps, n, centred, statistics, value_of);
        };
        const Attrs attrs = {set("eps", eps)};
        const auto problems = [&](const char* name, const std::vector<Array>& inputs,
                                  const std::vector<Array>& y) {
            return check(world(),
                         {.function = name, .inputs = inputs, .attrs = attrs, .expected = y});
        };
        CHECK(problems("catena.layer_normalization", {x, gamma, beta},
                       expected(gamma, beta, true)) == "");
        CHECK(problems("catena.layer_normalization", {x, gamma, {}}, expected(gamma, {}, true)) ==
              "");
        CHECK(problems("catena.layer_normalization", {x, {}, beta}, expected({}, beta, true)) ==
              "");
        CHECK(problems("catena.rms_normalization", {x, gamma}, expected(gamma, {}, false)) == "");
        if (e.covered.size() != 1) continue;
        CHECK(problems("catena.layer_normalization", {x, {}, {}}, expected({}, {}, true)) == "");
        CHECK(problems("catena.rms_normalization", {x, {}}, expected({}, {}, false)) == "");
    }
}

TEST_CASE("group_normalization") {
    struct Example {
        Dims shape;
        std::int64_t groups;
    };
    for (const Example& e :
         {Example{{2, 4, 3}, 2}, Example{{2, 6}, 3}, Example{{2, 6}, 6}, Example{{3, 4, 2, 3}, 1},
          Example{{1, 4, 5, 7}, 4}, Example{{0, 4, 3}, 2}, Example{{2, 4, 0}, 2},
          Example{{2, 2, 67}, 1}}) {
        const Array x = Array::random<double>(e.shape, 1, -2, 3);
        const Array gamma = Array::random<double>({e.shape[1]}, 2);
        const Array beta = Array::random<double>({e.shape[1]}, 3);
        const std::int64_t run = size_of(Dims(e.shape.begin() + 2, e.shape.end()));
        const std::int64_t length = e.shape[1] / e.groups * run;
        const auto value_of = [&](std::int64_t i) { return i / run % e.shape[1]; };
        const Attrs attrs = {set("groups", e.groups), set("eps", 1e-3)};
        for (const bool with_gamma : {true, false})
            for (const bool with_beta : {true, false}) {
                const Array g = with_gamma ? gamma : Array();
                const Array b = with_beta ? beta : Array();
                CHECK(check(world(), {.function = "catena.group_normalization",
                                      .inputs = {x, g, b},
                                      .attrs = attrs,
                                      .expected = normalized(x, g, b, 1e-3, length, true,
                                                             {e.shape[0], e.groups}, value_of)}) ==
                      "");
            }
    }
}

TEST_CASE("row normalizations: many rows, the same for any number of threads") {
    struct Example {
        const char* function;
        Dims shape, values;
        Attrs attrs;
    };
    for (const Example& e :
         {Example{"catena.layer_normalization", {700, 300}, {300}, {}},
          Example{"catena.group_normalization", {50, 12, 19, 20}, {12}, {set("groups", 4)}},
          Example{"catena.group_normalization", {2, 4, 50, 501}, {4}, {set("groups", 2)}}}) {
        const std::vector<Array> in = {Array::random<float>(e.shape, 1, 9, 11),
                                       Array::random<float>(e.values, 2),
                                       Array::random<float>(e.values, 3)};
        std::vector<Array> wide;
        for (const Array& a : in) wide.push_back(a.to(dtype_of<double>()));
        const Array gy = Array::random<float>(e.shape, 4);
        const auto y = world().forward(e.function, in, e.attrs);
        const auto gx = world().backward(e.function, in, y, {gy}, e.attrs);
        const auto exact = world().forward(e.function, wide, e.attrs);
        const auto exact_gx =
            world().gradient(e.function, wide, exact, {gy.to(dtype_of<double>())}, e.attrs);
        CHECK(compare(y[0], exact[0].to(dtype_of<float>()), {1e-4, 1e-5}) == "");
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(compare(gx[i], exact_gx[i].to(dtype_of<float>()), {1e-3, 1e-3}) == "");
        for (const int threads : {1, 3}) {
            Options options;
            options.threads = threads;
            CHECK(world().forward(e.function, in, e.attrs, options) == y);
            CHECK(world().backward(e.function, in, y, {gy}, e.attrs, options) == gx);
        }
        // Each gradient alone.
        for (const std::uint64_t target : {1, 2, 4}) {
            Options options;
            options.targets = target;
            const auto one = world().backward(e.function, in, y, {gy}, e.attrs, options);
            for (std::size_t i = 0; i < 3; ++i)
                if (target >> i & 1) CHECK(one[i] == gx[i]);
        }
    }
}

TEST_CASE("row normalizations: constant rows, large means, NaN and infinity") {
    const float inf = std::numeric_limits<float>::infinity();
    const Array x = Array::from<float>(
        {3, 3, 3, 1e6f, 1e6f + 1, 1e6f + 2, 1, std::nanf(""), 2, 1, inf, 2}, {4, 3});
    const auto y = world().forward("catena.layer_normalization", {x, {}, {}})[0];
    for (std::int64_t i = 0; i < 3; ++i) CHECK(y.at(i) == 0);
    CHECK(y.at(3) == doctest::Approx(-1.2247).epsilon(1e-3));
    CHECK(y.at(5) == doctest::Approx(1.2247).epsilon(1e-3));
    for (std::int64_t i = 6; i < 9; ++i) CHECK(std::isnan(y.at(i)));
    CHECK(std::isnan(y.at(10)));
    const Array zero =
        world().forward("catena.rms_normalization", {Array::from<float>({0, 0}, {2}), Array()})[0];
    CHECK(zero.at(0) == 0);
}

TEST_CASE("row normalizations: wrong shapes") {
    const auto of = [](const Dims& shape) { return Array::random<double>(shape, 1); };
    const auto message = [&](const char* name, const std::vector<Array>& inputs,
                             const Attrs& attrs = {}) -> std::string {
        try {
            world().forward(name, inputs, attrs);
        } catch (const Failure& e) {
            CHECK(e.status() == CATENA_E_SHAPE);
            return e.what();
        }
        return "no error";
    };
    const char* const layer = "catena.layer_normalization";
    CHECK(message(layer, {of({2, 3}), of({2}), {}}) ==
          "[catena.layer_normalization] gamma.shape: expected (3,), got (2,)");
    CHECK(message(layer, {of({2, 3}), of({3}), of({2, 3})}) ==
          "[catena.layer_normalization] beta.shape: expected (3,), got (2, 3)");
    CHECK(message(layer, {of({2, 3}), of({}), {}}) ==
          "[catena.layer_normalization] gamma.shape: expected (3,), got ()");
    CHECK(message(layer, {of({3}), of({2, 3}), {}}) ==
          "[catena.layer_normalization] gamma.shape: expected (3,), got (2, 3)");
    CHECK(message(layer, {of({}), {}, {}}) ==
          "[catena.layer_normalization] x.ndim: expected at least 1, got 0");
    const Attrs groups = {set("groups", 3)};
    CHECK(message("catena.group_normalization", {of({2, 4}), {}, {}}, groups) ==
          "[catena.group_normalization] x.shape[1]: expected a multiple of 3 groups, got 4");
    CHECK(message("catena.group_normalization", {of({2, 6}), of({3}), {}}, groups) ==
          "[catena.group_normalization] gamma.shape: expected (6,), got (3,)");
    CHECK(message("catena.group_normalization", {of({6}), {}, {}}, groups) ==
          "[catena.group_normalization] x.ndim: expected at least 2, got 1");
}
