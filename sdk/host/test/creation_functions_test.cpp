// Tests of functions/creation.hpp.
#include "nodes.hpp"

TEST_CASE("arange and linspace") {
    const auto is = [](const Array& y, Dtype dtype, const Doubles& expected) {
        CHECK(y.dtype() == dtype);
        CHECK(y.ndim() == 1);
        return values(y) == expected;
    };
    CHECK(is(F::arange(3), Dtype::int64, {0, 1, 2}));
    CHECK(is(F::arange(3.0), Dtype::float32, {0, 1, 2}));
    CHECK(is(F::arange(2.5F), Dtype::float32, {0, 1, 2}));
    CHECK(is(F::arange(3, Dtype::float16), Dtype::float16, {0, 1, 2}));
    CHECK(is(F::arange(1, 8, 3), Dtype::int64, {1, 4, 7}));
    CHECK(is(F::arange(1, 7, 3), Dtype::int64, {1, 4}));
    CHECK(is(F::arange(2, -1, -1), Dtype::int64, {2, 1, 0}));
    CHECK(is(F::arange(0, 1, 0.25), Dtype::float32, {0, 0.25, 0.5, 0.75}));
    CHECK(is(F::arange(5, 5), Dtype::int64, {}));
    CHECK(is(F::arange(5, 2), Dtype::int64, {}));
    CHECK(is(F::arange(-1), Dtype::int64, {}));
    CHECK(is(F::arange(0, 2, 1, Dtype::bool8), Dtype::bool8, {0, 1}));
    CHECK(F::arange(2, {}, Device::get("cpu:1")).device() == Device::get("cpu:1"));
    CHECK_THROWS_AS((void)F::arange(0, 2, 0), InvalidError);
    CHECK_THROWS_AS((void)F::arange(0, std::nan(""), 1), InvalidError);
    CHECK_THROWS_AS((void)F::arange(0, HUGE_VAL, 1), InvalidError);

    CHECK(is(F::linspace(0, 1, 5), Dtype::float32, {0, 0.25, 0.5, 0.75, 1}));
    CHECK(is(F::linspace(1, 0, 2, false, Dtype::float64), Dtype::float64, {1, 0.5}));
    CHECK(is(F::linspace(2, 9, 1), Dtype::float32, {2}));
    CHECK(is(F::linspace(2, 9, 0), Dtype::float32, {}));
    CHECK(values(F::linspace(0.1, 0.7, 7, true, Dtype::float64))[6] == 0.7);
    CHECK(F::linspace(0, 1).size() == 50);
    CHECK_THROWS_AS((void)F::linspace(0, 1, -1), InvalidError);
    CHECK_THROWS_WITH_AS((void)F::linspace(0, 1, std::int64_t{1} << 41),
                         "[catena.linspace] attribute 'n': expected 0 to 1099511627776, got "
                         "2199023255552", InvalidError);
}

TEST_CASE("arange of large integers is exact") {
    using Longs = std::vector<std::int64_t>;
    const std::int64_t big = (std::int64_t{1} << 53) + 1;
    const auto least = std::numeric_limits<std::int64_t>::min();
    const auto most = std::numeric_limits<std::int64_t>::max();
    CHECK(F::arange(big, big + 2).to_vector<std::int64_t>() == Longs{big, big + 1});
    CHECK(F::arange(big, big - 4, -3).to_vector<std::int64_t>() == Longs{big, big - 3});
    CHECK(F::arange(least, most, most).to_vector<std::int64_t>() == Longs{least, -1, most - 1});
    CHECK(F::arange(most, least, least).to_vector<std::int64_t>() == Longs{most, -1});
    CHECK_THROWS_WITH_AS((void)F::arange(least, most),
                         "[arange] size: expected at most 2^40, got 18446744073709551615",
                         InvalidError);
}

