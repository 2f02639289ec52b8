// Tests of F::split_axis: pieces, gradients of both orders, the inverse of concat.
#include "nodes.hpp"

namespace {

Array counted(const Shape& shape) {
    std::vector<double> v(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
    return Array::from(v, shape);
}

}  // namespace

TEST_CASE("sections and indices") {
    const Array x = counted({2, 6});
    const auto thirds = F::split_axis(x, 3, 1);
    REQUIRE(thirds.size() == 3);
    CHECK(thirds[1].shape() == Shape{2, 2});
    CHECK(values(thirds[0]) == Doubles{0, 1, 6, 7});
    CHECK(values(thirds[2]) == Doubles{4, 5, 10, 11});
    const auto rows = F::split_axis(Variable(x), 2, -2);
    REQUIRE(rows.size() == 2);
    CHECK(values(rows[1].data()) == Doubles{6, 7, 8, 9, 10, 11});
    const auto cut = F::split_axis(x, {1, 1, 4}, 1);
    REQUIRE(cut.size() == 4);
    CHECK(cut[1].shape() == Shape{2, 0});
    CHECK(values(cut[0]) == Doubles{0, 6});
    CHECK(values(cut[2]) == Doubles{1, 2, 3, 7, 8, 9});
    CHECK(values(cut[3]) == Doubles{4, 5, 10, 11});
    // A list with one element is an index, not a number of sections.
    CHECK(F::split_axis(x, {2}, 1)[0].shape() == Shape{2, 2});
    CHECK(F::split_axis(x, {2}, 1)[1].shape() == Shape{2, 4});
    CHECK(F::split_axis(x, std::vector<std::int64_t>{0, 6}, 1)[1].shape() == Shape{2, 6});
    CHECK(F::split_axis(x, std::vector<std::int64_t>{}, 1).size() == 1);
    CHECK(F::split_axis(counted({0, 3}), 5, 0).size() == 5);
    CHECK(F::split_axis(counted({3}), std::int64_t{3}, 0)[2].item<double>() == 2);
    // The pieces are copies.
    thirds[0].fill(9);
    CHECK(x.to_vector<double>()[0] == 0);
}

TEST_CASE("the inverse of concat, values and gradients") {
    for (const int axis : {0, 1, 2, -1}) {
        const Variable x(counted({4, 2, 6}));
        const Variable y = F::concat(F::split_axis(x, 2, axis), axis);
        CHECK(values(y.data()) == values(x.data()));
        F::sum(y * y).backward();
        CHECK(values(x.grad()) == values(2 * x.data()));
        const Variables parts{Variable(draw({2, 1, 3})), Variable(draw({2, 1, 3}))};
        const auto apart = F::split_axis(F::concat(parts, axis), 2, axis);
        for (std::size_t i = 0; i < 2; ++i) {
            CHECK(values(apart[i].data()) == values(parts[i].data()));
        }
    }
}

TEST_CASE("gradients of first and second order, also where some pieces are not used") {
    const std::vector<std::int64_t> indices{1, 1, 3};
    const auto squares = [&](const Variables& v) {
        Variables y;
        for (const Variable& piece : F::split_axis(v[0], indices, 1)) y.push_back(piece * piece);
        return y;
    };
    const Arrays gy{draw({2, 1}), draw({2, 0}), draw({2, 2}), draw({2, 2})};
    gradient_check::check_backward(squares, Arrays{draw({2, 5})}, gy);
    gradient_check::check_double_backward(squares, Arrays{draw({2, 5})}, gy, Arrays{draw({2, 5})});
    const auto product = [](const Variables& v) -> Variables {
        const auto y = F::split_axis(v[0], 3, 0);
        return {y[0] * y[2] * y[0]};
    };
    gradient_check::check_backward(product, Arrays{draw({6})}, Arrays{draw({2})});
    gradient_check::check_double_backward(product, Arrays{draw({6})}, Arrays{draw({2})},
                                          Arrays{draw({6})});
    const Variable x(counted({4}));
    F::sum(F::split_axis(x, 2, 0)[1]).backward();
    CHECK(values(x.grad()) == Doubles{0, 0, 1, 1});
}

TEST_CASE("what is refused") {
    const Array x = counted({2, 6});
    CHECK(error_of<ShapeError>([&] { (void)F::split_axis(x, 4, 1); }) ==
          "[split_axis] sections: expected a divisor of 6, the length of axis 1 of (2, 6), got 4");
    for (const int n : {0, -1}) CHECK_THROWS_AS((void)F::split_axis(x, n, 1), ShapeError);
    for (const int axis : {2, -3}) {
        contains(error_of<ShapeError>([&] { (void)F::split_axis(x, 2, axis); }),
                 "[split_axis] axis: expected one of (2, 6), got ");
        CHECK_THROWS_AS((void)F::split_axis(x, {1, 2}, axis), ShapeError);
    }
    CHECK(error_of<ShapeError>([&] {
              (void)F::split_axis(x, {4, 2}, 1);
          }) == "[split_axis] indices: expected nondecreasing indices from 0 to 6, got [4, 2]");
    CHECK_THROWS_AS((void)F::split_axis(x, {7}, 1), ShapeError);
    CHECK_THROWS_AS((void)F::split_axis(x, {-1}, 1), ShapeError);
    CHECK_THROWS_AS((void)F::split_axis(Array::zeros({}), 1, 0), ShapeError);
    contains(error_of<InvalidError>([] { (void)F::split_axis(Array(), {1}, 0); }),
             "[split_axis] x");
    CHECK_THROWS_AS((void)F::split_axis(Variable(), 1, 0), InvalidError);
    CHECK_THROWS_AS((void)F::split_axis(Array(), 1, 0), InvalidError);
}
