// Tests of operators between variables and arrays, compound assignment, masks of variables.
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
    gradient_check::check_double_backward(
        [&](const Variables& z) -> Variables { return {a / z[0] * a}; }, Arrays{arr({1, 3})},
        Arrays{arr({1, 2})}, Arrays{arr({0.5, 1})});
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

TEST_CASE("compound assignment of arrays changes the elements for all handles") {
    const Array kept = arr({2, 6});
    Array x = kept;
    const Array view = kept.reshape({2, 1});
    x += arr({1, 1});
    x *= arr({2, 3});
    x -= 1;
    x /= arr({1, 4});
    x *= 2;
    x -= arr({10});  // broadcast
    x += 4.5;
    x /= 0.5;
    CHECK(values(x) == Doubles{9, 9});
    CHECK(x.body() == kept.body());
    CHECK(values(kept) == Doubles{9, 9});
    CHECK(values(view) == Doubles{9, 9});
    kept.reshape({-1}) += kept;  // const handle, view and self-assignment
    CHECK(values(x) == Doubles{18, 18});
    x = x + 1;
    CHECK(values(kept) == Doubles{18, 18});

    Arrays list = {arr({1}), arr({2})};
    const Array second = list[1];
    list[1] += list[0];
    CHECK(values(second) == Doubles{3});
}

TEST_CASE("compound assignment of arrays that do not go together changes nothing") {
    const Array x = arr({2, 6});
    CHECK_THROWS_AS(x += arr({1, 2, 3}), ShapeError);
    CHECK_THROWS_WITH_AS(
        x *= Array::ones({3, 2}, Dtype::float64),
        "[*=] y: expected a shape that broadcasts to (2,) of x, got one that gives (3, 2)",
        ShapeError);
    CHECK_THROWS_AS(x -= Array::ones({2}), DtypeError);
    CHECK_THROWS_AS(x /= arr({1, 2}).to(Device::get("cpu:1")), DeviceError);
    CHECK(values(x) == Doubles{2, 6});
    const Array ids = Array::from<std::int64_t>({3, 5}, {2});
    CHECK_THROWS_AS(ids *= 0.5, Error);
    CHECK(values(ids) == Doubles{3, 5});
    Array none;
    CHECK_THROWS_AS(none -= x, InvalidError);
    CHECK_THROWS_WITH_AS(none += x,
                         "[+=] x: expected an array, got an empty handle; initialize it first, for "
                         "example with x = Array::zeros(shape)",
                         InvalidError);
    CHECK_FALSE(none);
    CHECK_THROWS_AS(none += Array(), InvalidError);
    CHECK_THROWS_AS(x += Array(), InvalidError);
    CHECK_THROWS_AS(none += 1, InvalidError);
    CHECK_THROWS_AS(Array() += x, InvalidError);
    CHECK(Multiplies<Array, double>);
    CHECK(Multiplies<const Array, Array>);
    CHECK(Multiplies<Variable, Array>);
    CHECK_FALSE(Multiplies<Array, Variable>);  // would drop the graph
    CHECK_FALSE(Multiplies<const Variable, Variable>);
}

