// Tests math.catena: compares all functions with the C library and with finite differences.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>
#include <functional>
#include <limits>

using namespace catena::testing;

namespace {

World& world() {
    static World world({MATH_PLUGIN, ARRAY_PLUGIN});
    return world;
}

using F = std::function<double(double)>;
using F2 = std::function<double(double, double)>;

void check_unary(const std::string& name, const F& f, double low, double high,
                 const Attrs& attrs = {}) {
    CAPTURE(name);
    for (const Dims& shape : {Dims{}, Dims{1}, Dims{0, 3}, Dims{3, 17}, Dims{5, 1, 7}}) {
        const Array x = Array::random<double>(shape, 3, low, high);
        CHECK(check(world(), {name, {x}, attrs}) == "");
        const Array y = world().forward(name, {x}, attrs)[0];
        for (std::int64_t i = 0; i < x.size(); ++i)
            CHECK(y.at(i) == doctest::Approx(f(x.at(i))).epsilon(1e-12));
    }
}

void check_binary(const std::string& name, const F2& f, double low, double high) {
    CAPTURE(name);
    struct Pair {
        Dims a, b;
    };
    for (const Pair& s : {Pair{{}, {}}, Pair{{4, 5}, {4, 5}}, Pair{{4, 5}, {5}},
                          Pair{{4, 5}, {4, 1}}, Pair{{3}, {}}, Pair{{1}, {2, 3}},
                          Pair{{2, 1, 3}, {4, 1}}, Pair{{0, 3}, {3}}, Pair{{1, 3}, {0, 3}}}) {
        const Array a = Array::random<double>(s.a, 5, low, high);
        const Array b = Array::random<double>(s.b, 6, low, high);
        CHECK(check(world(), {name, {a, b}}) == "");
    }
    const Array a = Array::random<double>({6, 7}, 7, low, high);
    const Array b = Array::random<double>({6, 7}, 8, low, high);
    const Array y = world().forward(name, {a, b})[0];
    for (std::int64_t i = 0; i < a.size(); ++i)
        CHECK(y.at(i) == doctest::Approx(f(a.at(i), b.at(i))).epsilon(1e-12));
}

}  // namespace

TEST_CASE("arithmetic of two arrays") {
    check_binary(
        "catena.add", [](double a, double b) { return a + b; }, -2, 2);
    check_binary(
        "catena.sub", [](double a, double b) { return a - b; }, -2, 2);
    check_binary(
        "catena.mul", [](double a, double b) { return a * b; }, -2, 2);
    check_binary(
        "catena.div", [](double a, double b) { return a / b; }, 0.5, 2);
    check_binary(
        "catena.pow", [](double a, double b) { return std::pow(a, b); }, 0.5, 2);
    check_binary(
        "catena.maximum", [](double a, double b) { return std::fmax(a, b); }, -2, 2);
    check_binary(
        "catena.minimum", [](double a, double b) { return std::fmin(a, b); }, -2, 2);
}

TEST_CASE("comparisons") {
    check_binary(
        "catena.greater", [](double a, double b) { return a > b ? 1 : 0; }, -2, 2);
    check_binary(
        "catena.greater_equal", [](double a, double b) { return a >= b ? 1 : 0; }, -2, 2);
    check_binary(
        "catena.equal", [](double a, double b) { return a == b ? 1 : 0; }, -2, 2);
}

TEST_CASE("comparisons that return bool") {
    const auto test = [](const std::string& name, const auto& compare) {
        check_binary(
            name, [&](double a, double b) { return compare(a, b) ? 1 : 0; }, -2, 2);
        const double nan = std::nan("");
        const std::vector<double> a = {1, 2, 3, nan, nan}, b = {2, 2, 2, 2, nan};
        const auto check_values = [&](const Array& x, const Array& y, std::int64_t n) {
            const Array z = world().forward(name, {x, y})[0];
            CHECK(catena::plugin::same(z.dtype(), catena::plugin::dtype_of<bool>()));
            for (std::int64_t i = 0; i < n; ++i)
                CHECK(z.at(i) == (compare(x.at(i), y.at(i)) ? 1 : 0));
        };
        check_values(Array::from<double>(a, {5}), Array::from<double>(b, {5}), 5);
        check_values(Array::from<std::int32_t>({1, 2, 3}, {3}),
                     Array::from<std::int32_t>({2, 2, 2}, {3}), 3);
        check_values(Array::constant({2}, catena::plugin::dtype_of<bool>(), 1),
                     Array::constant({2}, catena::plugin::dtype_of<bool>(), 0), 2);
    };
    test("catena.is_greater", std::greater<>());
    test("catena.is_greater_equal", std::greater_equal<>());
    test("catena.is_equal", std::equal_to<>());
    test("catena.is_not_equal", std::not_equal_to<>());
    const Array truth = Array::constant({70}, catena::plugin::dtype_of<bool>(), 1);
    CHECK(world().forward("catena.logical_not", {truth})[0].at(69) == 0);
}

