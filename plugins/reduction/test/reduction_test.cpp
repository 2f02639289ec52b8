// Tests reduction.catena: edges, large arrays and wrong calls. golden.py has the reference values.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

using namespace catena::testing;
using catena::plugin::BFloat16;
using catena::plugin::Float16;
using catena::plugin::Ints;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

World& world() {
    static World world({REDUCTION_PLUGIN, ARRAY_PLUGIN, MATH_PLUGIN});
    return world;
}
Array f64(const std::vector<double>& values, const Dims& shape) {
    return Array::from<double>(values, shape);
}
Array along(const std::string& name, const Array& x, const Dims& axis = {},
            const Options& options = {}) {
    return world().forward("catena." + name, {x}, {set("axis", Ints(axis))}, options)[0];
}
std::vector<double> values_of(const Array& a) {
    std::vector<double> v;
    for (std::int64_t i = 0; i < a.size(); ++i) v.push_back(a.at(i));
    return v;
}

// The elements of x for each element that is kept, in order.
std::vector<std::vector<double>> groups(const Array& x, const Dims& axes) {
    const auto ndim = static_cast<std::int64_t>(x.shape().size());
    std::vector<bool> reduced(x.shape().size(), axes.empty());
    for (const std::int64_t a : axes)
        reduced[static_cast<std::size_t>(a < 0 ? a + ndim : a)] = true;
    std::int64_t kept = 1;
    for (std::size_t d = 0; d < reduced.size(); ++d)
        if (!reduced[d]) kept *= x.shape()[d];
    std::vector<std::vector<double>> all(static_cast<std::size_t>(kept));
    for (std::int64_t i = 0; i < x.size(); ++i) {
        std::int64_t rest = i;
        std::int64_t k = 0;
        std::int64_t step = 1;
        for (std::size_t d = reduced.size(); d-- > 0; rest /= x.shape()[d]) {
            if (reduced[d]) continue;
            k += rest % x.shape()[d] * step;
            step *= x.shape()[d];
        }
        all[static_cast<std::size_t>(k)].push_back(x.at(i));
    }
    return all;
}

using Plain = std::function<double(const std::vector<double>&)>;
double plain_mean(const std::vector<double>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}
// Plain loops over the elements of a group, which has at least one.
const std::vector<std::pair<std::string, Plain>>& plain_functions() {
    static const std::vector<std::pair<std::string, Plain>> all = {
        {"max", [](const auto& v) { return *std::max_element(v.begin(), v.end()); }},
        {"min", [](const auto& v) { return *std::min_element(v.begin(), v.end()); }},
        {"mean", plain_mean},
        {"var",
         [](const auto& v) {
             double sum = 0;
             for (const double e : v) sum += (e - plain_mean(v)) * (e - plain_mean(v));
             return sum / static_cast<double>(v.size());
         }},
        {"logsumexp",
         [](const auto& v) {
             double sum = 0;
             for (const double e : v) sum += std::exp(e);
             return std::log(sum);
         }},
        {"prod",
         [](const auto& v) {
             return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>());
         }},
        {"any",
         [](const auto& v) {
             return std::any_of(v.begin(), v.end(), [](double e) { return e != 0; });
         }},
        {"all",
         [](const auto& v) {
             return std::all_of(v.begin(), v.end(), [](double e) { return e != 0; });
         }},
    };
    return all;
}
double first_largest(const std::vector<double>& v) {
    return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin());
}
double first_smallest(const std::vector<double>& v) {
    return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
}

void check_against(const std::string& name, const Plain& plain, const Array& x, const Dims& axes) {
    CAPTURE(name);
    CAPTURE(x.shape());
    CAPTURE(axes);
    const auto expected = groups(x, axes);
    const bool narrow = x.dtype().bits == 32;
    for (const char* isa : world().isas("catena." + name)) {
        for (const int threads : {1, 3}) {
            const Array y = along(name, x, axes, {.isa = isa, .threads = threads});
            REQUIRE(y.size() == static_cast<std::int64_t>(expected.size()));
            for (std::int64_t k = 0; k < y.size(); ++k) {
                const double e = plain(expected[static_cast<std::size_t>(k)]);
                CHECK(y.at(k) == doctest::Approx(e).epsilon(narrow ? 2e-6 : 1e-12));
            }
        }
    }
}

}  // namespace