TEST_CASE("compound assignment writes the data and the gradient of a variable") {
    const Variable x = var({2, 3});
    Variable y = F::sum(x * x);
    y.backward();
    x.data() -= 0.5 * x.grad();
    CHECK(values(x.data()) == Doubles{0, 0});
    x.grad() *= 2;
    CHECK(values(x.grad()) == Doubles{8, 12});
    // The graph retained the array that was overwritten.
    CHECK_THROWS_WITH_AS(
        y.backward(),
        doctest::Contains("expected x0 unmodified since the call, got one that was "
                          "changed in place"),
        GraphError);
    Array data = x.data();
    y = F::sum(x * x);
    data.reshape({2, 1}) += 1;
    CHECK_THROWS_AS(y.backward(), GraphError);
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

    // Conditions: bool arrays, numbers.
    const Array ten = arr({10}), twenty = arr({20});
    CHECK(is(F::where(x > 0, ten, twenty), Dtype::float64, {20, 20, 10}));
    CHECK(is(F::where(Array::from<bool>({true, false, true}, {3}), x, ten), Dtype::float64,
             {-1, 10, 2}));
    CHECK(is(F::where(x, ten, twenty), Dtype::float64, {10, 20, 10}));
    const Array n = Array::from<std::int64_t>({1, 2, 3}, {3});
    CHECK(is(F::where(n > 1, n, -n), Dtype::int64, {-1, 2, 3}));

    CHECK(is(x * (x > 0), Dtype::float64, {0, 0, 2}));
    CHECK(is((x > 0) * x, Dtype::float64, {0, 0, 2}));
    CHECK(is(x.astype(Dtype::float16) - (x > 0), Dtype::float16, {-1, 0, 1}));
    CHECK(is(2 * (x > 0), Dtype::int32, {0, 0, 2}));
    CHECK(is(1 - (x > 0), Dtype::int32, {1, 1, 0}));
    CHECK(is(-(x > 0), Dtype::int32, {0, 0, -1}));
    CHECK(is((x > 0) + (x > -1), Dtype::int32, {0, 1, 2}));
    CHECK(is((2 * (v > 0)).data(), Dtype::int32, {0, 0, 2}));
    CHECK(is(2.0 * (x > 0), Dtype::float32, {0, 0, 2}));
    CHECK(is(2 * (x > 0) * x, Dtype::float64, {0, 0, 4}));
    CHECK(is((1 - (v > 0)).data() * x, Dtype::float64, {-1, 0, 0}));

    F::sum(F::where(v > 0, v * v, 3 * v) * (v < 2)).backward();
    CHECK(values(v.grad()) == Doubles{3, 3, 0});
    const Variable calm(x, true);
    CHECK((calm * (x > 0)).is_volatile());
    gradient_check::check_double_backward(
        [](const Variables& z) -> Variables {
            return {F::where(z[0] > 0, z[0] * z[0] * z[0], z[0]) * (z[0] < 3)};
        },
        Arrays{arr({1, -2, 5})}, Arrays{arr({1, 3, 1})}, Arrays{arr({0.5, 1, 1})});
}

TEST_CASE(
    "two floating dtypes are refused, with a hint if one is that of a number next to a mask") {
    const std::string hint =
        " (integers and bool with a floating number, as in 0.5 * (x > 0) * y, are float32: write "
        "0.5 * y * (x > 0))";
    const Array x = arr({-1, 2}), half = x.astype(Dtype::float16);
    const Variable v(x);
    const std::string mul = "[catena.mul] x1: expected float32 as x0, got ";
    CHECK_THROWS_WITH_AS((void)(0.5 * (x > 0) * x), (mul + "float64" + hint).c_str(), DtypeError);
    CHECK_THROWS_WITH_AS((void)(0.5 * (v > 0) * v), (mul + "float64" + hint).c_str(), DtypeError);
    CHECK_THROWS_WITH_AS((void)(half - (1.0 - (x > 0))),
                         ("[catena.sub] x1: expected float16 as x0, got float32" + hint).c_str(),
                         DtypeError);
    CHECK_THROWS_WITH_AS((void)(x * half), "[catena.mul] x1: expected float64 as x0, got float16",
                         DtypeError);
    // Such products have zeros and one other value.
    for (const Array& single : {F::arange(3.0), Array::ones({3}), Array::zeros({3})})
        CHECK_THROWS_WITH_AS((void)(single * Array::ones({3}, Dtype::float16)),
                             "[catena.mul] x1: expected float32 as x0, got float16", DtypeError);
    CHECK_THROWS_AS((void)(x > half), DtypeError);
    CHECK_THROWS_AS((void)F::maximum(x, half), DtypeError);
    CHECK_THROWS_AS((void)F::where(x > 0, x, half), DtypeError);
    CHECK_THROWS_AS((void)F::concat({x, half}, 0), DtypeError);
    CHECK_THROWS_AS((void)F::stack({v, Variable(half)}), DtypeError);
    // The expression that the error message suggests keeps the dtype of x.
    for (const Array& y : {x, half, x.astype(Dtype::bfloat16)}) {
        const Array product = 0.5 * y * (x > 0);
        CHECK(product.dtype() == y.dtype());
        CHECK(values(product) == Doubles{0, 1});
    }
}