TEST_CASE("where") {
    const Array c = Array::from<double>({1, 0, 0, 2, 0, 1}, {2, 3});
    const Array a = Array::random<double>({2, 3}, 1);
    CHECK(check(world(), {"catena.where", {c, a, Array::random<double>({3}, 2)}}) == "");
    CHECK(check(world(), {"catena.where", {c, a, Array::random<double>({}, 2)}}) == "");
    // bool conditions, also broadcast, in more than one block.
    const Array zero = Array::from<double>({0}, {1});
    const Array truth = world().forward("catena.is_not_equal", {c, zero})[0];
    CHECK(check(world(), {"catena.where", {truth, a, Array::random<double>({3}, 2)}}) == "");
    CHECK(check(world(), {"catena.where", {truth, Array::random<double>({4, 2, 3}, 3), a}}) == "");
    const Array x = Array::random<double>({9001}, 4);
    const Array chosen = world().forward(
        "catena.where", {world().forward("catena.is_greater", {x, zero})[0], x, zero})[0];
    for (std::int64_t i = 0; i < x.size(); ++i) CHECK(chosen.at(i) == std::fmax(x.at(i), 0));
}

TEST_CASE("functions of one array") {
    check_unary(
        "catena.neg", [](double x) { return -x; }, -2, 2);
    check_unary(
        "catena.exp", [](double x) { return std::exp(x); }, -2, 2);
    check_unary(
        "catena.log", [](double x) { return std::log(x); }, 0.5, 3);
    check_unary(
        "catena.sqrt", [](double x) { return std::sqrt(x); }, 0.5, 3);
    check_unary(
        "catena.abs", [](double x) { return std::fabs(x); }, -2, 2);
    check_unary(
        "catena.erf", [](double x) { return std::erf(x); }, -3, 3);
    check_unary(
        "catena.sin", [](double x) { return std::sin(x); }, -20, 20);
    check_unary(
        "catena.cos", [](double x) { return std::cos(x); }, -20, 20);
    check_unary(
        "catena.tan", [](double x) { return std::tan(x); }, -1.4, 1.4);
    check_unary(
        "catena.sinh", [](double x) { return std::sinh(x); }, -3, 3);
    check_unary(
        "catena.cosh", [](double x) { return std::cosh(x); }, -3, 3);
    check_unary(
        "catena.arctanh", [](double x) { return std::atanh(x); }, -0.9, 0.9);
    check_unary(
        "catena.expm1", [](double x) { return std::expm1(x); }, -3, 3);
    check_unary(
        "catena.log1p", [](double x) { return std::log1p(x); }, -0.8, 3);
    check_unary(
        "catena.log2", [](double x) { return std::log2(x); }, 0.5, 3);
    check_unary(
        "catena.log10", [](double x) { return std::log10(x); }, 0.5, 3);
    check_unary(
        "catena.rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.5, 3);
    check_unary(
        "catena.fix", [](double x) { return std::trunc(x); }, -20, 20);
    check_unary(
        "catena.square", [](double x) { return x * x; }, -2, 2);
    check_unary(
        "catena.floor", [](double x) { return std::floor(x); }, -20, 20);
    check_unary(
        "catena.ceil", [](double x) { return std::ceil(x); }, -20, 20);
    check_unary(
        "catena.sign", [](double x) { return x > 0 ? 1 : -1; }, -2, 2);
    check_unary("catena.clip", [](double x) { return std::fmin(std::fmax(x, -9), 8.5); }, -9, 8.5,
                {set("x_min", -9.0), set("x_max", 8.5)});
    const Attrs value = {set("value", 2.5)};
    check_unary(
        "catena.add_constant", [](double x) { return x + 2.5; }, -2, 2, value);
    check_unary(
        "catena.sub_from_constant", [](double x) { return 2.5 - x; }, -2, 2, value);
    check_unary(
        "catena.mul_constant", [](double x) { return x * 2.5; }, -2, 2, value);
    check_unary(
        "catena.div_from_constant", [](double x) { return 2.5 / x; }, 0.5, 2, value);
    check_unary(
        "catena.pow_var_const", [](double x) { return std::pow(x, 2.5); }, 0.5, 2, value);
    check_unary(
        "catena.pow_const_var", [](double x) { return std::pow(2.5, x); }, -2, 2, value);
}

namespace {

bool alike(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) < 1e-6 * std::abs(b);
}
Array row(const std::vector<double>& values) {
    return Array::from<double>(values, {static_cast<std::int64_t>(values.size())});
}
// Checks the gradient of input i, by the kernel and composed, in float64 and float32.
void check_gradient(const std::string& name, const std::vector<Array>& x, const Attrs& attrs,
                    std::size_t i, const std::vector<double>& expected) {
    for (const catena_dtype dtype : {dtype_of<double>(), dtype_of<float>()}) {
        std::vector<Array> given;
        for (const Array& a : x) given.push_back(a.to(dtype));
        const auto y = world().forward(name, given, attrs);
        const Array gy = Array::constant(y[0].shape(), dtype, 1);
        const Array kernel = world().backward(name, given, y, {gy}, attrs)[i];
        const Array composed = world().gradient(name, given, y, {gy}, attrs)[i];
        for (std::size_t k = 0; k < expected.size(); ++k) {
            CAPTURE(k);
            const auto at = static_cast<std::int64_t>(k);
            CHECK(alike(kernel.at(at), expected[k]));
            // A composed gradient is missing if the function is constant everywhere.
            CHECK(alike(composed ? composed.at(at) : 0.0, expected[k]));
        }
    }
}
// Checks the derivative of the gradient of input `of` with respect to input `by`.
void check_second(const std::string& name, const std::vector<Array>& x, const Attrs& attrs,
                  std::size_t of, std::size_t by, const std::vector<double>& expected) {
    const auto y = world().forward(name, x, attrs);
    const Array gy = Array::constant(y[0].shape(), y[0].dtype(), 1);
    std::vector<Array> ggx(x.size());
    ggx[of] = gy;
    const Array got = world().second(name, x, y, {gy}, ggx, attrs)[by];
    for (std::size_t k = 0; k < expected.size(); ++k) {
        CAPTURE(k);
        CHECK(alike(got.at(static_cast<std::int64_t>(k)), expected[k]));
    }
}

}  // namespace