TEST_CASE("reductions of any axes agree with plain loops") {
    struct Shaped {
        Dims shape, axes;
    };
    // Lines shorter and longer than the lanes and pieces of a kernel, and few and many of them.
    for (const Shaped& s :
         {Shaped{{}, {}}, Shaped{{1}, {0}}, Shaped{{7}, {}}, Shaped{{131}, {}},
          Shaped{{3, 77}, {1}}, Shaped{{77, 3}, {0}}, Shaped{{9, 260}, {0}},
          Shaped{{2, 3, 4, 5}, {0, 2}}, Shaped{{2, 3, 4, 5}, {1, -1}}, Shaped{{70, 2, 33}, {0, 2}},
          Shaped{{2, 1, 9}, {1}}, Shaped{{4, 0}, {0}}, Shaped{{5001}, {}}, Shaped{{3, 40000}, {-1}},
          Shaped{{40000, 3}, {0}}, Shaped{{200000}, {0}}}) {
        const Array x = Array::random<double>(s.shape, 3, -1, 1);
        const Array single = Array::random<float>(s.shape, 4, -1, 1);
        for (const auto& [name, plain] : plain_functions()) {
            check_against(name, plain, x, s.axes);
            if (name != "prod") check_against(name, plain, single, s.axes);
        }
        if (s.axes.size() > 1) continue;
        for (const Array& a : {x, single}) {
            check_against("argmax", first_largest, a, s.axes);
            check_against("argmin", first_smallest, a, s.axes);
        }
    }
}

TEST_CASE("integers") {
    const Array x = Array::from<std::int32_t>({5, -7, 5, 3, 5, -7, 0, 1}, {2, 4});
    CHECK(values_of(along("max", x, {1})) == std::vector<double>{5, 5});
    CHECK(values_of(along("min", x, {0})) == std::vector<double>{5, -7, 0, 1});
    CHECK(values_of(along("argmax", x, {1})) == std::vector<double>{0, 0});
    CHECK(values_of(along("argmin", x)) == std::vector<double>{1});
    CHECK(along("argmin", x).dtype().bits == 64);
    CHECK(values_of(along("prod", x, {1})) == std::vector<double>{-525, 0});
    CHECK(values_of(along("cumsum", x, {1})) == std::vector<double>{5, -2, 3, 6, 5, -2, -2, -1});
    CHECK(values_of(along("cumprod", x)) ==
          std::vector<double>{5, -35, -175, -525, -2625, 18375, 0, 0});
    // Products wrap, as in NumPy.
    const Array big = Array::from<std::int64_t>({std::int64_t{1} << 62, 6}, {2});
    CHECK(along("prod", big).at(0) == -9223372036854775808.0);
    const auto lowest = std::numeric_limits<std::int64_t>::min();
    CHECK(along("max", Array::from<std::int64_t>({lowest, lowest}, {2})).values<std::int64_t>() ==
          std::vector<std::int64_t>{lowest});
}

TEST_CASE("any and all") {
    const Array x = Array::from<bool>({false, true, false, false}, {2, 2});
    CHECK(values_of(along("any", x, {1})) == std::vector<double>{1, 0});
    CHECK(values_of(along("all", x, {1})) == std::vector<double>{0, 0});
    CHECK(along("any", x).dtype().code == CATENA_CODE_BOOL);
    CHECK(values_of(along("all", f64({not_a_number, 1, -0.0, 2}, {2, 2}), {1})) ==
          std::vector<double>{1, 0});
    const Array none({2, 0}, dtype_of<bool>());
    CHECK(values_of(along("any", none, {1})) == std::vector<double>{0, 0});
    CHECK(values_of(along("all", none, {1})) == std::vector<double>{1, 1});
}

