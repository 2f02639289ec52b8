// Operators between variables and arrays, compound assignment, masks of variables.
#include "nodes.hpp"

namespace {

Array arr(std::initializer_list<double> v) { return var(v).data(); }

template <class X, class Y>
concept Multiplies = requires(X& x, const Y& y) {
    x *= y;
};

}  // namespace

TEST_CASE("an array beside a variable is a constant") {
    const Variable x = var({1, 4});
    const Array a = arr({2, 8});
    const auto is = [](const Variable& y, const Doubles& expected) {
        return values(y.data()) == expected && y.requires_grad();
    };
    CHECK(is(x + a, {3, 12}));
    CHECK(is(a + x, {3, 12}));
    CHECK(is(x - a, {-1, -4}));
    CHECK(is(a - x, {1, 4}));
    CHECK(is(x * a, {2, 32}));
    CHECK(is(a * x, {2, 32}));
    CHECK(is(x / a, {0.5, 0.5}));
    CHECK(is(a / x, {2, 2}));
    CHECK(is(pow(x, arr({2, 2})), {1, 16}));
    CHECK(is(pow(arr({2, 2}), x), {2, 16}));
    const Variable m(Array::from({1.0, 2.0, 3.0, 4.0}, {2, 2}));
    const Array ones = Array::ones({2, 2}, Dtype::float64);
    CHECK(is(dot(m, ones), {3, 3, 7, 7}));
    CHECK(is(dot(ones, m), {4, 6, 4, 6}));
    F::sum(a * x - a / x).backward();
    CHECK(values(x.grad()) == Doubles{2 + 2, 8 + 0.5});
    const Variable v(arr({1, 4}), true);
    CHECK((v + a).is_volatile());
    CHECK_THROWS_AS((void)(x + Array()), InvalidError);
    CHECK_THROWS_AS((void)(x + arr({1, 2, 3})), ShapeError);
    gradient_check::check_double_backward([&](const Vars& z) -> Vars { return {a / z[0] * a}; },
                                          Arrs{arr({1, 3})}, Arrs{arr({1, 2})},
                                          Arrs{arr({0.5, 1})});
}

TEST_CASE("compound assignment of variables makes new ones, with a graph") {
    const Variable a = var({3});
    const Variable x = var({2});
    Variable y = x;
    y *= a;
    y -= 1;
    y /= 2;
    y += x;
    y *= arr({2});
    y += arr({1});
    y -= arr({4});
    y += 0.5;
    CHECK(values(y.data()) == Doubles{((2 * 3 - 1) / 2.0 + 2) * 2 + 1 - 4 + 0.5});
    CHECK(values(x.data()) == Doubles{2});
    y.backward();
    CHECK(values(x.grad()) == Doubles{3 + 2});
    CHECK(values(a.grad()) == Doubles{2});
    y *= y;
    CHECK(values(y.data()) == Doubles{6.5 * 6.5});
    Variable sum;
    for (int i = 0; i < 3; ++i) sum += x;
    CHECK(values(sum.data()) == Doubles{6});
    Variable none;
    CHECK_THROWS_AS(none -= x, InvalidError);
    CHECK_THROWS_AS(none *= x, InvalidError);
    CHECK_THROWS_AS(none += 1, InvalidError);
}

TEST_CASE("compound assignment of arrays leaves other handles alone") {
    const Array before = arr({2, 6});
    Array x = before;
    x += arr({1, 1});
    x *= arr({2, 3});
    x -= 1;
    x /= arr({1, 4});
    x *= 2;
    CHECK(values(x) == Doubles{10, 10});
    CHECK(values(before) == Doubles{2, 6});
    Array sum;
    for (int i = 0; i < 3; ++i) sum += before;
    CHECK(values(sum) == Doubles{6, 18});
    CHECK(values(before) == Doubles{2, 6});
    Array none;
    CHECK_THROWS_AS(none -= before, Error);
    CHECK_THROWS_AS(x += arr({1, 2, 3}), ShapeError);
    CHECK(values(x) == Doubles{10, 10});
    CHECK(Multiplies<Array, double>);
    CHECK(Multiplies<Variable, Array>);
    CHECK_FALSE(Multiplies<Array, Variable>);  // a graph would be lost
    CHECK_FALSE(Multiplies<const Variable, Variable>);
}