TEST_CASE("powers: gradients at 0 and of negative numbers") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::nan("");
    const std::vector<Array> x = {row({0, 0, 0, 0, 0, -0.0, -2, -2, -2, 4, 4}),
                                  row({0, 1, 2, 0.5, -1, 0, 0, 3, -1, 0, 0.5})};
    const double log_4 = 1.3862943611198906;
    check_gradient("catena.pow", x, {}, 0, {0, 1, 0, inf, -inf, 0, 0, 12, -0.25, 0, 0.25});
    check_gradient("catena.pow", x, {}, 1, {0, 0, 0, 0, -inf, 0, nan, nan, nan, log_4, 2 * log_4});
    const std::vector<Array> flat = {row({0, 0, 0, 0, 4}), row({0, 1, 2, 3, 0})};
    check_second("catena.pow", flat, {}, 0, 0, {0, 0, 2, 0, 0});
    check_second("catena.pow", flat, {}, 0, 1, {0, 1, 0, 0, 0.25});
    check_second("catena.pow", flat, {}, 1, 0, {0, 0, 0, 0, 0.25});
    check_second("catena.pow", flat, {}, 1, 1, {0, 0, 0, 0, log_4 * log_4});
}

TEST_CASE("limits, signs and rounding: at the limits, infinity and NaN") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::nan("");
    const Array x = row({-inf, -2, -1, 0, 1.5, 2, 3, inf, nan});
    const Attrs limits = {set("x_min", -1.0), set("x_max", 2.0)};
    const auto values = [&](const char* name, const Attrs& attrs, const std::vector<double>& y) {
        CAPTURE(name);
        for (const catena_dtype dtype : {dtype_of<double>(), dtype_of<float>()})
            CHECK(compare(world().forward(name, {x.to(dtype)}, attrs)[0], row(y).to(dtype),
                          {1e-6, 0}) == "");
    };
    values("catena.clip", limits, {-1, -1, -1, 0, 1.5, 2, 2, 2, nan});
    check_gradient("catena.clip", {x}, limits, 0, {0, 0, 1, 1, 1, 1, 0, 0, nan});
    values("catena.sign", {}, {-1, -1, -1, 0, 1, 1, 1, 1, nan});
    values("catena.floor", {}, {-inf, -2, -1, 0, 1, 2, 3, inf, nan});
    values("catena.ceil", {}, {-inf, -2, -1, 0, 2, 2, 3, inf, nan});
    values("catena.square", {}, {inf, 4, 1, 0, 2.25, 4, 9, inf, nan});
    values("catena.sin", {},
           {nan, std::sin(-2), std::sin(-1), 0, std::sin(1.5), std::sin(2), std::sin(3), nan, nan});
    const Array whole = Array::from<std::int32_t>({-5, 0, 7}, {3});
    const Attrs whole_limits = {set("x_min", -1.0), set("x_max", 2.0)};
    CHECK(world().forward("catena.clip", {whole}, whole_limits)[0].values<std::int32_t>() ==
          std::vector<std::int32_t>{-1, 0, 2});
    CHECK(world().forward("catena.sign", {whole})[0].values<std::int32_t>() ==
          std::vector<std::int32_t>{-1, 0, 1});
    CHECK(world().forward("catena.square", {whole})[0].values<std::int32_t>() ==
          std::vector<std::int32_t>{25, 0, 49});
}

TEST_CASE("erf, sin and cos of large numbers") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::nan("");
    const Array x = row({-inf, -30, -6, 30, 1e30, inf, nan});
    CHECK(compare(world().forward("catena.erf", {x})[0], row({-1, -1, -1, 1, 1, 1, nan}),
                  {1e-15, 0}) == "");
    check_gradient("catena.erf", {x}, {}, 0,
                   {0, 0, 1.12837916709551257 * std::exp(-36), 0, 0, 0, nan});
    const Array large = row({1e6, -1e22, 1e300});
    const Array sine = world().forward("catena.sin", {large})[0];
    const Array cosine = world().forward("catena.cos", {large})[0];
    for (std::int64_t i = 0; i < 3; ++i) {
        CHECK(sine.at(i) == doctest::Approx(std::sin(large.at(i))).epsilon(1e-12));
        CHECK(cosine.at(i) == doctest::Approx(std::cos(large.at(i))).epsilon(1e-12));
    }
}