TEST_CASE("the first of equal elements and of NaN is found at every place") {
    constexpr std::int64_t n = 4099;  // one piece and a rest
    for (const std::int64_t place : {0, 1, 15, 63, 64, 127, 128, 2048, 4095, 4096, 4098}) {
        for (const std::int64_t other : {std::int64_t{0}, place / 2, place + 1, n - 1}) {
            CAPTURE(place);
            CAPTURE(other);
            Array top({n}, dtype_of<float>());
            for (std::int64_t i = 0; i < n; ++i) top.set(i, -std::abs(std::sin(double(i))) - 1);
            Array spoilt = top;
            for (const std::int64_t i : {place, std::min(other, n - 1)})
                top.set(i, 7), spoilt.set(i, not_a_number);
            const double first = static_cast<double>(std::min({place, other, n - 1}));
            CHECK(along("argmax", top).at(0) == first);
            CHECK(along("max", top).at(0) == 7);
            CHECK(along("argmax", spoilt).at(0) == first);
            CHECK(along("argmin", spoilt).at(0) == first);
            CHECK(std::isnan(along("max", spoilt).at(0)));
            CHECK(std::isnan(along("min", spoilt).at(0)));
            const Array columns = top.reshaped({n, 1});
            CHECK(along("argmax", columns, {0}).at(0) == first);
        }
    }
    // Along columns, too, where a column is a lane.
    Array x = Array::random<float>({300, 5}, 3, -1, 1);
    for (std::int64_t i = 0; i < 5; ++i) x.set((i * 67 + 3) * 5 + i, i % 2 == 0 ? 2 : not_a_number);
    CHECK(values_of(along("argmax", x, {0})) == std::vector<double>{3, 70, 137, 204, 271});
    const std::vector<double> most = values_of(along("max", x, {0}));
    CHECK(most[0] == 2);
    CHECK(std::isnan(most[1]));
    CHECK(values_of(along("argmax", Array::from<float>({-INFINITY, -INFINITY}, {2}))) ==
          std::vector<double>{0});
}

TEST_CASE("equal maxima share the gradient") {
    for (const char* name : {"catena.max", "catena.min"}) {
        const Array x = f64({2, 2, 2, 1, 3, 3}, {2, 3});
        const Dims axis = {1};
        const Attrs attrs = {set("axis", Ints(axis))};
        const auto y = world().forward(name, {x}, attrs);
        const std::vector<Array> gy = {f64({6, 10}, {2}), {}};
        const std::vector<double> expected = name[7] == 'm' && name[8] == 'a'
                                                 ? std::vector<double>{2, 2, 2, 0, 5, 5}
                                                 : std::vector<double>{2, 2, 2, 10, 0, 0};
        CHECK(values_of(world().backward(name, {x}, y, gy, attrs)[0]) == expected);
        CHECK(values_of(world().gradient(name, {x}, y, gy, attrs)[0]) == expected);
    }
    // All elements are -inf, in lanes and in the rest.
    Array low({131}, dtype_of<double>());
    for (std::int64_t i = 0; i < low.size(); ++i) low.set(i, -inf);
    const auto y = world().forward("catena.max", {low});
    const Array gx = world().backward("catena.max", {low}, y, {f64({131}, {}), {}})[0];
    CHECK(values_of(gx) == std::vector<double>(131, 1));
    // The gradients at NaN are NaN, by both ways.
    const Array spoilt = f64({1, not_a_number, 2}, {3});
    const auto z = world().forward("catena.max", {spoilt});
    for (const Array& g : {world().backward("catena.max", {spoilt}, z, {f64({1}, {}), {}})[0],
                           world().gradient("catena.max", {spoilt}, z, {f64({1}, {}), {}})[0]})
        for (std::int64_t i = 0; i < 3; ++i) CHECK(std::isnan(g.at(i)));
}

