// Tests math.catena: compares all functions with the C library and with finite differences.
#include <doctest/doctest.h>

#include "math_test.hpp"

#include <limits>

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
    CHECK(world().forward("catena.invert", {truth})[0].at(69) == 0);
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