namespace {

struct Elementary {
    const char* name;
    long double (*exact)(long double);
    double low, high;  // where half precision neither overflows nor has a pole
};
const std::vector<Elementary>& elementary() {
    static const std::vector<Elementary> all = {
        {"catena.expm1", [](long double x) { return std::expm1(x); }, -11, 11},
        {"catena.log1p", [](long double x) { return std::log1p(x); }, -0.99, 60000},
        {"catena.log2", [](long double x) { return std::log2(x); }, 0.001, 60000},
        {"catena.log10", [](long double x) { return std::log10(x); }, 0.001, 60000},
        {"catena.rsqrt", [](long double x) { return 1 / std::sqrt(x); }, 0.001, 60000},
        {"catena.tan", [](long double x) { return std::tan(x); }, -1.5, 1.5},
        {"catena.sinh", [](long double x) { return std::sinh(x); }, -11, 11},
        {"catena.cosh", [](long double x) { return std::cosh(x); }, -11, 11},
        {"catena.arctanh", [](long double x) { return std::atanh(x); }, -0.99, 0.99}};
    return all;
}
// The largest error, in units of the last of `digits` binary digits.
double worst_error(const Elementary& f, const Array& x, int digits) {
    const Array y = world().forward(f.name, {x})[0];
    double worst = 0;
    for (std::int64_t i = 0; i < x.size(); ++i) {
        const long double exact = f.exact(x.at(i));
        const long double unit = std::ldexp(1.0L, std::ilogb(exact) + 1 - digits);
        worst = std::max(worst, static_cast<double>(std::fabs(y.at(i) - exact) / unit));
    }
    return worst;
}

}  // namespace

TEST_CASE("elementary functions are exact to the last digits, in every floating dtype") {
    for (const Elementary& f : elementary()) {
        CAPTURE(f.name);
        const Array wide = Array::random<double>({4001}, 1, f.low, f.high);
        const double near = std::min(1.0, f.high);
        const Array small = Array::random<double>({4001}, 2, f.low < 0 ? -near / 2 : f.low, near);
        for (const Array& x : {wide, small}) {
            CHECK(worst_error(f, x, 53) < 3);
            CHECK(worst_error(f, x.to(dtype_of<float>()), 24) < 3);
            // Computed in float32 and rounded once.
            using namespace catena::plugin;
            CHECK(worst_error(f, x.to(dtype_of<Float16>()), 11) < 0.51);
            CHECK(worst_error(f, x.to(dtype_of<BFloat16>()), 8) < 0.51);
        }
    }
}

TEST_CASE("elementary functions: tiny and huge numbers, infinity, NaN and the ends of domains") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::nan("");
    struct Case {
        const char* name;
        std::vector<double> x, y, gx, ggx;  // ggx: the second derivative, in float64
    };
    const double e20 = 2.0611536224385578e-9;  // e^-20
    const double ln_2 = 0.69314718055994531, ln_10 = 2.3025850929940457;
    const std::vector<Case> cases = {
        {"catena.expm1",
         {-inf, -20, -1e-10, -0.0, 1e-10, inf, nan},
         {-1, e20 - 1, -1e-10, -0.0, 1e-10, inf, nan},
         {0, e20, 1, 1, 1, inf, nan},
         {0, e20, 1, 1, 1, inf, nan}},
        {"catena.log1p",
         {-2, -1, -1e-10, -0.0, 1e-10, 1e30, inf, nan},
         {nan, -inf, -1e-10, -0.0, 1e-10, 30 * ln_10, inf, nan},
         {-1, inf, 1, 1, 1, 1e-30, 0, nan},
         {-1, -inf, -1, -1, -1, -1e-60, 0, nan}},
        {"catena.log2",
         {-1, 0, 0.125, 1, 1024, 0x1p120, inf, nan},
         {nan, -inf, -3, 0, 10, 120, inf, nan},
         {-1 / ln_2, inf, 8 / ln_2, 1 / ln_2, 1 / ln_2 / 1024, 0x1p-120 / ln_2, 0, nan},
         {-1 / ln_2, -inf, -64 / ln_2, -1 / ln_2, -0x1p-20 / ln_2, -0x1p-240 / ln_2, 0, nan}},
        {"catena.log10",
         {-1, 0, 0.001, 1, 1000, 1e30, inf, nan},
         {nan, -inf, -3, 0, 3, 30, inf, nan},
         {-1 / ln_10, inf, 1000 / ln_10, 1 / ln_10, 1e-3 / ln_10, 1e-30 / ln_10, 0, nan},
         {-1 / ln_10, -inf, -1e6 / ln_10, -1 / ln_10, -1e-6 / ln_10, -1e-60 / ln_10, 0, nan}},
        {"catena.rsqrt",
         {-1, 0, -0.0, 0.25, 1e-20, 4, inf, nan},
         {nan, inf, -inf, 2, 1e10, 0.5, 0, nan},
         {nan, -inf, inf, -4, -0.5e30, -0.0625, 0, nan},
         {nan, inf, -inf, 24, 0.75e50, 0.0234375, 0, nan}},
        {"catena.tan",
         {-inf, -0.0, 1e-10, 0.78539816339744831, inf, nan},
         {nan, -0.0, 1e-10, 1, nan, nan},
         {nan, 1, 1, 2, nan, nan},
         {nan, 0, 2e-10, 4, nan, nan}},
        {"catena.sinh",
         {-inf, -89, -1e-10, -0.0, 1e-10, 89, inf, nan},
         {-inf, -2.2448064095871728e38, -1e-10, -0.0, 1e-10, 2.2448064095871728e38, inf, nan},
         {inf, 2.2448064095871728e38, 1, 1, 1, 2.2448064095871728e38, inf, nan},
         {-inf, -2.2448064095871728e38, -1e-10, 0, 1e-10, 2.2448064095871728e38, inf, nan}},
        {"catena.cosh",
         {-inf, -89, -1e-10, 0, 1e-10, 89, inf, nan},
         {inf, 2.2448064095871728e38, 1, 1, 1, 2.2448064095871728e38, inf, nan},
         {-inf, -2.2448064095871728e38, -1e-10, 0, 1e-10, 2.2448064095871728e38, inf, nan},
         {inf, 2.2448064095871728e38, 1, 1, 1, 2.2448064095871728e38, inf, nan}},
        {"catena.arctanh",
         {-2, -1, -1e-8, -0.0, 0.5, 1, inf, nan},
         {nan, -inf, -1e-8, -0.0, 0.54930614433405485, inf, nan, nan},
         {-1.0 / 3, inf, 1, 1, 4.0 / 3, inf, -0.0, nan},
         {-4.0 / 9, -inf, -2e-8, 0, 16.0 / 9, inf, 0, nan}}};
    for (const Case& c : cases) {
        CAPTURE(c.name);
        for (const catena_dtype dtype : {dtype_of<double>(), dtype_of<float>()}) {
            const Array y = world().forward(c.name, {row(c.x).to(dtype)})[0];
            for (std::size_t k = 0; k < c.y.size(); ++k) {
                CAPTURE(k);
                const double got = y.at(static_cast<std::int64_t>(k));
                CHECK(alike(got, c.y[k]));
                if (c.y[k] == 0) CHECK(std::signbit(got) == std::signbit(c.y[k]));
            }
        }
        check_gradient(c.name, {row(c.x)}, {}, 0, c.gx);
        check_second(c.name, {row(c.x)}, {}, 0, 0, c.ggx);
    }
    // The largest arguments with finite results in float32 and float64.
    for (const char* name : {"catena.sinh", "catena.cosh"}) {
        const Array single = Array::from<float>({89.415985f, 89.416f, -89.415985f}, {3});
        const Array y = world().forward(name, {single})[0];
        CHECK(std::isfinite(y.at(0)));
        CHECK(y.at(1) == inf);
        CHECK(std::isfinite(y.at(2)));
        const Array wide = world().forward(name, {row({710.4758600739439, 710.476})})[0];
        CHECK(std::isfinite(wide.at(0)));
        CHECK(wide.at(1) == inf);
    }
}