TEST_CASE("no elements") {
    const Array none({2, 0}, dtype_of<double>());
    CHECK(values_of(along("prod", none, {1})) == std::vector<double>{1, 1});
    CHECK(std::isnan(along("mean", none, {1}).at(0)));
    CHECK(std::isnan(along("var", none, {1}).at(1)));
    CHECK(values_of(along("logsumexp", none, {1})) == std::vector<double>{-inf, -inf});
    for (const char* name : {"max", "min", "argmax", "argmin"}) {
        CHECK_THROWS_WITH(
            along(name, none, {1}),
            (std::string("[catena.") + name + "] x: expected elements along the axes, got (2, 0)")
                .c_str());
        CHECK_THROWS_AS(along(name, none), Failure);
        CHECK(along(name, none, {0}).shape() == Dims{0});
    }
    CHECK(along("cumsum", none, {1}).shape() == Dims{2, 0});
    CHECK(along("cumprod", none).shape() == Dims{0});
    const Dims first = {0};
    for (const Dims& shape : {Dims{2, 0}, Dims{8, 0, 2}}) {  // lines with elements, but no lines
        const Array x = f64({}, shape);
        for (const char* name : {"catena.cumsum", "catena.cumprod"})
            CHECK(check(world(),
                        {.function = name, .inputs = {x}, .attrs = {set("axis", Ints(first))}}) ==
                  "");
        CHECK(check(world(), {.function = "catena.linear_recurrence",
                              .inputs = {x, x},
                              .attrs = {set("axis", 0), set("shifted", true)}}) == "");
    }
}

TEST_CASE("infinities and huge numbers") {
    CHECK(values_of(along("logsumexp", f64({-inf, -inf, 3, -inf, inf, 1, 1e308, 1e308}, {4, 2}),
                          {1})) == std::vector<double>{-inf, 3, inf, 1e308});
    CHECK(std::isnan(along("logsumexp", f64({1, not_a_number, 2}, {3})).at(0)));
    for (const double v : {-1e4, 0.0, 1e4}) {
        Array x({1000}, dtype_of<float>());
        for (std::int64_t i = 0; i < 1000; ++i) x.set(i, v);
        CHECK(along("logsumexp", x).at(0) == doctest::Approx(v + std::log(1000.0)).epsilon(1e-6));
    }
    const Array low = f64({-inf, -inf, 1, 2}, {2, 2});
    const Dims axis = {1};
    const Attrs attrs = {set("axis", Ints(axis))};
    const auto y = world().forward("catena.logsumexp", {low}, attrs);
    for (const Array& g :
         {world().backward("catena.logsumexp", {low}, y, {f64({1, 1}, {2})}, attrs)[0],
          world().gradient("catena.logsumexp", {low}, y, {f64({1, 1}, {2})}, attrs)[0]}) {
        CHECK(g.at(0) == 0);
        CHECK(g.at(1) == 0);
        CHECK(g.at(2) + g.at(3) == doctest::Approx(1));
    }
    CHECK(along("var", f64({1e200, 1e200, 1e200}, {3})).at(0) == 0);
    CHECK(std::isnan(along("var", f64({1, inf}, {2})).at(0)));
}

