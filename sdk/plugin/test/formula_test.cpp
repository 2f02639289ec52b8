// Tests formulas: the accuracy of elementary functions, and what the SDK infers from a gradient.
#include <doctest/doctest.h>

#include <catena/plugin.hpp>

#include <cmath>
#include <limits>

using namespace catena::plugin;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

// Returns the largest relative error of f against reference, in units of T's epsilon.
template <class T, class F, class R>
double worst(const F& f, const R& reference, long double low, long double high) {
    double result = 0;
    constexpr int steps = 200000;
    for (int i = 0; i <= steps; ++i) {
        const T x = static_cast<T>(low + (high - low) * i / steps);
        const long double exact = reference(static_cast<long double>(x));
        const long double error = std::fabs((static_cast<long double>(f(x)) - exact) / exact);
        if (exact != 0) result = std::fmax(result, static_cast<double>(error));
    }
    return result / static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <class T>
void check_accuracy() {
    const auto exp = [](T x) { return math::exp(x); };
    const auto log = [](T x) { return math::log(x); };
    const auto tanh = [](T x) { return math::tanh(x); };
    const auto sigmoid = [](T x) { return math::sigmoid(x); };
    const auto exact_exp = [](long double x) { return std::exp(x); };
    const auto exact_log = [](long double x) { return std::log(x); };
    const auto exact_tanh = [](long double x) { return std::tanh(x); };
    const auto exact_sigmoid = [](long double x) { return 1 / (1 + std::exp(-x)); };
    const long double reach = sizeof(T) == 4 ? 87 : 708;
    CHECK(worst<T>(exp, exact_exp, -reach, reach) < 2);
    CHECK(worst<T>(exp, exact_exp, -1, 1) < 2);
    CHECK(worst<T>(log, exact_log, 1e-30L, 1e-3L) < 2);
    CHECK(worst<T>(log, exact_log, 0.3L, 3) < 2);
    CHECK(worst<T>(log, exact_log, 3, 1e30L) < 2);
    CHECK(worst<T>(tanh, exact_tanh, -12, 12) < 4);
    CHECK(worst<T>(tanh, exact_tanh, -1e-3L, 1e-3L) < 4);
    const auto erf = [](T x) { return math::erf(x); };
    const auto exact_erf = [](long double x) { return std::erf(x); };
    CHECK(worst<T>(erf, exact_erf, -7, 7) < 2);
    CHECK(worst<T>(erf, exact_erf, -1, 1) < 2);
    CHECK(worst<T>(erf, exact_erf, -1e-3L, 1e-3L) < 2);
    const auto expm1 = [](T x) { return math::expm1(x); };
    const auto exact_expm1 = [](long double x) { return std::expm1(x); };
    CHECK(worst<T>(expm1, exact_expm1, -reach, reach) < 2);
    CHECK(worst<T>(expm1, exact_expm1, -1, 1) < 2);
    CHECK(worst<T>(expm1, exact_expm1, -1e-5L, 1e-5L) < 2);
    const auto log1p = [](T x) { return math::log1p(x); };
    const auto exact_log1p = [](long double x) { return std::log1p(x); };
    CHECK(worst<T>(log1p, exact_log1p, -0.999L, 1) < 2);
    CHECK(worst<T>(log1p, exact_log1p, -1e-5L, 1e-5L) < 2);
    CHECK(worst<T>(log1p, exact_log1p, 1, 1e30L) < 2);
    const auto lower = [](T x) { return math::normal(x).lower; };
    const auto exact_lower = [](long double x) { return std::erfc(x / std::sqrt(2.0L)) / 2; };
    CHECK(worst<T>(lower, exact_lower, 0, 1) < 6);
    CHECK(worst<T>(lower, exact_lower, 1, 12) < 100);  // the rounding of x^2 / 2, an exponent
    const auto density = [](T x) { return math::normal(x).density; };
    const auto exact_density = [](long double x) { return std::exp(-x * x / 2); };
    CHECK(worst<T>(density, exact_density, -1, 1) < 3);
    CHECK(worst<T>(density, exact_density, -12, 12) < 100);
    const T least = std::log(std::numeric_limits<T>::min());  // the smallest x with a normal result
    CHECK(worst<T>(sigmoid, exact_sigmoid, least + T(0.01), 80) < 3);
    for (T x = least - 5; x < least; x += T(0.01)) {
        CAPTURE(x);
        const T y = math::sigmoid(x);
        REQUIRE((y >= 0 && y <= std::numeric_limits<T>::min()));
        REQUIRE(math::sigmoid(-x) == T(1));
    }
}

template <class T>
void check_ends() {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    const T tiny = std::numeric_limits<T>::denorm_min();
    CHECK(math::exp(infinity) == infinity);
    CHECK(math::exp(-infinity) == T(0));
    CHECK(math::exp(T(1e4)) == infinity);
    CHECK(math::exp(T(-1e4)) == T(0));
    CHECK(std::isnan(math::exp(nan)));
    const T low = sizeof(T) == 4 ? T(-100) : T(-740);  // the result is subnormal
    CHECK(math::exp(low) == doctest::Approx(std::exp(low)).epsilon(0.1));
    CHECK(math::exp(T(0)) == T(1));
    const T top = sizeof(T) == 4 ? T(0x1.62e42ep6) : T(0x1.62e42fefa39efp9);  // still finite
    CHECK(math::exp(top) == doctest::Approx(std::exp(top)));
    CHECK(math::exp(std::nextafter(top, infinity)) == infinity);
    CHECK(std::isnan(math::exp(-nan)));
    CHECK(math::log(T(0)) == -infinity);
    CHECK(math::log(infinity) == infinity);
    CHECK(std::isnan(math::log(T(-1))));
    CHECK(std::isnan(math::log(nan)));
    CHECK(math::log(tiny) == doctest::Approx(std::log(tiny)));
    CHECK(math::log(T(1)) == T(0));
    CHECK(math::tanh(infinity) == T(1));
    CHECK(math::tanh(-infinity) == T(-1));
    CHECK(std::isnan(math::tanh(nan)));
    CHECK(std::signbit(math::tanh(T(-0.0))));
    CHECK(math::sigmoid(infinity) == T(1));
    CHECK(math::sigmoid(-infinity) == T(0));
    CHECK(math::sigmoid(T(-1e4)) == T(0));
    CHECK(math::sigmoid(std::numeric_limits<T>::lowest()) == T(0));
    CHECK(math::sigmoid(std::numeric_limits<T>::max()) == T(1));
    CHECK(math::sigmoid(T(1e4)) == T(1));
    CHECK(math::sigmoid(T(0)) == T(0.5));
    CHECK(std::isnan(math::sigmoid(nan)));
    CHECK(math::erf(infinity) == T(1));
    CHECK(math::erf(-infinity) == T(-1));
    CHECK(std::isnan(math::erf(nan)));
    CHECK(std::signbit(math::erf(T(-0.0))));
    CHECK(math::expm1(infinity) == infinity);
    CHECK(math::expm1(-infinity) == T(-1));
    CHECK(math::expm1(std::numeric_limits<T>::lowest()) == T(-1));
    CHECK(math::expm1(top) == doctest::Approx(std::expm1(top)));
    CHECK(std::isnan(math::expm1(nan)));
    CHECK(math::log1p(infinity) == infinity);
    CHECK(math::log1p(T(-1)) == -infinity);
    CHECK(std::isnan(math::log1p(T(-2))));
    CHECK(std::isnan(math::log1p(nan)));
    for (const T x : {infinity, -infinity, std::numeric_limits<T>::lowest(), T(1000)}) {
        CHECK(math::normal(x).lower == T(0));
        CHECK(math::normal(x).density == T(0));
        CHECK((math::normal(x).a > T(13) && math::normal(x).a < T(40)));
    }
    CHECK(std::isnan(math::normal(nan).a));
    CHECK(std::isnan(math::normal(nan).density));
    CHECK(std::isnan(math::normal(nan).lower));
    CHECK(std::isnan(math::max(nan, T(1))));
    CHECK(std::isnan(math::max(T(1), nan)));
    CHECK(std::isnan(math::min(nan, T(1))));
    CHECK(std::isnan(math::min(T(1), nan)));
    CHECK(math::max(T(1), T(2)) == T(2));
    CHECK(math::min(T(1), T(2)) == T(1));
    CHECK(!std::signbit(math::abs(T(-0.0))));
}

struct Product {
    static constexpr auto about = describe("test.product", "", in("a", "b", "c"), out("y"));
    template <class T>
    CATENA_FN static T forward(T a, T b, T c) {
        return a * b + c;
    }
    template <class T>
    CATENA_FN static Grads<T, 3> backward(T gy, T a, T b, T) {
        return {gy * b, gy * a, gy};
    }
};
struct Tanh {
    static constexpr auto about =
        describe("test.tanh", "", in("x"), out("y"), attr("scale", 2.0, ""));
    template <class T>
    CATENA_FN static T forward(T x, T scale) {
        return math::tanh(scale * x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y, T scale) {
        return gy * scale * (1 - y * y);
    }
};

}  // namespace

TEST_CASE("accuracy in float") { check_accuracy<float>(); }
TEST_CASE("accuracy in double") { check_accuracy<double>(); }
TEST_CASE("ends of the range in float") { check_ends<float>(); }
TEST_CASE("ends of the range in double") {
    check_ends<double>();
    CHECK(math::pow(2.0, inf) == inf);
}

TEST_CASE("what backward keeps alive follows from its formula") {
    static_assert(retained_by_formula<Product>().x == 3);
    static_assert(retained_by_formula<Product>().y == 0);
    static_assert(retained_by_formula<Tanh>().x == 0);
    static_assert(retained_by_formula<Tanh>().y == 1);
    CHECK(FunctionTable<Product>::function.retain_x == 3);
    CHECK((FunctionTable<Tanh>::function.flags & CATENA_FUNCTION_ELEMENTWISE) != 0);
}

TEST_CASE("descriptions become tables") {
    const catena_function& f = FunctionTable<Tanh>::function;
    CHECK(f.n_inputs == 1);
    CHECK(std::string_view(f.inputs[0]->name) == "x");
    CHECK(std::string_view(f.inputs[0]->type_var) == "T");
    CHECK(f.n_attrs == 1);
    CHECK(f.attrs[0]->kind == CATENA_ATTR_FLOAT);
    CHECK(f.attrs[0]->def.v.f == 2.0);
    const catena_value value = value_of(3.5);
    CHECK(attribute<Tanh, "scale">(&value) == 3.5);
}

TEST_CASE("constants need no host, and no gradient stays none") {
    const std::int64_t two = 2;
    const Shape shape(&two, 1);
    const Var none;
    for (const Var& v :
         {none + none, none * Var(3), none / Var(3), -none, sum_to(none, shape), sum(none),
          reshape(none, shape), broadcast_to(none, shape), transpose(none), matmul(none, none),
          cast(none, dtype_of<double>()), math::tanh(none), math::abs(none), math::sqrt(none)})
        CHECK(v.is_constant(0));
    CHECK(math::sigmoid(none).is_constant(0.5));
    CHECK(math::exp(none).is_constant(1));
    CHECK(math::log(Var(1)).is_constant(0));
    CHECK(math::abs(Var(-2)).is_constant(2));
    CHECK(math::pow(Var(2), Var(3)).is_constant(8));
}
