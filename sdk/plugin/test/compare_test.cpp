// Tests compare() and differences(): which values are equal, where a gradient can be measured.
#include <doctest/doctest.h>

#include <catena/testing/compare.hpp>

#include <cmath>

using namespace catena::testing;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double not_a_number = std::nan("");

template <class T = double>
std::string compared(const std::vector<T>& got, const std::vector<T>& expected,
                     Tolerance tolerance = {}) {
    const Dims shape = {static_cast<std::int64_t>(got.size())};
    return compare(Array::from<T>(got, shape), Array::from<T>(expected, shape), tolerance);
}
// Compares a number, rounded to T, with an expected float64 number.
template <class T>
std::string rounded(double got, double expected, Tolerance tolerance = {4e-3, 2e-3}) {
    const Array wide = Array::from<double>({got}, {1});
    return compare(wide.to(dtype_of<T>()), Array::from<double>({expected}, {1}), tolerance);
}

}  // namespace

TEST_CASE("what is not finite is the same or wrong") {
    CHECK(compared({inf, -inf, not_a_number}, {inf, -inf, not_a_number}) == "");
    CHECK(compared({5}, {inf}) == "element 0: expected inf, got 5");
    CHECK(compared({0}, {-inf}) == "element 0: expected -inf, got 0");
    CHECK(compared({-inf}, {inf}) != "");
    CHECK(compared({inf}, {-inf}) != "");
    CHECK(compared({inf}, {5}) != "");
    CHECK(compared({not_a_number}, {inf}) != "");
    CHECK(compared({inf}, {not_a_number}) != "");
    CHECK(compared({not_a_number}, {1}) != "");
    CHECK(compared({1}, {not_a_number}) != "");
    // Infinities do not increase the tolerance of other elements.
    CHECK(compared({inf, 1.001}, {inf, 1}) == "element 1: expected 1, got 1.001");
}

TEST_CASE("what lies beyond the largest number of a dtype is inf there") {
    CHECK(rounded<Float16>(inf, 1e6) == "");
    CHECK(rounded<Float16>(-inf, -1e6) == "");
    CHECK(rounded<Float16>(-inf, 1e6) != "");
    CHECK(rounded<Float16>(0, 1e6) != "");
    CHECK(rounded<Float16>(65504, 1e6) != "");
    CHECK(rounded<Float16>(65504, inf) != "");
    CHECK(rounded<BFloat16>(inf, 1e39) == "");
    CHECK(rounded<BFloat16>(inf, 1e37) != "");
    CHECK(rounded<float>(inf, 1e39) == "");
    CHECK(rounded<float>(inf, 3e38) != "");
    // Near the largest number, it and inf pass; without a tolerance only the rounded value passes.
    CHECK(rounded<Float16>(inf, 65500) == "");
    CHECK(rounded<Float16>(65504, 65525) == "");
    CHECK(rounded<Float16>(inf, 65500, {0, 0}) != "");
    CHECK(rounded<Float16>(65504, 65525, {0, 0}) != "");
    CHECK(rounded<Float16>(inf, 60000) != "");
}

TEST_CASE("integers and bool are compared as what they are") {
    const std::int64_t large = std::int64_t{1} << 53;
    CHECK(compared<std::int64_t>({large + 1}, {large + 1}) == "");
    CHECK(compared<std::int64_t>({large + 1}, {large}) ==
          "element 0: expected 9007199254740992, got 9007199254740993");
    CHECK(compared<std::int32_t>({1000001}, {1000000}) != "");
    CHECK(compared<std::int64_t>({1000000, 3}, {1000000, 2}) == "element 1: expected 2, got 3");
    CHECK(compared<std::uint64_t>({~std::uint64_t{0}}, {~std::uint64_t{0} - 1}) != "");
    CHECK(compared<std::int8_t>({-1}, {-1}) == "");
    CHECK(compare(Array::from<bool>({true}, {1}), Array::from<bool>({false}, {1}), {}) ==
          "element 0: expected 0, got 1");
    // Numbers of different dtypes are compared, too.
    const auto of_int8 = [](double expected) {
        return compare(Array::from<std::int8_t>({-2}, {1}), Array::from<double>({expected}, {1}),
                       {});
    };
    CHECK(of_int8(-2) == "");
    CHECK(of_int8(-2.5) == "element 0: expected -2.5, got -2");
    CHECK(of_int8(254) != "");
    CHECK(of_int8(not_a_number) != "");
    CHECK(of_int8(-inf) != "");
    CHECK(compare(Array::from<std::uint64_t>({~std::uint64_t{0}}, {1}),
                  Array::from<std::int64_t>({-1}, {1}), {}) != "");
    CHECK(compare(Array::from<std::int64_t>({large}, {1}), Array::from<double>({0x1p53}, {1}),
                  {}) == "");
}

TEST_CASE("to the same dtype nothing is lost") {
    const Array a = Array::from<std::int64_t>({(std::int64_t{1} << 53) + 1}, {1});
    CHECK(a.to(a.dtype()) == a);
}

TEST_CASE("differences: steep curves are measured with smaller steps, kinks and jumps are not") {
    const auto slope = [](double x, double (*f)(double)) {
        return differences({Array::from<double>({x}, {1})}, 0, 1e-4, 1,
                           [&](const std::vector<Array>& at) { return f(at[0].at(0)); })
            .at(0);
    };
    const auto sine = [](double x) { return std::sin(2000 * x); };
    CHECK(slope(0.4, sine) == doctest::Approx(2000 * std::cos(800.0)).epsilon(1e-6));
    CHECK(slope(0.5, sine) == doctest::Approx(2000 * std::cos(1000.0)).epsilon(1e-6));
    CHECK(slope(3, [](double x) { return x * x; }) == doctest::Approx(6).epsilon(1e-8));
    // A kink within the large step, but not within the small one.
    CHECK(slope(5e-5, [](double x) { return std::abs(x); }) == doctest::Approx(1));
    CHECK(std::isnan(slope(0, [](double x) { return std::abs(x); })));
    CHECK(std::isnan(slope(1e-7, [](double x) { return std::abs(x); })));
    CHECK(std::isnan(slope(1e-7, [](double x) { return x > 0 ? 1.0 : 0.0; })));
    CHECK(std::isnan(slope(0, [](double x) { return x > 0 ? inf : 0.0; })));
    CHECK(std::isnan(slope(0, [](double) { return inf; })));
    // Large numbers lose a small step to rounding.
    CHECK(std::isnan(slope(1e25, [](double x) { return x * x; })));
    CHECK(std::isnan(slope(1e18, [](double x) { return x; })));
    CHECK(slope(1e3, [](double x) { return x * x; }) == doctest::Approx(2e3).epsilon(1e-6));
    CHECK(std::isnan(slope(0.4, [](double x) { return 1e9 + std::sin(2000 * x); })));
}