TEST_CASE("means and variances are accurate") {
    // The mean of 2^22 numbers, of which a float32 sum would be wrong in the fourth digit.
    constexpr std::int64_t n = std::int64_t{1} << 22;
    const Array x = Array::random<float>({n}, 5, 0, 1);
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += x.at(i);
    for (const Dims& shape : {Dims{n}, Dims{n / 2, 2}}) {
        const Array y = along("mean", x.reshaped(shape), {0});
        double all = 0;
        for (std::int64_t i = 0; i < y.size(); ++i) all += y.at(i) / static_cast<double>(y.size());
        CHECK(all == doctest::Approx(sum / n).epsilon(1e-7));
    }
    // A variance that is small compared with the mean.
    Array far({100003}, dtype_of<float>());
    for (std::int64_t i = 0; i < far.size(); ++i) far.set(i, 4096 + (i % 2 == 0 ? 0.5 : -0.5));
    CHECK(along("var", far).at(0) == doctest::Approx(0.25).epsilon(1e-6));
    // The first element must not determine the precision.
    Array outlier({100001}, dtype_of<float>());
    for (std::int64_t i = 0; i < outlier.size(); ++i)
        outlier.set(i, i == 0 ? 1e6 : static_cast<double>(i % 2));
    const double mean = (1e6 + 50000) / 100001;
    const double exact =
        ((1e6 - mean) * (1e6 - mean) + 50000 * (mean * mean + (1 - mean) * (1 - mean))) / 100001;
    CHECK(along("var", outlier).at(0) == doctest::Approx(exact).epsilon(1e-6));
}

TEST_CASE("half precision does not overflow") {
    Array x({3000}, dtype_of<Float16>());
    for (std::int64_t i = 0; i < x.size(); ++i) x.set(i, 60000);
    CHECK(along("mean", x).at(0) == 60000);
    CHECK(along("max", x).at(0) == 60000);
    CHECK(along("var", x).at(0) == 0);
    CHECK(along("argmax", x).dtype().bits == 64);
}

TEST_CASE("ddof") {
    const auto var = [](const Array& x, std::int64_t ddof) {
        return world().forward("catena.var", {x}, {set("ddof", ddof)})[0].at(0);
    };
    const Array x = f64({1, 2, 4}, {3});
    CHECK(var(x, 1) == doctest::Approx(7.0 / 3));
    CHECK(var(x, 2) == doctest::Approx(14.0 / 3));
    CHECK(std::isnan(var(f64({5}, {1}), 1)));
    CHECK(var(x, 5) == inf);
}

TEST_CASE("gradients of products with zeros") {
    for (const std::vector<double>& v :
         {std::vector<double>{2, 3, 4, 5}, {2, 0, 4, 5}, {0, 3, 0, 5}, {0, 0, 0, 1}}) {
        const Dims axis = {1};
        const Array x = f64({v[0], v[1], v[2], v[3], 1.5, -2, 0.5, 3}, {2, 4});
        for (const char* name : {"catena.prod", "catena.cumprod"})
            CHECK(check(world(),
                        {.function = name, .inputs = {x}, .attrs = {set("axis", Ints(axis))}}) ==
                  "");
        CHECK(check(world(), {.function = "catena.cumprod",
                              .inputs = {x},
                              .attrs = {set("axis", Ints(axis)), set("exclusive", true),
                                        set("reverse", true)}}) == "");
    }
}

TEST_CASE("products of integers and bool are int64") {
    const auto product = [](const Array& x, const Dims& axis) {
        const Array y = world().forward("catena.prod", {x}, {set("axis", Ints(axis))})[0];
        REQUIRE(catena::plugin::same(y.dtype(), catena::plugin::dtype_of<std::int64_t>()));
        return y.values<std::int64_t>();
    };
    using V = std::vector<std::int64_t>;
    const Array x = Array::from<std::int32_t>({100000, -3, 70000, 2}, {2, 2});
    CHECK(product(x, {0}) == V{7000000000, -6});
    CHECK(product(x, {1}) == V{-300000, 140000});
    CHECK(product(x, {}) == V{-42000000000});
    const Array bytes = Array::from<std::uint8_t>({200, 200, 200, 0, 7, 1}, {2, 3});
    CHECK(product(bytes, {1}) == V{8000000, 0});
    const Array bits = Array::constant({70}, catena::plugin::dtype_of<bool>(), 1);
    CHECK(product(bits, {}) == V{1});
    CHECK(product(Array::from<std::int64_t>({3, 1LL << 40}, {2}), {}) == V{3LL << 40});
    CHECK(product(Array::from<std::int32_t>({}, {0}), {}) == V{1});
}

