// Tests of functions/logic.hpp: comparisons, logic, selection.
#include "nodes.hpp"

#include <cmath>
#include <limits>

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
const double not_a_number = std::nan("");

Array arr(std::initializer_list<double> v) { return var(v).data(); }

Doubles bools(const Array& y) {
    CHECK(y.dtype() == Dtype::bool8);
    return values(y);
}
Doubles bools(const Variable& y) {
    CHECK_FALSE(y.requires_grad());
    return bools(y.data());
}

}  // namespace

TEST_CASE("comparisons return bool, for every dtype") {
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64,
                              Dtype::int32, Dtype::int64}) {
        CAPTURE(name(dtype));
        const Array a = arr({-1, 0, 2, 2}).astype(dtype), b = arr({-1, 1, 1, 2}).astype(dtype);
        CHECK(bools(F::equal(a, b)) == Doubles{1, 0, 0, 1});
        CHECK(bools(F::not_equal(a, b)) == Doubles{0, 1, 1, 0});
        CHECK(bools(F::greater(a, b)) == Doubles{0, 0, 1, 0});
        CHECK(bools(F::greater_equal(a, b)) == Doubles{1, 0, 1, 1});
        CHECK(bools(F::less(a, b)) == Doubles{0, 1, 0, 0});
        CHECK(bools(F::less_equal(a, b)) == Doubles{1, 1, 0, 1});
        CHECK(bools(F::equal(a, 2)) == Doubles{0, 0, 1, 1});
        CHECK(bools(F::not_equal(0, a)) == Doubles{1, 0, 1, 1});
        CHECK(bools(F::less(a, 0.5)) == Doubles{1, 1, 0, 0});
        CHECK(bools(F::less(0.5, a)) == Doubles{0, 0, 1, 1});
    }
    const Array t = arr({0, 1, 1}) > 0, u = arr({0, 0, 1}) > 0;
    CHECK(bools(F::equal(t, u)) == Doubles{1, 0, 1});
    CHECK(bools(F::greater(t, u)) == Doubles{0, 1, 0});
    CHECK(bools(F::equal(t, 1)) == Doubles{0, 1, 1});
    CHECK(bools(F::equal(Array::from<std::uint8_t>({1, 255}, {2}), 255)) == Doubles{0, 1});
}