TEST_CASE("dtypes are promoted: bool < integers < floating") {
    const Array f16 = arr({1, 2}).astype(Dtype::float16), f64 = arr({1, 2});
    const Array i32 = f64.astype(Dtype::int32), i64 = f64.astype(Dtype::int64);
    const Array u8 = f64.astype(Dtype::uint8), mask = f64 > 1;
    const auto is = [](const Array& y, Dtype dtype, const Doubles& expected) {
        CHECK(y.dtype() == dtype);
        return values(y) == expected;
    };
    CHECK(is(i32 + i64, Dtype::int64, {2, 4}));
    CHECK(is(i64 - u8, Dtype::int64, {0, 0}));
    CHECK(is(u8 * i32, Dtype::int32, {1, 4}));
    CHECK(is(i64 * f16, Dtype::float16, {1, 4}));
    CHECK(is(f64 - i32, Dtype::float64, {0, 0}));
    CHECK(is(mask + i64, Dtype::int64, {1, 3}));
    CHECK(is(u8 + f64, Dtype::float64, {2, 4}));
    CHECK(is(pow(f64, i32), Dtype::float64, {1, 4}));
    CHECK(is(pow(i32, f64), Dtype::float64, {1, 4}));
    CHECK(is(dot(f64.reshape({1, 2}), i32.reshape({2, 1})), Dtype::float64, {5}));
    // Division gives floats.
    CHECK(is(i32 / i64, Dtype::float32, {1, 1}));
    CHECK(is(mask / i32, Dtype::float32, {0, 0.5}));
    CHECK(is(i32 / f64, Dtype::float64, {1, 1}));
    CHECK(is(i32 / 2, Dtype::float32, {0.5, 1}));
    CHECK(is(1 / i64, Dtype::float32, {1, 0.5}));
    CHECK(is(u8 / 2, Dtype::float32, {0.5, 1}));
    // A number changes no dtype, but a floating one that of integers.
    CHECK(is(i64 + 1, Dtype::int64, {2, 3}));
    CHECK(is(3 - i32, Dtype::int32, {2, 1}));
    CHECK(is(i32 + 1.0, Dtype::float32, {2, 3}));
    CHECK(is(0.5F * i32, Dtype::float32, {0.5, 1}));
    CHECK(is(i64 - 0.5, Dtype::float32, {0.5, 1.5}));
    CHECK(is(f16 * 0.5, Dtype::float16, {0.5, 1}));
    CHECK(is(f64 + std::size_t{1}, Dtype::float64, {2, 3}));
    CHECK(is(pow(2.0, i32), Dtype::float32, {2, 4}));
    // Comparisons, selection, concatenation.
    CHECK(is(i32 > arr({1.5}), Dtype::bool8, {0, 1}));
    CHECK(is(u8 >= u8, Dtype::bool8, {1, 1}));
    CHECK(is(mask > f16, Dtype::bool8, {0, 0}));
    CHECK(is(mask < mask, Dtype::bool8, {0, 0}));
    CHECK(is(F::maximum(i32, arr({1.5})), Dtype::float64, {1.5, 2}));
    CHECK(is(F::minimum(mask, i64), Dtype::int64, {0, 1}));
    CHECK(is(F::where(mask, i32, f16), Dtype::float16, {1, 2}));
    CHECK(is(F::concat({mask, i32, f64}, 0), Dtype::float64, {0, 1, 1, 2, 1, 2}));
    CHECK(is(F::stack({i32, i64}), Dtype::int64, {1, 2, 1, 2}));
    // In place the dtype does not change.
    Array sum = f64.copy();
    sum += i32;
    CHECK(is(sum, Dtype::float64, {2, 4}));
    CHECK_THROWS_WITH_AS(
        i32 += f64, "[+=] y: expected a dtype that gives int32 of x, got one that gives float64",
        DtypeError);
    CHECK_THROWS_AS(i32 /= 2, DtypeError);
    CHECK(is(i32, Dtype::int32, {1, 2}));

    const Variable v(f64), n(i32);
    const Variable y = v * n + F::where(n > 1, v, n) - F::maximum(n, v) / n;
    CHECK(y.dtype() == Dtype::float64);
    F::sum(y).backward();
    CHECK(values(v.grad()) == Doubles{1, 3});  // in a tie the first operand gets the gradient
    CHECK_FALSE(n.grad());
    const Variable calm(i32, true);
    CHECK((calm + calm / 2).is_volatile());
    CHECK((calm * Variable(f64, true)).is_volatile());
}