TEST_CASE("running sums and products of integers and bool are int64") {
    const auto running = [](const char* name, const Array& x, std::int64_t axis,
                            bool reverse = false) {
        const Array y =
            world().forward(name, {x}, {set("axis", Ints(&axis, 1)), set("reverse", reverse)})[0];
        REQUIRE(catena::plugin::same(y.dtype(), catena::plugin::dtype_of<std::int64_t>()));
        return y.values<std::int64_t>();
    };
    using V = std::vector<std::int64_t>;
    const Array x = Array::from<std::int32_t>({2000000000, 2000000000, -1, 100000}, {2, 2});
    CHECK(running("catena.cumsum", x, 1) == V{2000000000, 4000000000, -1, 99999});
    CHECK(running("catena.cumsum", x, 0) == V{2000000000, 2000000000, 1999999999, 2000100000});
    CHECK(running("catena.cumprod", x, 1) == V{2000000000, 4000000000000000000, -1, -100000});
    CHECK(running("catena.cumprod", x, 0, true) == V{-2000000000, 200000000000000, -1, 100000});
    for (const std::int64_t n : {0, 1, 9, 100, 300000}) {  // in vectors and in chunks
        for (const bool reverse : {false, true}) {
            V expected(static_cast<std::size_t>(n));
            for (std::int64_t i = 0; i < n; ++i)
                expected[static_cast<std::size_t>(reverse ? n - 1 - i : i)] = i + 1;
            const Array bits = Array::constant({n}, catena::plugin::dtype_of<bool>(), 1);
            CHECK(running("catena.cumsum", bits, 0, reverse) == expected);
            for (std::int64_t& each : expected) each *= 200;
            const Array bytes = Array::constant({n}, catena::plugin::dtype_of<std::uint8_t>(), 200);
            CHECK(running("catena.cumsum", bytes, 0, reverse) == expected);
            CHECK(running("catena.cumprod", bits, 0, reverse) == V(static_cast<std::size_t>(n), 1));
        }
    }
}

TEST_CASE("running sums and products") {
    for (const Dims& shape :
         {Dims{5}, Dims{3, 7}, Dims{17, 3}, Dims{11, 2, 130}, Dims{2, 300}, Dims{1, 1}}) {
        const Array x = Array::random<double>(shape, 3, 0.5, 1.5);
        for (std::size_t d = 0; d < shape.size(); ++d) {
            std::int64_t inner = 1;
            for (std::size_t e = d + 1; e < shape.size(); ++e) inner *= shape[e];
            for (const bool product : {false, true})
                for (const bool exclusive : {false, true})
                    for (const bool reverse : {false, true}) {
                        const Dims axis = {static_cast<std::int64_t>(d)};
                        const Array y =
                            world().forward(product ? "catena.cumprod" : "catena.cumsum", {x},
                                            {set("axis", Ints(axis)), set("exclusive", exclusive),
                                             set("reverse", reverse)},
                                            {.threads = 2})[0];
                        for (std::int64_t i = 0; i < x.size(); ++i) {
                            const std::int64_t place = i / inner % shape[d];
                            double e = product ? 1 : 0;
                            for (std::int64_t k = 0; k < shape[d]; ++k) {
                                if (reverse ? k < place : k > place) continue;
                                if (exclusive && k == place) continue;
                                const double v = x.at(i + (k - place) * inner);
                                e = product ? e * v : e + v;
                            }
                            CHECK(y.at(i) == doctest::Approx(e).epsilon(1e-12));
                        }
                    }
        }
    }
    // Running sums of float32 are summed in float64.
    Array ones({1000000}, dtype_of<float>());
    for (std::int64_t i = 0; i < ones.size(); ++i) ones.set(i, 0.1);
    CHECK(along("cumsum", ones).at(999999) ==
          doctest::Approx(100000 * (double(0.1f) * 10)).epsilon(1e-7));
    CHECK(along("cumsum", f64({}, {0})).shape() == Dims{0});
    CHECK(along("cumsum", f64({3}, {})).shape() == Dims{1});
    CHECK(along("cumprod", f64({inf, 0, 1}, {3})).at(0) == inf);
}