TEST_CASE("remainders are exact") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::nan("");
    const std::vector<Array> x = {row({1e8, 5, 6, -7, 7, -0.0, 1e30, 5, inf, nan, 16777217, 1}),
                                  row({3, inf, 0.1, 3, -3, 3, 0.1, 0, 3, 1, 2, nan})};
    // 6 = 59 times the double 0.1, plus a rest; values of Python's math.fmod.
    const std::vector<double> expected = {
        1, 5, 0.09999999999999967, -1, 1, -0.0, 0.07495648791101958, nan, nan, nan, 1, nan};
    const Array y = world().forward("catena.fmod", x)[0];
    for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        const double got = y.at(static_cast<std::int64_t>(i));
        CHECK((got == expected[i] || (std::isnan(got) && std::isnan(expected[i]))));
        if (got == 0) CHECK(std::signbit(got) == std::signbit(expected[i]));
    }
    const Array single = world().forward(
        "catena.fmod", {Array::from<float>({1e8f, 6}, {2}), Array::from<float>({3, 0.1f}, {2})})[0];
    CHECK(single.at(0) == 1);
    CHECK(single.at(1) == std::fmod(6.0f, 0.1f));
    using namespace catena::plugin;
    const Array half = world().forward("catena.fmod", {row({2047, 1.5}).to(dtype_of<Float16>()),
                                                       row({10, 0.25}).to(dtype_of<Float16>())})[0];
    CHECK(half.at(0) == 7);  // 2047 / 10 is 204.75 in float16
    CHECK(half.at(1) == 0);

    check_binary(
        "catena.fmod", [](double a, double b) { return std::fmod(a, b); }, 0.6, 0.9);
    const std::vector<Array> where = {row({7, -7, 7, -7, 5, 1e8, 2.5, 6}),
                                      row({2, 2, -2, -2, inf, 3, 2.5, 0.1})};
    check_gradient("catena.fmod", where, {}, 0, {1, 1, 1, 1, 1, 1, 1, 1});
    check_second("catena.fmod", where, {}, 1, 1, {0, 0, 0, 0, 0, 0, 0, 0});
    const std::vector<Array> first = {row({7, -7, 7, -7, 5, 1e6, 2.5}),
                                      row({2, 2, -2, -2, inf, 3, 2.5})};
    check_gradient("catena.fmod", first, {}, 1, {-3, 3, 3, -3, 0, -333333, -1});
}

TEST_CASE("floor_divide: the quotient is not rounded before") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::nan("");
    // Values of numpy.floor_divide.
    const Array x0 = row({1, 6, -7, 7, -5, 5, 0, 0, 1, 1e300, inf, nan, 16777217});
    const Array x1 = row({0.1, 0.1, 2, -2, inf, inf, 3, -3, 0, 7, 2, 2, 1});
    const std::vector<double> y = {
        9, 59, -4, -4, -1, 0, 0, -0.0, inf, 1.4285714285714286e299, nan, nan, 16777217};
    const Array got = world().forward("catena.floor_divide", {x0, x1})[0];
    for (std::size_t i = 0; i < y.size(); ++i) {
        CAPTURE(i);
        const double value = got.at(static_cast<std::int64_t>(i));
        CHECK((value == y[i] || (std::isnan(value) && std::isnan(y[i]))));
        if (value == 0) CHECK(std::signbit(value) == std::signbit(y[i]));
    }
    // An odd quotient above 2^23: adding 1/2 would round it.
    const Array odd = world().forward("catena.floor_divide", {Array::from<float>({8388609}, {1}),
                                                              Array::from<float>({1}, {1})})[0];
    CHECK(odd.at(0) == 8388609);
}