TEST_CASE("arithmetic of uint8 is uint8, modulo 256") {
    const Array x = Array::from<std::uint8_t>({0, 1, 200, 255}, {4});
    const Array mask = x > 1;
    const auto is = [](const Array& y, const Doubles& expected) {
        CHECK(y.dtype() == Dtype::uint8);
        return values(y) == expected;
    };
    CHECK(is(x + x, {0, 2, 144, 254}));
    CHECK(is(x - 1, {255, 0, 199, 254}));
    CHECK(is(x * x, {0, 1, 64, 1}));
    CHECK(is(x + mask, {0, 1, 201, 0}));
    CHECK(is(mask - x, {0, 255, 57, 2}));
    CHECK(is(-x, {0, 255, 56, 1}));
    CHECK(is(255 - x, {255, 254, 55, 0}));
    CHECK((x / x).dtype() == Dtype::float32);
    CHECK((x * 0.5).dtype() == Dtype::float32);
    Array sum = x.copy();
    sum += x;
    CHECK(is(sum, {0, 2, 144, 254}));
    const Variable calm(x, true);
    CHECK(is((calm + calm).data(), {0, 2, 144, 254}));
    CHECK((calm + calm).is_volatile());
    // Comparisons, selection, extremes, order.
    CHECK(values(x > mask) == Doubles{0, 1, 1, 1});
    CHECK(values(F::equal(x, x)) == Doubles{1, 1, 1, 1});
    CHECK(values(F::not_equal(mask, x)) == Doubles{0, 1, 1, 1});
    CHECK(is(F::where(mask, x, F::zeros_like(x)), {0, 0, 200, 255}));
    CHECK(is(F::where(x, 7, x), {0, 7, 7, 7}));
    CHECK(is(F::maximum(x, 2), {2, 2, 200, 255}));
    CHECK(is(F::minimum(x, 300), {0, 1, 200, 255}));
    CHECK(is(F::maximum(mask, x), {0, 1, 200, 255}));
    CHECK(is(F::max(x), {255}));
    CHECK(is(F::min(x), {0}));
    CHECK(values(F::argmax(x)) == Doubles{3});
    CHECK(is(F::sort(x, 0, true), {255, 200, 1, 0}));
    const Array many = F::arange(1000).astype(Dtype::uint8);
    CHECK(values(F::argsort(many))[4] == 1);  // after 0, 256, 512 and 768
}

TEST_CASE("integers are compared with numbers by value") {
    const Array i = Array::from<int>({-2, 1, 2}, {3});
    const Array n = i.astype(Dtype::int64);
    for (const Array& x : {i, n}) {
        CHECK(values(x >= 1.5) == Doubles{0, 0, 1});
        CHECK(values(x < 1.5) == Doubles{1, 1, 0});
        CHECK(values(1.5 > x) == Doubles{1, 1, 0});
        CHECK(values(x < 1e30) == Doubles{1, 1, 1});
        CHECK(values(x > -HUGE_VAL) == Doubles{1, 1, 1});
        CHECK(values(x <= std::nan("")) == Doubles{0, 0, 0});
        CHECK(values(x > 1) == Doubles{0, 0, 1});
    }
    CHECK(values((i > 0) >= 0.5) == Doubles{0, 1, 1});
    CHECK(values(i.astype(Dtype::uint8) > 1) == Doubles{1, 0, 1});
    // 2^53 + 1 is not a double.
    const Array big = Array::from<std::int64_t>({(1LL << 53) + 1}, {1});
    CHECK(values(big > 9007199254740992.0) == Doubles{1});
}

