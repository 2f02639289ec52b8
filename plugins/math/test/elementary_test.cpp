// Tests elementary functions and remainders of math.catena at their limits, in every floating dtype.
#include "math_test.hpp"

#include <limits>

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