TEST_CASE_TEMPLATE("floor_divide and fmod of integers", I, std::int32_t, std::int64_t) {
    const I least = std::numeric_limits<I>::min();
    const I most = std::numeric_limits<I>::max();
    const Array a = Array::from<I>({7, -7, 7, -7, most, most, least, least, 5}, {9});
    const Array b = Array::from<I>({2, 2, -2, -2, 1, -1, -1, 1, 0}, {9});
    CHECK(world().forward("catena.floor_divide", {a, b})[0].template values<I>() ==
          std::vector<I>{3, -4, -4, 3, most, I(-most), least, least, 0});
    CHECK(world().forward("catena.fmod", {a, b})[0].template values<I>() ==
          std::vector<I>{1, -1, 1, -1, 0, 0, 0, 0, 0});
    const Array exact = Array::from<I>({I(most / 3 * 3), I(most / 3 * 3 - 1)}, {2});
    CHECK(world()
              .forward("catena.floor_divide", {exact, Array::from<I>({3}, {})})[0]
              .template values<I>() == std::vector<I>{most / 3, I(most / 3 - 1)});
}

TEST_CASE("powers with a number: gradients at 0 and of negative numbers") {
    const double inf = std::numeric_limits<double>::infinity();
    const double nan = std::nan("");
    const Array base = row({0, -0.0, -2, 4});
    struct Exponent {
        double value;
        std::vector<double> first, second;
    };
    for (const Exponent& e :
         {Exponent{0, {0, 0, 0, 0}, {0, 0, 0, 0}}, Exponent{1, {1, 1, 1, 1}, {0, 0, 0, 0}},
          Exponent{2, {0, 0, -4, 8}, {2, 2, 2, 2}}, Exponent{3, {0, 0, 12, 48}, {0, 0, -12, 24}},
          Exponent{-1, {-inf, -inf, -0.25, -0.0625}, {inf, -inf, -0.25, 0.03125}},
          Exponent{0.5, {inf, inf, nan, 0.25}, {-inf, -inf, nan, -0.03125}}}) {
        CAPTURE(e.value);
        check_gradient("catena.pow_var_const", {base}, {set("value", e.value)}, 0, e.first);
        check_second("catena.pow_var_const", {base}, {set("value", e.value)}, 0, 0, e.second);
    }
    const Array x = row({2, 0.5, 0, -1});
    const double log_4 = 1.3862943611198906;
    check_gradient("catena.pow_const_var", {x}, {set("value", 0.0)}, 0, {0, 0, 0, -inf});
    check_second("catena.pow_const_var", {x}, {set("value", 0.0)}, 0, 0, {0, 0, 0, inf});
    check_gradient("catena.pow_const_var", {x}, {set("value", -2.0)}, 0, {nan, nan, nan, nan});
    check_gradient("catena.pow_const_var", {x}, {set("value", 4.0)}, 0,
                   {16 * log_4, 2 * log_4, log_4, log_4 / 4});
}

TEST_CASE("where a NaN decides, the gradient is NaN") {
    const double nan = std::nan("");
    const double inf = std::numeric_limits<double>::infinity();
    check_gradient("catena.abs", {row({nan, 2, -2, 0, -0.0, inf, -inf})}, {}, 0,
                   {nan, 1, -1, 0, 0, 1, -1});
    // A NaN in either input makes both gradients NaN; infinities of both signs are compared.
    const std::vector<Array> x = {row({nan, 1, nan, 1, 2, 3, -inf, inf}),
                                  row({1, nan, nan, 2, 1, 3, inf, -inf})};
    const std::vector<double> smaller = {nan, nan, nan, 1, 0, 1, 1, 0};
    const std::vector<double> larger = {nan, nan, nan, 0, 1, 1, 0, 1};
    const std::vector<double> not_smaller = {nan, nan, nan, 0, 1, 0, 0, 1};
    const std::vector<double> not_larger = {nan, nan, nan, 1, 0, 0, 1, 0};
    check_gradient("catena.maximum", x, {}, 0, larger);
    check_gradient("catena.maximum", x, {}, 1, not_larger);
    check_gradient("catena.minimum", x, {}, 0, smaller);
    check_gradient("catena.minimum", x, {}, 1, not_smaller);
}

TEST_CASE("large arrays: pieces, threads, broadcast sums") {
    const Array x = Array::random<float>({300, 1000}, 1);
    const Array row = Array::random<float>({1000}, 2);
    const Array column = Array::random<float>({300, 1}, 3);
    const Array one = Array::random<float>({}, 4);
    for (const Array& b : {x, row, column, one}) {
        const Array y = world().forward("catena.mul", {x, b})[0];
        const Array gy = Array::random<float>({300, 1000}, 5);
        const auto gx = world().backward("catena.mul", {x, b}, {y}, {gy});
        std::vector<double> sum(static_cast<std::size_t>(b.size()), 0.0);
        bool equal = true;
        for (std::int64_t i = 0; i < x.size(); ++i) {
            const std::int64_t k = b.size() == 1000  ? i % 1000
                                   : b.size() == 300 ? i / 1000
                                   : b.size() == 1   ? 0
                                                     : i;
            equal = equal && y.data<float>()[i] == x.data<float>()[i] * b.data<float>()[k];
            equal = equal && gx[0].data<float>()[i] == gy.data<float>()[i] * b.data<float>()[k];
            sum[static_cast<std::size_t>(k)] += gy.at(i) * x.at(i);
        }
        CHECK(equal);
        CHECK(compare(gx[1], Array::from<double>(sum, b.shape()), {1e-5, 1e-4}) == "");
        for (const int threads : {1, 2, 5}) {
            Options options;
            options.threads = threads;
            CHECK(world().backward("catena.mul", {x, b}, {y}, {gy}, {}, options) == gx);
        }
    }
}