TEST_CASE("eye and tri") {
    CHECK(values(F::eye(2)) == Doubles{1, 0, 0, 1});
    CHECK(F::eye(2).dtype() == Dtype::float32);
    CHECK(values(F::eye(2, 3, 1, Dtype::int32)) == Doubles{0, 1, 0, 0, 0, 1});
    CHECK(values(F::eye(2, 2, -1, Dtype::bool8)) == Doubles{0, 0, 1, 0});
    CHECK(values(F::tri(2, 3)) == Doubles{1, 0, 0, 1, 1, 0});
    CHECK(values(F::tri(2, 3, -1)) == Doubles{0, 0, 0, 1, 0, 0});
    CHECK(values(F::tri(2, 3, 1)) == Doubles{1, 1, 0, 1, 1, 1});
    CHECK(F::eye(0).shape() == Shape{0, 0});
    constexpr int most = std::numeric_limits<int>::max();
    CHECK(values(F::eye(1, 1, most)) == Doubles{0});
    CHECK(values(F::tri(1, 1, most)) == Doubles{1});
    CHECK(values(F::tri(1, 1, -most)) == Doubles{0});
    CHECK(F::eye(0, 3).shape() == Shape{0, 3});
    CHECK(F::eye(1, 1, 0, Dtype::float16, Device::get("cpu:1")).device() == Device::get("cpu:1"));
    CHECK_THROWS_WITH_AS((void)F::eye(-2), "[catena.eye] attribute 'n': expected 0 to 1099511627776, got -2",
                         InvalidError);
}

TEST_CASE("arrays like others") {
    const Array x = Array::ones({2, 1}, Dtype::float16, Device::get("cpu:1"));
    for (const Array& y : {F::zeros_like(x), F::zeros_like(Variable(x)), F::full_like(x, 0)}) {
        CHECK(y.shape() == x.shape());
        CHECK(y.dtype() == x.dtype());
        CHECK(y.device() == x.device());
        CHECK(values(y) == Doubles{0, 0});
    }
    CHECK(values(F::ones_like(x, Dtype::int64)) == Doubles{1, 1});
    CHECK(F::ones_like(x, Dtype::int64).dtype() == Dtype::int64);
    CHECK(values(F::full_like(Variable(x), 2.5)) == Doubles{2.5, 2.5});
    CHECK(values(F::full({2}, 2.5, Dtype::float64)) == Doubles{2.5, 2.5});
    CHECK_THROWS_AS((void)F::zeros_like(Array()), InvalidError);
}

TEST_CASE("one_hot") {
    const Array t = Array::from<int>({2, 0, -1, 3}, {4});
    const Doubles expected = {0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};
    for (const Dtype dtype : {Dtype::int32, Dtype::int64}) {
        const Array y = F::one_hot(t.astype(dtype), 3);
        CHECK(y.shape() == Shape{4, 3});
        CHECK(y.dtype() == Dtype::float32);
        CHECK(values(y) == expected);
    }
    CHECK(values(F::one_hot(Array::from<std::uint8_t>({1}, {1}), 2)) == Doubles{0, 1});
    CHECK(values(F::one_hot(t, 3, 0)) == values(F::transpose(F::one_hot(t, 3))));
    CHECK(F::one_hot(t, 3, -2, Dtype::bool8).shape() == Shape{3, 4});
    CHECK(F::one_hot(t.reshape({2, 1, 2}), 3, 1).shape() == Shape{2, 3, 1, 2});
    CHECK(F::one_hot(Array::from<int>({1}, {1}).reshape({}), 2).shape() == Shape{2});
    CHECK(F::one_hot(t, 0).shape() == Shape{4, 0});
    CHECK(F::one_hot(F::arange(0), 2).shape() == Shape{0, 2});
    CHECK_FALSE(F::one_hot(Variable(t), 3).requires_grad());
    CHECK_THROWS_WITH_AS((void)F::one_hot(Array::ones({2}), 2),
                         "[catena.one_hot] t: expected integers, got float32", DtypeError);
    CHECK_THROWS_WITH_AS((void)F::one_hot(t, 3, 2),
                         "[catena.one_hot] axis: expected from -2 to 1, got 2", ShapeError);
    CHECK_THROWS_AS((void)F::one_hot(t, -1), InvalidError);
    CHECK_THROWS_AS((void)F::one_hot(Array(), 1), InvalidError);
}