TEST_CASE("comparisons broadcast, also over many blocks; empty, 0-d, NaN") {
    const Array column = arr({0, 1, 2}).reshape({3, 1}), row = arr({1, 2});
    const Array y = F::less(column, row);
    CHECK(y.shape() == Shape{3, 2});
    CHECK(bools(y) == Doubles{1, 1, 0, 1, 0, 0});
    CHECK(F::equal(Array::ones({0, 3}), Array::ones({3})).shape() == Shape{0, 3});
    const Array zero = F::equal(Array::ones({}), Array::ones({}));
    CHECK(zero.shape() == Shape{});
    CHECK(zero.item<int>() == 1);
    const Array x = arr({not_a_number, inf, -inf, 0});
    CHECK(bools(F::equal(x, x)) == Doubles{0, 1, 1, 1});
    CHECK(bools(F::not_equal(x, x)) == Doubles{1, 0, 0, 0});
    CHECK(bools(F::less_equal(x, 0)) == Doubles{0, 0, 1, 1});

    const std::int64_t n = 100'003;
    const Array i = F::arange(n);
    const Array mask = i.astype(Dtype::float32) >= 70'000;
    CHECK(F::sum(mask.astype(Dtype::int32)).item<int>() == n - 70'000);
    const Array big = F::where(mask.reshape({n, 1}), Array::from({1.F, 2.F}, {2}), 0);
    CHECK(F::sum(big).item() == 3.0 * (n - 70'000));
    CHECK_THROWS_WITH_AS((void)F::equal(Array::ones({2}), Array::ones({3})),
                         doctest::Contains("x1.shape: expected broadcastable to (2,), got (3,)"),
                         ShapeError);
    CHECK_THROWS_AS((void)F::equal(Array(), Array::ones({3})), InvalidError);
    CHECK_THROWS_AS((void)F::equal(Array(), 1), InvalidError);
}

TEST_CASE("logic takes any dtype") {
    const Array a = arr({0, 0, 2, not_a_number}), b = Array::from<int>({0, 3, 0, 1}, {4});
    CHECK(bools(F::logical_and(a, b)) == Doubles{0, 0, 0, 1});
    CHECK(bools(F::logical_or(a, b)) == Doubles{0, 1, 1, 1});
    CHECK(bools(F::logical_xor(a, b)) == Doubles{0, 1, 1, 0});
    CHECK(bools(F::logical_not(a)) == Doubles{1, 1, 0, 0});
    CHECK(bools(F::logical_not(a > 1)) == Doubles{1, 1, 0, 1});
    const Variable v(a);
    CHECK(bools(F::logical_and(v, as_variable(b))) == Doubles{0, 0, 0, 1});
    CHECK(bools(F::logical_not(v)) == Doubles{1, 1, 0, 0});
    CHECK(F::logical_or(a.reshape({4, 1}), b).shape() == Shape{4, 4});
    CHECK_THROWS_WITH_AS((void)F::logical_and(a, Array()),
                         "[catena.logical_and] x1: expected an array, got none", InvalidError);
}

TEST_CASE("isnan, isinf, isfinite, isclose") {
    for (const Dtype dtype : {Dtype::float16, Dtype::float32, Dtype::float64}) {
        const Array x = arr({not_a_number, inf, -inf, 0, -3}).astype(dtype);
        CHECK(bools(F::isnan(x)) == Doubles{1, 0, 0, 0, 0});
        CHECK(bools(F::isinf(x)) == Doubles{0, 1, 1, 0, 0});
        CHECK(bools(F::isfinite(x)) == Doubles{0, 0, 0, 1, 1});
        CHECK(bools(F::isfinite(Variable(x))) == Doubles{0, 0, 0, 1, 1});
    }
    const Array i = Array::from<int>({0, 1}, {2});
    CHECK(bools(F::isnan(i)) == Doubles{0, 0});
    CHECK(bools(F::isinf(i)) == Doubles{0, 0});
    CHECK(bools(F::isfinite(i)) == Doubles{1, 1});
    const Array a = arr({1, 1, inf, -inf, not_a_number, 1e-9}),
                b = arr({1 + 1e-6, 1.1, inf, inf, not_a_number, 0});
    CHECK(bools(F::isclose(a, b)) == Doubles{1, 0, 1, 0, 0, 1});
    CHECK(bools(F::isclose(a, b, 1e-5, 1e-8, true)) == Doubles{1, 0, 1, 0, 1, 1});
    CHECK(bools(F::isclose(a, b, 0.5, 0)) == Doubles{1, 1, 1, 0, 0, 0});
    CHECK(bools(F::isclose(i, i + 1, 0, 1)) == Doubles{1, 1});
    CHECK_THROWS_AS((void)F::isnan(Array()), InvalidError);
}

TEST_CASE("where selects with bool and other conditions, and takes numbers") {
    const Array x = arr({1, 2, 3}), mask = x > 1;
    const Variable v(x);
    CHECK(values(F::where(mask, x, -1)) == Doubles{-1, 2, 3});
    CHECK(values(F::where(mask, 0.5, x)) == Doubles{1, 0.5, 0.5});
    CHECK(values(F::where(Array::from<int>({0, 7, 0}, {3}), x, -x)) == Doubles{-1, 2, -3});
    CHECK(values(F::where(x.astype(Dtype::float32), x, -x)) == Doubles{1, 2, 3});
    CHECK(values(F::where(mask, Array::from<int>({1}, {1}), 2)) == Doubles{2, 1, 1});
    CHECK(F::where(mask, Array::from<int>({1}, {1}), 2).dtype() == Dtype::int32);
    CHECK(F::where(mask, Array::from<int>({1}, {1}), 0.5).dtype() == Dtype::float32);
    CHECK(F::where(mask, mask, ~mask).dtype() == Dtype::bool8);
    CHECK(values(F::where(mask, mask, ~mask)) == Doubles{1, 1, 1});
    CHECK(F::where(mask.reshape({3, 1}), x, Array::zeros({}, Dtype::float64)).shape() ==
          Shape{3, 3});
    CHECK(values(F::where(Array::from<bool>({true}, {1}).reshape({}), x, 0)) == Doubles{1, 2, 3});
    // Arrays next to variables.
    CHECK(values(F::where(mask, v, 0).data()) == Doubles{0, 2, 3});
    CHECK(values(F::where(v > 1, x, v).data()) == Doubles{1, 2, 3});
    CHECK(values(F::where(mask, x, v).data()) == Doubles{1, 2, 3});
    CHECK(values(F::where(mask, 9, v).data()) == Doubles{1, 9, 9});
    F::sum(F::where(mask, v * v, 3 * v)).backward();
    CHECK(values(v.grad()) == Doubles{3, 4, 6});
    for (const Dtype dtype : {Dtype::float16, Dtype::float32, Dtype::float64})
        CHECK(F::where(mask, Variable(x.astype(dtype)), 0).dtype() == dtype);
    gradient_check::check_double_backward(
        [&](const Variables& z) -> Variables {
            const Variable y = F::where(mask, z[0], z[1]);
            return {y * y * y};
        },
        Arrays{arr({1, -2, 3}), arr({2})}, Arrays{arr({1, 3, 1})},
        Arrays{arr({0.5, 1, 1}), arr({2})});
    CHECK_THROWS_AS((void)F::where(Array(), x, x), InvalidError);
    CHECK_THROWS_AS((void)F::where(mask, x, Array()), InvalidError);
    CHECK_THROWS_AS((void)F::where(mask, Array(), 1), InvalidError);
}

TEST_CASE("maximum and minimum take numbers and arrays next to variables") {
    const Variable v = var({-1, 0, 2});
    CHECK(values(F::maximum(v, 0).data()) == Doubles{0, 0, 2});
    CHECK(values(F::minimum(0.5, v).data()) == Doubles{-1, 0, 0.5});
    CHECK(values(F::maximum(v, arr({1})).data()) == Doubles{1, 1, 2});
    CHECK(values(F::maximum(v.data(), 1)) == Doubles{1, 1, 2});
    CHECK(F::minimum(Array::from<int>({3}, {1}), 2.5).dtype() == Dtype::float32);
    const Array t = v.data() > 0, u = v.data() < 0;
    CHECK(bools(F::maximum(t, u)) == Doubles{1, 0, 1});
    CHECK(bools(F::minimum(t, ~u)) == Doubles{0, 0, 1});
    F::sum(F::maximum(v, 0) * 3).backward();
    CHECK(values(v.grad()) == Doubles{0, 3, 3});
    CHECK_THROWS_WITH_AS((void)F::maximum(Array(), 1),
                         "[maximum] x: expected an array, got an empty handle", InvalidError);
}