TEST_CASE("shapes that do not broadcast") {
    const Array a = Array::random<float>({2, 3}, 1);
    const Array b = Array::random<float>({4}, 1);
    CHECK_THROWS_WITH(world().forward("catena.add", {a, b}),
                      "[catena.add] x1.shape: expected broadcastable to (2, 3), got (4,)");
}

TEST_CASE("sum") {
    using catena::plugin::Ints;
    struct Example {
        Dims shape, axes, result;
    };
    for (const Example& e :
         {Example{{2, 3}, {}, {}}, Example{{}, {}, {}}, Example{{2, 3}, {0}, {3}},
          Example{{2, 3}, {-1}, {2}}, Example{{2, 3, 4}, {0, 2}, {3}},
          Example{{2, 3, 4}, {1}, {2, 4}}, Example{{0, 3}, {0}, {3}}, Example{{3, 0}, {0}, {0}},
          Example{{7, 300}, {1}, {7}}}) {
        for (const bool keepdims : {false, true}) {
            const Attrs attrs = {set("axis", Ints(e.axes)), set("keepdims", keepdims)};
            const Array x = Array::random<double>(e.shape, 1);
            CHECK(check(world(), {"catena.sum", {x}, attrs}) == "");
            const Array y = world().forward("catena.sum", {x}, attrs)[0];
            if (!keepdims) CHECK(y.shape() == e.result);
            else CHECK(y.shape().size() == e.shape.size());
            double all = 0;
            double total = 0;
            for (std::int64_t i = 0; i < x.size(); ++i) all += x.at(i);
            for (std::int64_t i = 0; i < y.size(); ++i) total += y.at(i);
            CHECK(total == doctest::Approx(all));
        }
    }
    const Array x = Array::from<double>({1, 2, 3, 4, 5, 6}, {2, 3});
    const Dims zero = {0};
    const Dims one = {1};
    CHECK(world().forward("catena.sum", {x}, {set("axis", Ints(zero))})[0].values<double>() ==
          std::vector<double>{5, 7, 9});
    CHECK(world().forward("catena.sum", {x}, {set("axis", Ints(one))})[0].values<double>() ==
          std::vector<double>{6, 15});
    const Dims twice = {0, -2};
    CHECK_THROWS_WITH(world().forward("catena.sum", {x}, {set("axis", Ints(twice))}),
                      "[catena.sum] axis: expected each axis once, got (0, -2)");
    CHECK_THROWS_AS(world().forward("catena.sum", {x}, {set("axis", Ints(Dims{2}))}), Failure);
}

TEST_CASE("sums of many numbers are accurate and the same for any number of threads") {
    using catena::plugin::Ints;
    const Array x = Array::random<float>({1000, 3, 700}, 1, 0, 1);
    for (const Dims& axes : {Dims{}, Dims{0}, Dims{1}, Dims{2}, Dims{0, 2}, Dims{0, 1}}) {
        const Attrs attrs = {set("axis", Ints(axes))};
        const Array y = world().forward("catena.sum", {x}, attrs)[0];
        const Array exact = world().forward("catena.sum", {x.to(dtype_of<double>())}, attrs)[0];
        CHECK(compare(y, exact, {1e-6, 0}) == "");
        Options options;
        options.threads = 5;
        CHECK(world().forward("catena.sum", {x}, attrs, options)[0] == y);
    }
}