TEST_CASE("comparisons of variables are masks without a gradient") {
    const Variable x = var({-1, 0, 2});
    const Variable zero = var({0});
    const auto is = [](const Variable& y, const Doubles& expected) {
        return values(y.data()) == expected && !y.requires_grad() && !y.creator();
    };
    CHECK(is(x > 0, {0, 0, 1}));
    CHECK(is(x >= 0, {0, 1, 1}));
    CHECK(is(x < 0, {1, 0, 0}));
    CHECK(is(x <= 0, {1, 1, 0}));
    CHECK(is(0 < x, {0, 0, 1}));
    CHECK(is(0 >= x, {1, 1, 0}));
    CHECK(is(1.5 > x, {1, 1, 0}));
    CHECK(is(0 <= x, {0, 1, 1}));
    CHECK(is(x > zero, {0, 0, 1}));
    CHECK(is(x <= zero, {1, 1, 0}));
    CHECK(is(x >= arr({0, 0, 3}), {0, 1, 0}));
    CHECK(is(arr({0, 0, 3}) > x, {1, 0, 1}));
    CHECK(is(x < arr({0, 0, 3}), {1, 0, 1}));
    const Variable y = F::sum(F::where(x > 0, x * 3, -x) + x * (x >= 0));
    y.backward();
    CHECK(values(x.grad()) == Doubles{-1, 0, 4});
    CHECK_FALSE(zero.grad());
    CHECK_THROWS_AS((void)(Variable() > 0), InvalidError);
}

TEST_CASE("masks are bool arrays, choose, and count as 0 and 1 beside numbers") {
    const Array x = arr({-1, 0, 2});
    const Variable v(x);
    const auto is = [](const Array& y, Dtype dtype, const Doubles& expected) {
        CHECK(y.dtype() == dtype);
        return values(y) == expected;
    };
    for (const Array& mask : {x > 0, x > arr({0, 0, 0}), (v > 0).data(), 0 < x, (0 < v).data()})
        CHECK(is(mask, Dtype::bool8, {0, 0, 1}));
    for (const Array& mask : {x <= 0, x <= arr({0}), (v <= 0).data(), ~(x > 0), (~(v > 0)).data()})
        CHECK(is(mask, Dtype::bool8, {1, 1, 0}));
    CHECK(is(x.astype(Dtype::int32) >= 0, Dtype::bool8, {0, 1, 1}));
    CHECK(is((x > -1) & (x < 2), Dtype::bool8, {0, 1, 0}));
    CHECK(is((x < 0) | (x > 1), Dtype::bool8, {1, 0, 1}));
    CHECK(is(((v < 0) | (v > 1)).data(), Dtype::bool8, {1, 0, 1}));
    CHECK(is(((x < 0) & (v < 1)).data(), Dtype::bool8, {1, 0, 0}));
    CHECK_THROWS_WITH_AS((void)(x & (x > 0)), "[&] operand: expected a bool array, got float64",
                         DtypeError);
    CHECK_THROWS_AS((void)~x, DtypeError);
    CHECK_THROWS_AS((void)((x > 0) | Array()), DtypeError);

    // By bool, by numbers, and by what F::greater() says.
    const Array ten = arr({10}), twenty = arr({20});
    CHECK(is(F::where(x > 0, ten, twenty), Dtype::float64, {20, 20, 10}));
    CHECK(is(F::where(Array::from<bool>({true, false, true}, {3}), x, ten), Dtype::float64,
             {-1, 10, 2}));
    CHECK(is(F::where(x, ten, twenty), Dtype::float64, {10, 20, 10}));
    CHECK(is(F::greater(x, arr({0})), Dtype::float64, {0, 0, 1}));
    const Array n = Array::from<std::int64_t>({1, 2, 3}, {3});
    CHECK(is(F::where(n > 1, n, -n), Dtype::int64, {-1, 2, 3}));

    CHECK(is(x * (x > 0), Dtype::float64, {0, 0, 2}));
    CHECK(is((x > 0) * x, Dtype::float64, {0, 0, 2}));
    CHECK(is(x.astype(Dtype::float16) - (x > 0), Dtype::float16, {-1, 0, 1}));
    CHECK(is(2 * (x > 0), Dtype::float32, {0, 0, 2}));
    CHECK(is(1 - (x > 0), Dtype::float32, {1, 1, 0}));
    CHECK(is(-(x > 0), Dtype::float32, {0, 0, -1}));
    CHECK(is((x > 0) + (x > -1), Dtype::float32, {0, 1, 2}));
    CHECK(is((2 * (v > 0)).data(), Dtype::float32, {0, 0, 2}));

    F::sum(F::where(v > 0, v * v, 3 * v) * (v < 2)).backward();
    CHECK(values(v.grad()) == Doubles{3, 3, 0});
    const Variable calm(x, true);
    CHECK((calm * (x > 0)).is_volatile());
    gradient_check::check_double_backward(
        [](const Vars& z) -> Vars {
            return {F::where(z[0] > 0, z[0] * z[0] * z[0], z[0]) * (z[0] < 3)};
        },
        Arrs{arr({1, -2, 5})}, Arrs{arr({1, 3, 1})}, Arrs{arr({0.5, 1, 1})});
}