TEST_CASE("running sums of long lines: the same bits for any number of threads") {
    constexpr std::int64_t n = 3 * (1 << 16) + 5;
    const Array x = Array::random<double>({2, n}, 3, -1, 1);
    for (const bool exclusive : {false, true})
        for (const bool reverse : {false, true}) {
            const std::int64_t axis = 1;
            const auto sums = [&](int threads) {
                return world().forward("catena.cumsum", {x},
                                       {set("axis", Ints(&axis, 1)), set("exclusive", exclusive),
                                        set("reverse", reverse)},
                                       {.threads = threads})[0];
            };
            const Array y = sums(1);
            for (const int threads : {2, 3, 7}) CHECK(values_of(sums(threads)) == values_of(y));
            int wrong = 0;
            for (std::int64_t o = 0; o < 2; ++o) {
                long double e = 0;
                for (std::int64_t k = 0; k < n; ++k) {
                    const std::int64_t i = o * n + (reverse ? n - 1 - k : k);
                    const long double before = e;
                    e += x.at(i);
                    wrong += std::abs(y.at(i) - double(exclusive ? before : e)) > 1e-9;
                }
            }
            CHECK(wrong == 0);
        }
}

// The sums of parts of a line may overflow where the running sum does not.
TEST_CASE("running sums of long lines: large, infinite and NaN") {
    constexpr std::int64_t n = 3 * (1 << 16) + 5;
    const auto check_sums = [](const Array& x, bool reverse, bool wide) {
        const std::int64_t axis = 0, length = x.size();
        const auto sums = [&](int threads) {
            return world().forward("catena.cumsum", {x},
                                   {set("axis", Ints(&axis, 1)), set("reverse", reverse)},
                                   {.threads = threads})[0];
        };
        const Array y = sums(1), z = sums(3);
        std::int64_t wrong = 0;
        double e = 0;
        for (std::int64_t k = 0; k < length; ++k) {
            const std::int64_t i = reverse ? length - 1 - k : k;
            e += x.at(i);
            const double sum = wide ? e : static_cast<double>(static_cast<float>(e));
            const auto is = [&](double v) { return std::isnan(sum) ? std::isnan(v) : v == sum; };
            wrong += !is(y.at(i)) || !is(z.at(i));
        }
        CHECK(wrong == 0);
    };
    for (const bool reverse : {false, true})
        for (const bool wide : {false, true}) {
            const auto dtype = wide ? dtype_of<double>() : dtype_of<float>();
            const double large = wide ? 1e308 : 3e38;
            // The signs of four elements in a row.
            for (const auto& signs : {std::array{1, -1, 1, -1}, {-1, 1, 1, -1}, {-1, 1, 1, 1}}) {
                Array x({n}, dtype);
                for (std::int64_t i = 0; i < n; ++i)
                    x.set(i, large * signs[static_cast<std::size_t>(i % 4)]);
                check_sums(x, reverse, wide);
            }
            for (const double odd : {inf, -inf, not_a_number})
                for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
                    Array x({n}, dtype);
                    for (std::int64_t i = 0; i < n; ++i) x.set(i, static_cast<double>(i % 3 - 1));
                    x.set(at, odd);
                    check_sums(x, reverse, wide);
                    x.set(at / 2, -odd);
                    check_sums(x, reverse, wide);
                }
        }
}