TEST_CASE("floor_divide is exact, and promotes as other operators") {
    const Array i = Array::from<int>({16777217, -7, 7}, {3});
    const Array whole = floor_divide(i, 1);
    CHECK(whole.dtype() == Dtype::int32);
    CHECK(whole.to_vector<int>() == std::vector<int>{16777217, -7, 7});
    CHECK(floor_divide(i, -2).to_vector<int>() == std::vector<int>{-8388609, 3, -4});
    CHECK(floor_divide(100, i).to_vector<int>() == std::vector<int>{0, -15, 14});
    CHECK(floor_divide(i, i.astype(Dtype::int64)).dtype() == Dtype::int64);
    const Array big = Array::from<std::int64_t>({(1LL << 60) + 1}, {1});
    CHECK(floor_divide(big, 1).item<std::int64_t>() == (1LL << 60) + 1);
    CHECK(floor_divide(big, (1LL << 60) + 1).item<std::int64_t>() == 1);
    CHECK(floor_divide(i.astype(Dtype::uint8), 2).dtype() == Dtype::uint8);
    CHECK(floor_divide(i > 0, 2).dtype() == Dtype::int32);
    CHECK(floor_divide(i, 0.5).dtype() == Dtype::float32);
    CHECK_THROWS_WITH_AS(floor_divide(i, 1LL << 40),
                         "[number] expected an integer from -2^31 to 2^31 - 1 next to int32, got "
                         "1099511627776",
                         DtypeError);
    // Not the floor of the rounded quotient.
    CHECK(values(floor_divide(arr({1, 6}), 0.1)) == Doubles{9, 59});
    const Variable x = var({1, 6});
    const Variable y = floor_divide(x, var({0.1, 4}));
    CHECK(values(y.data()) == Doubles{9, 1});
    CHECK_THROWS_AS(floor_divide(Array(), 2), InvalidError);
}

TEST_CASE("integers that a double rounds stay exact") {
    const std::int64_t odd = (1LL << 53) + 1;
    const Array x = Array::from<std::int64_t>({1, -1}, {2});
    using Integers = std::vector<std::int64_t>;
    const auto is = [](const Array& y, const Integers& expected) {
        return y.dtype() == Dtype::int64 && y.to_vector<std::int64_t>() == expected;
    };
    CHECK(is(x + odd, {odd + 1, odd - 1}));
    CHECK(is(x - odd, {1 - odd, -1 - odd}));
    CHECK(is(odd - x, {odd - 1, odd + 1}));
    CHECK(is(x * odd, {odd, -odd}));
    CHECK(is((as_variable(x) + odd).data(), {odd + 1, odd - 1}));
    const Array y = Array::from<std::int64_t>({odd - 1, odd, odd + 1}, {3});
    CHECK(values(F::equal(y, odd)) == Doubles{0, 1, 0});
    CHECK(values(y > odd) == Doubles{0, 0, 1});
    CHECK(values(y <= odd) == Doubles{1, 1, 0});
    // Beyond int64.
    const Scalar wide = std::uint64_t{1} << 63;
    CHECK_THROWS_WITH_AS(x + wide,
                         "[number] expected an integer from -2^63 to 2^63 - 1 next to int64, got "
                         "9223372036854775808",
                         DtypeError);
    CHECK_THROWS_AS(F::maximum(x, wide), DtypeError);
    CHECK(values(x < wide) == Doubles{1, 1});
    // Beyond int32.
    for (const Dtype dtype : {Dtype::int32, Dtype::uint8, Dtype::bool8}) {
        const Array y = x.astype(dtype);
        for (const std::int64_t big : {1LL << 31, 1LL << 40, 1LL << 60}) {
            const std::string text =
                "[number] expected an integer from -2^31 to 2^31 - 1 next to " +
                std::string(name(dtype)) + ", got " + std::to_string(big);
            CHECK_THROWS_WITH_AS(y + big, text.c_str(), DtypeError);
            CHECK_THROWS_WITH_AS(as_variable(y) * big, text.c_str(), DtypeError);
            CHECK_THROWS_WITH_AS(big - y, text.c_str(), DtypeError);
            CHECK_THROWS_WITH_AS(F::minimum(y, big), text.c_str(), DtypeError);
            CHECK_THROWS_WITH_AS(F::where(y > 0, y, big), text.c_str(), DtypeError);
            CHECK((big / y).dtype() == Dtype::float32);
        }
    }
    CHECK((x.astype(Dtype::float32) * wide).dtype() == Dtype::float32);
}
