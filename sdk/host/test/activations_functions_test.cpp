// Tests of activations and normalizations that are compositions. Reference values are in
// golden/activations.py and golden/normalization.py.
#include "nodes.hpp"

#include <cmath>

namespace {

Variable of(const Shape& shape) { return Variable(draw(shape)); }
Doubles gradient(const Variable& x, Variable y) {
    x.cleargrad();
    F::sum(y).backward();
    return values(x.grad());
}

}  // namespace

TEST_CASE("activations on arrays record no graph and give the same values") {
    const Array x = draw({2, 4, 3});
    const Variable v(x);
    CHECK(values(F::crelu(x)) == values(F::crelu(v).data()));
    CHECK(values(F::maxout(x, 2)) == values(F::maxout(v, 2).data()));
    CHECK(values(F::glu(x, 1)) == values(F::glu(v, 1).data()));
    CHECK(values(F::selu(x)) == values(F::selu(v).data()));
    CHECK(values(F::normalize(x)) == values(F::normalize(v).data()));
    CHECK(values(F::instance_normalization(x)) == values(F::instance_normalization(v).data()));
}

TEST_CASE("swiglu of halves equals swiglu of two arrays") {
    const Array a = draw({2, 3}), b = draw({2, 3});
    CHECK(values(F::swiglu(F::concat({a, b}, 1))) == values(F::swiglu(a, b)));
    CHECK(F::swiglu(of({2, 0})).shape() == Shape{2, 0});
    CHECK(F::glu(of({0, 4})).shape() == Shape{0, 2});
}

TEST_CASE("maxout of one element per pool, and of a whole axis") {
    const Variable x = of({2, 6});
    CHECK(values(F::maxout(x, 1).data()) == values(x.data()));
    CHECK(F::maxout(x, 6).shape() == Shape{2, 1});
    CHECK(F::maxout(x, 3, -1).shape() == Shape{2, 2});
}

TEST_CASE("normalize: rows of zeros, an unusual axis") {
    const Variable x(Array::from<double>({0, 0, 3, 4}, {2, 2}));
    const Doubles y = values(F::normalize(x).data());
    CHECK(y[0] == 0);
    CHECK(y[2] == doctest::Approx(0.6).epsilon(1e-5));
    const Doubles g = gradient(x, F::normalize(x));
    CHECK(g[0] == doctest::Approx(1e5));  // that of x / eps
    CHECK(std::isfinite(g[2]));
    CHECK(values(F::normalize(x, 1e-5, 0).data())[3] == doctest::Approx(1).epsilon(1e-5));
}

TEST_CASE("weight_standardization: mean 0 and variance 1 for each output") {
    const Doubles w = values(F::weight_standardization(draw({3, 2, 5})));
    for (std::size_t r = 0; r < 3; ++r) {
        double sum = 0, squares = 0;
        for (std::size_t i = 0; i < 10; ++i) {
            sum += w[10 * r + i];
            squares += w[10 * r + i] * w[10 * r + i];
        }
        CHECK(sum == doctest::Approx(0));
        CHECK(squares / 10 == doctest::Approx(1).epsilon(1e-3));
    }
    CHECK(F::weight_standardization(of({0, 3})).shape() == Shape{0, 3});
}

TEST_CASE("activations and normalizations: wrong input") {
    CHECK_THROWS_WITH_AS(F::glu(of({2, 3})),
                         "[catena.glu] x.shape[1]: expected an even extent, got 3", ShapeError);
    CHECK_THROWS_WITH_AS(F::swiglu(of({2, 3}), 2),
                         "[catena.swiglu_halves] axis: expected from -2 to 1, got 2", ShapeError);
    CHECK_THROWS_WITH_AS(F::geglu(Variable()), "[catena.geglu] x: expected an array, got none",
                         InvalidError);
    CHECK_THROWS_WITH_AS(F::crelu(of({2}), 1), "[catena.crelu] axis: expected from -1 to 0, got 1",
                         ShapeError);
    CHECK_THROWS_WITH_AS(F::maxout(of({2, 5}), 2),
                         "[catena.maxout] x.shape[1]: expected a multiple of pool_size 2, got 5",
                         ShapeError);
    CHECK_THROWS_WITH_AS(F::maxout(of({2, 4}), 0),
                         "[catena.maxout] attribute 'pool_size': expected 1 to 2147483648, got 0",
                         InvalidError);
    CHECK_THROWS_WITH_AS(F::swish(of({2, 3, 4}), of({4})),
                         "[catena.swish] beta.shape: expected the extents of x (2, 3, 4) from axis "
                         "1 on, or (), got (4,)",
                         ShapeError);
    CHECK_THROWS_WITH_AS(
        F::swish(of({2}), of({2})),
        "[catena.swish] beta.shape: expected the extents of x (2,) from axis 1 on, or "
        "(), got (2,)",
        ShapeError);
    CHECK_THROWS_WITH_AS(F::celu(of({2}), 0),
                         "[catena.celu] alpha: expected a number other than 0, got 0.0",
                         InvalidError);
    CHECK_THROWS_WITH_AS(F::swish(of({2}), Variable()),
                         "[catena.swish] beta: expected an array, got none", InvalidError);
    CHECK_THROWS_WITH_AS(F::instance_normalization(of({3})),
                         "[catena.instance_normalization] x.ndim: expected at least 2, got 1",
                         ShapeError);
    CHECK_THROWS_WITH_AS(F::weight_standardization(Variable()),
                         "[catena.weight_standardization] W: expected an array, got none",
                         InvalidError);
    CHECK_THROWS_AS(F::normalize(Variable()), InvalidError);
    CHECK_THROWS_AS(F::normalize(of({3})), Error);  // the default axis is 1
}