TEST_CASE("topk") {
    const auto topk = [](const Array& x, std::int64_t k, std::int64_t axis = -1,
                         bool largest = true) {
        return world().forward("catena.topk", {x},
                               {set("k", k), set("axis", axis), set("largest", largest)},
                               {.threads = 2});
    };
    const Array x = f64({3, not_a_number, 1, -0.0, 3, -inf, 0.0, not_a_number}, {8});
    CHECK(values_of(topk(x, 8)[1]) == std::vector<double>{1, 7, 0, 4, 2, 3, 6, 5});
    CHECK(values_of(topk(x, 8, 0, false)[1]) == std::vector<double>{5, 3, 6, 2, 0, 4, 1, 7});
    CHECK(values_of(topk(x, 3, 0, false)[0]) == std::vector<double>{-inf, -0.0, 0.0});
    CHECK(std::signbit(topk(x, 3, 0, false)[0].at(1)));
    CHECK(topk(x, 0)[0].shape() == Dims{0});
    for (const Dims& shape : {Dims{1000}, Dims{37, 20}, Dims{20, 37, 3}, Dims{2, 1}, Dims{0, 3}}) {
        const Array a = Array::random<float>(shape, 3, -9, 9);
        const Array whole =
            world().forward("catena.cast", {a}, {set("dtype", dtype_of<std::int32_t>())})[0];
        for (const Array& values : {a, whole})
            for (std::size_t d = 0; d < shape.size(); ++d)
                for (const bool largest : {false, true}) {
                    const std::int64_t n = shape[d];
                    const std::int64_t k = (n + 1) / 2;
                    const auto y = topk(values, k, static_cast<std::int64_t>(d), largest);
                    std::int64_t inner = 1;
                    for (std::size_t e = d + 1; e < shape.size(); ++e) inner *= shape[e];
                    const std::int64_t lines = n == 0 ? 0 : a.size() / n;
                    for (std::int64_t line = 0; line < lines; ++line) {
                        const std::int64_t outer = line / inner;
                        const auto at = [&](std::int64_t i, std::int64_t length) {
                            return (outer * length + i) * inner + line % inner;
                        };
                        std::vector<std::int64_t> order(static_cast<std::size_t>(n));
                        std::iota(order.begin(), order.end(), 0);
                        std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) {
                            const double u = values.at(at(i, n)), v = values.at(at(j, n));
                            return largest ? u > v : u < v;
                        });
                        for (std::int64_t i = 0; i < k; ++i) {
                            REQUIRE(y[1].at(at(i, k)) == order[static_cast<std::size_t>(i)]);
                            REQUIRE(y[0].at(at(i, k)) ==
                                    values.at(at(order[static_cast<std::size_t>(i)], n)));
                        }
                    }
                }
    }
}

TEST_CASE("wrong calls") {
    const Array x = f64({1, 2, 3, 4}, {2, 2});
    const Dims twice = {1, -1};
    const Dims two = {0, 1};
    const Dims far = {2};
    for (const char* name : {"max", "min", "mean", "var", "logsumexp", "prod", "any", "all"}) {
        const std::string f = std::string("[catena.") + name + "] ";
        CHECK_THROWS_WITH(along(name, x, twice),
                          (f + "axis: expected each axis once, got (1, -1)").c_str());
        CHECK_THROWS_WITH(along(name, x, far), (f + "axis: expected from -2 to 1, got 2").c_str());
    }
    for (const char* name : {"argmax", "argmin", "cumsum", "cumprod"})
        CHECK_THROWS_WITH(along(name, x, two), (std::string("[catena.") + name +
                                                "] axis: expected at most one axis, got (0, 1)")
                                                   .c_str());
    CHECK_THROWS_WITH(along("cumsum", x, far),
                      "[catena.cumsum] axis: expected from -2 to 1, got 2");
    CHECK_THROWS_WITH(world().forward("catena.topk", {x}, {set("k", std::int64_t{3})}),
                      "[catena.topk] k: expected 0 to 2, got 3");
    CHECK_THROWS_WITH(world().forward("catena.topk", {x}, {set("k", std::int64_t{-1})}),
                      "[catena.topk] k: expected 0 to 2, got -1");
}