TEST_CASE_TEMPLATE("integers: labels and masks", I, std::int32_t, std::int64_t) {
    using catena::plugin::Ints;
    using V = std::vector<I>;
    const auto y = [](const std::string& name, const std::vector<Array>& x,
                      const Attrs& attrs = {}) {
        const Array result = world().forward("catena." + name, x, attrs)[0];
        REQUIRE(catena::plugin::same(result.dtype(), dtype_of<I>()));
        return result.values<I>();
    };
    const I least = std::numeric_limits<I>::min();
    const I most = std::numeric_limits<I>::max();
    const Array a = Array::from<I>({-2, 0, 7, most, least, 3}, {2, 3});
    const Array b = Array::from<I>({3, 0, -7}, {3});
    CHECK(y("add", {a, b}) == V{1, 0, 0, I(least + 2), least, -4});  // wraps, as in NumPy
    CHECK(y("sub", {a, b}) == V{-5, 0, 14, I(most - 3), least, 10});
    CHECK(y("mul", {a, b}) == V{-6, 0, -49, I(most - 2), 0, -21});
    CHECK(y("neg", {a}) == V{2, 0, -7, I(least + 1), least, -3});
    CHECK(y("abs", {a}) == V{2, 0, 7, most, least, 3});
    CHECK(y("maximum", {a, b}) == V{3, 0, 7, most, 0, 3});
    CHECK(y("minimum", {a, b}) == V{-2, 0, -7, 3, least, -7});
    CHECK(y("equal", {a, b}) == V{0, 1, 0, 0, 0, 0});
    CHECK(y("greater", {a, b}) == V{0, 0, 1, 1, 0, 1});
    CHECK(y("greater_equal", {a, b}) == V{0, 1, 1, 1, 0, 1});
    CHECK(y("where", {Array::from<I>({0, -1, 2}, {3}), a, b}) == V{3, 0, 7, 3, least, 3});
    // Integers that differ by 1, which are equal in double if I is int64.
    const Array large = Array::from<I>({most, I(most - 1)}, {2});
    CHECK(y("equal", {large, Array::from<I>({most}, {})}) == V{1, 0});
    CHECK(y("greater", {Array::from<I>({most}, {}), large}) == V{0, 1});

    CHECK(y("add_constant", {b}, {set("value", -1.0)}) == V{2, -1, -8});
    CHECK(y("mul_constant", {b}, {set("value", 3.0)}) == V{9, 0, -21});
    CHECK(y("sub_from_constant", {b}, {set("value", 1.0)}) == V{-2, 1, 8});
    const std::string dtype = sizeof(I) == 4 ? "int32" : "int64";
    CHECK_THROWS_WITH(y("add_constant", {b}, {set("value", 0.5)}),
                      ("[catena.add_constant] value: expected an " + dtype + ", got 0.5").c_str());
    for (const double value : {0x1p63, -0x1p64, double(INFINITY), double(NAN)})
        CHECK_THROWS_AS(y("mul_constant", {b}, {set("value", value)}), Failure);

    // Sums are int64, modulo 2^64.
    using Totals = std::vector<std::int64_t>;
    const auto total = [](const Array& x, const Dims& axis, const Options& options = {}) {
        const Attrs attrs = {set("axis", Ints(axis))};
        const Array result = world().forward("catena.sum", {x}, attrs, options)[0];
        REQUIRE(catena::plugin::same(result.dtype(), dtype_of<std::int64_t>()));
        return result.values<std::int64_t>();
    };
    const auto wrapped = [](std::int64_t p, std::int64_t q) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(p) +
                                         static_cast<std::uint64_t>(q));
    };
    CHECK(total(a, {0}) == Totals{wrapped(most, -2), least, 10});
    CHECK(total(a, {-1}) == Totals{5, wrapped(wrapped(most, least), 3)});
    CHECK(total(a, {}) == Totals{7});
    CHECK(total(Array::from<I>({most, most}, {2}), {}) == Totals{wrapped(most, most)});
    CHECK(total(Array::from<I>({}, {0}), {}) == Totals{0});
    CHECK(total(Array::from<I>({}, {3, 0}), {1}) == Totals{0, 0, 0});
    CHECK(total(Array::from<I>({}, {3, 0}), {0}) == Totals{});
    // Sums above 2^24 are exact for any number of threads.
    Array many({3, 70001}, dtype_of<I>());
    Totals rows(3);
    Totals columns(70001);
    for (std::int64_t i = 0; i < many.size(); ++i) {
        const auto v = static_cast<I>(i % 2 == 0 ? i * 13 % 30011 : -(i % 9));
        many.template data<I>()[i] = v;
        rows[static_cast<std::size_t>(i / 70001)] += v;
        columns[static_cast<std::size_t>(i % 70001)] += v;
    }
    for (const int threads : {1, 3}) {
        Options options;
        options.threads = threads;
        CHECK(total(many, {1}, options) == rows);
        CHECK(total(many, {0}, options) == columns);
        CHECK(total(many, {}, options) == Totals{rows[0] + rows[1] + rows[2]});
        const auto twice = world().forward("catena.add", {many, many}, {}, options)[0];
        CHECK(twice.template data<I>()[210000] == 2 * many.template data<I>()[210000]);
    }
}

TEST_CASE("sums of uint8 and bool are int64") {
    using catena::plugin::Ints;
    Array bytes({7, 301, 5}, dtype_of<std::uint8_t>());
    Array bits({7, 301, 5}, dtype_of<bool>());
    for (std::int64_t i = 0; i < bytes.size(); ++i) {
        bytes.data<std::uint8_t>()[i] = static_cast<std::uint8_t>(i * 37 % 256);
        bits.data<bool>()[i] = i * 37 % 256 > 99;
    }
    for (const Array& x : {bytes, bits})
        for (const Dims& axis : {Dims{}, Dims{0}, Dims{1}, Dims{2}, Dims{0, 2}, Dims{0, 1}}) {
            const Attrs attrs = {set("axis", Ints(axis))};
            const Array y = world().forward("catena.sum", {x}, attrs)[0];
            REQUIRE(catena::plugin::same(y.dtype(), dtype_of<std::int64_t>()));
            const Array exact = world().forward("catena.sum", {x.to(dtype_of<double>())}, attrs)[0];
            for (std::int64_t i = 0; i < y.size(); ++i) CHECK(y.at(i) == exact.at(i));
        }
}

TEST_CASE("other functions have no kernels for integers") {
    const Array i = Array::from<std::int32_t>({1, 2}, {2});
    for (const char* name : {"catena.exp", "catena.log", "catena.sqrt"})
        CHECK_THROWS_AS(world().forward(name, {i}), Failure);
    CHECK_THROWS_AS(world().forward("catena.div", {i, i}), Failure);
}
