// Tests of functions/indexing.hpp: edges, errors, repeated indices. Golden values cover the rest.
#include "nodes.hpp"

namespace {

using Ids = std::vector<std::int64_t>;

Array counted(const Shape& shape) {
    std::vector<double> v(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
    return Array::from(v, shape);
}
Array ids(std::initializer_list<std::int64_t> values) {
    return Array::from(values, {static_cast<std::int64_t>(values.size())});
}
Array mask_of(std::initializer_list<double> values, const Shape& shape) {
    return Array::from(values, shape).astype(Dtype::bool8);
}

}  // namespace

TEST_CASE("integers, slices, ellipsis and new axes") {
    const Array x = counted({2, 3, 4});
    CHECK(values(F::get_item(x, {1, 2, 3})) == Doubles{23});
    CHECK(F::get_item(x, {1, 2, 3}).shape() == Shape{});
    CHECK(values(F::get_item(x, {-1, 0})) == Doubles{12, 13, 14, 15});
    CHECK(F::get_item(x, {1}).shape() == Shape{3, 4});
    CHECK(values(F::get_item(x, {ellipsis, 1})) == Doubles{1, 5, 9, 13, 17, 21});
    CHECK(F::get_item(x, {newaxis, ellipsis, newaxis, slice(1, {})}).shape() ==
          Shape{1, 2, 3, 1, 3});
    CHECK(values(F::get_item(x, {0, slice({}, {}, -2), slice(-3, -1)})) == Doubles{9, 10, 1, 2});
    CHECK(F::get_item(x, {slice(), slice(5, 9), slice(3, 0)}).shape() == Shape{2, 0, 0});
    CHECK(F::get_item(x, {slice(5, 0, -3), slice(-9, 9, 2)}).shape() == Shape{1, 2, 4});
    CHECK(values(F::get_item(x, std::vector<Index>{1, slice(), 0})) == Doubles{12, 16, 20});
    CHECK(F::get_item(counted({}), {ellipsis, newaxis}).shape() == Shape{1});
    CHECK(F::get_item(counted({0, 3}), {slice(), 1}).shape() == Shape{0});
    // One list for each of begin, end and step is the function of the plugin, which keeps axes.
    CHECK(F::get_item(x, {1}, {2}).shape() == Shape{1, 3, 4});
}

TEST_CASE("the shape of a slice is that of the plugin's function") {
    const Array x = counted({5});
    int wrong = 0;
    for (std::int64_t step : {-6, -2, -1, 1, 3, 6})
        for (std::int64_t begin = -7; begin <= 7; ++begin)
            for (std::int64_t end = -7; end <= 7; ++end)
                wrong += values(F::get_item(x, {slice(begin, end, step), newaxis})) !=
                         values(F::get_item(x, {begin}, {end}, {step}));
    CHECK(wrong == 0);
}

TEST_CASE("index arrays: where their axes are, as in NumPy") {
    const Array x = counted({4, 3, 2, 5});
    const auto shape = [&](std::initializer_list<Index> index) {
        return F::get_item(x, index).shape();
    };
    const Array i = Array::from<std::int64_t>({1, 0, 1, 1, 0, 0}, {2, 3});
    const Array j = ids({0, 1, 1});
    CHECK(shape({i}) == Shape{2, 3, 3, 2, 5});
    CHECK(shape({slice(), i, slice()}) == Shape{4, 2, 3, 2, 5});
    CHECK(shape({slice(), i, j}) == Shape{4, 2, 3, 5});
    CHECK(shape({i, slice(), j}) == Shape{2, 3, 3, 5});
    CHECK(shape({slice(), i, slice(), j}) == Shape{2, 3, 4, 2});
    CHECK(shape({0, slice(), j}) == Shape{3, 3, 5});
    CHECK(shape({slice(), 0, j}) == Shape{4, 3, 5});
    CHECK(shape({slice(), j, 1}) == Shape{4, 3, 5});
    CHECK(shape({slice(), j, ellipsis, 0}) == Shape{3, 4, 2});
    CHECK(shape({slice(), 0, ellipsis, j, j}) == Shape{3, 4});
    CHECK(shape({newaxis, ids({0}), newaxis, ids({1})}) == Shape{1, 1, 1, 2, 5});
    CHECK(shape({ids({}), ids({2})}) == Shape{0, 2, 5});
    CHECK(shape({Array::from<std::int64_t>({2}, {}), slice(), j}) == Shape{3, 3, 5});
    // All elements of an index with four arrays, of both dtypes and with negative indices.
    const Array y = F::get_item(x, {j.astype(Dtype::int32), i, ids({-1}), -2});
    CHECK(y.shape() == Shape{2, 3});
    CHECK(values(y) == Doubles{18, 38, 48, 18, 38, 38});
    CHECK(values(F::get_item(x, {slice(1, {}, 2), 2, j, slice({}, {}, -4)})) ==
          Doubles{54, 50, 59, 55, 59, 55, 114, 110, 119, 115, 119, 115});
    // Indices may be variables, and elements integers or bools.
    CHECK(values(F::get_item(Variable(x), {Variable(j), 0, 0, 0}).data()) == Doubles{0, 30, 30});
    CHECK(F::get_item(j, {ids({2, -3})}).to_vector<std::int64_t>() == Ids{1, 0});
    const Array mask = F::get_item(mask_of({1, 0, 1}, {3}), {slice({}, {}, -1), newaxis});
    CHECK(mask.dtype() == Dtype::bool8);
    CHECK(values(mask) == Doubles{1, 0, 1});
}

TEST_CASE("masks") {
    const Array x = counted({2, 3, 2});
    CHECK(values(F::get_item(x, {x > 8})) == Doubles{9, 10, 11});
    CHECK(F::get_item(x, {x > 99}).shape() == Shape{0});
    CHECK(F::get_item(x, {mask_of({0, 0}, {2})}).shape() == Shape{0, 3, 2});
    CHECK(values(F::get_item(x, {slice(), mask_of({1, 0, 1}, {3}), 1})) == Doubles{1, 5, 7, 11});
    CHECK(values(F::get_item(x, {mask_of({1, 0, 0, 0, 1, 1}, {2, 3}), 0})) == Doubles{0, 8, 10});
    CHECK(values(F::get_item(x, {0, mask_of({0, 1, 1, 0, 1, 0}, {3, 2})})) == Doubles{1, 2, 4});
    // A mask broadcasts with an index array.
    CHECK(values(F::get_item(x, {ids({1, 0}), mask_of({1, 0, 1}, {3}), 0})) == Doubles{6, 4});
    CHECK(F::get_item(counted({0, 2}), {mask_of({}, {0, 2})}).shape() == Shape{0});
    // A 0-d mask selects all or nothing along a new axis.
    CHECK(F::get_item(x, {mask_of({1}, {})}).shape() == Shape{1, 2, 3, 2});
    CHECK(F::get_item(x, {slice(), mask_of({0}, {})}).shape() == Shape{2, 0, 3, 2});
    CHECK(values(F::get_item(x, {1, mask_of({1}, {}), ids({2, 0}), 1})) == Doubles{11, 7});
}

TEST_CASE("gradients of get_item and set_item, where elements repeat") {
    const Variable x(counted({3, 2}));
    F::sum(F::get_item(x, {ids({2, 0, 2, 2}), 1})).backward();
    CHECK(values(x.grad()) == Doubles{0, 1, 0, 0, 0, 3});
    const Array i = ids({1, 0, 1});
    const auto squares = [&](const Variables& v) -> Variables {
        const Variable y = F::get_item(v[0], {i, slice({}, {}, -1), ids({0, 1, 1}), newaxis});
        return {y * y};
    };
    const Arrays gy{draw({3, 3, 1})};
    gradient_check::check_backward(squares, Arrays{draw({2, 3, 2})}, gy);
    gradient_check::check_double_backward(squares, Arrays{draw({2, 3, 2})}, gy,
                                          Arrays{draw({2, 3, 2})});
    const auto set = [&](const Variables& v) -> Variables {
        return {F::set_item(v[0] * v[0], {i, 1}, v[1] * v[1])};
    };
    gradient_check::check_backward(set, Arrays{draw({2, 3}), draw({3})}, Arrays{draw({2, 3})});
    gradient_check::check_double_backward(set, Arrays{draw({2, 3}), draw({3})},
                                          Arrays{draw({2, 3})}, Arrays{draw({2, 3}), draw({3})});
}

TEST_CASE("set_item") {
    const Array x = counted({2, 3});
    const auto one = Array::full({}, 9, Dtype::float64);
    CHECK(values(F::set_item(x, {slice(), 1}, one)) == Doubles{0, 9, 2, 3, 9, 5});
    CHECK(values(F::set_item(x, {x > 3}, one)) == Doubles{0, 1, 2, 3, 9, 9});
    CHECK(values(F::set_item(x, {x > 7}, one)) == values(x));
    CHECK(values(F::set_item(x, {ids({1, 0, 1})}, Array::from<double>({7, 8, 9}, {3, 1}))) ==
          Doubles{8, 8, 8, 9, 9, 9});  // the last value counts
    CHECK(values(x) == values(counted({2, 3})));
    CHECK_THROWS_AS((void)F::set_item(x, {slice(), 1}, counted({3})), ShapeError);
}

TEST_CASE("set_item: slices, integers and new axes") {
    const Array x = counted({3, 4});
    const auto set = [&](std::initializer_list<Index> index, const Array& value) {
        const Array y = F::set_item(x, index, value);
        CHECK(values(F::get_item(y, index)) ==
              values(F::broadcast_to(value, F::get_item(x, index).shape())));
        CHECK(values(F::set_item(Variable(x), index, Variable(value)).data()) == values(y));
        return values(y);
    };
    const Array one = Array::full({}, -1, Dtype::float64);
    CHECK(set({slice({}, {}, -2), slice(1, 3)}, one) ==
          Doubles{0, -1, -1, 3, 4, 5, 6, 7, 8, -1, -1, 11});
    CHECK(set({-1, newaxis, slice(2, {})}, counted({1, 2})) ==
          Doubles{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1});
    CHECK(set({ellipsis}, one) == Doubles(12, -1));
    CHECK(set({slice(2, 2)}, one) == values(x));
    CHECK(set({slice(1, {}), ids({0, -1})}, counted({2, 2})) ==
          Doubles{0, 1, 2, 3, 0, 5, 6, 1, 2, 9, 10, 3});
    CHECK(set({ids({2, 0}), newaxis, ids({3, 1})}, counted({2, 1})) ==
          Doubles{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0});
    CHECK(values(x) == values(counted({3, 4})));
    // A larger value dtype changes that of the result, and so does not change values.
    CHECK(F::set_item(x.astype(Dtype::int32), {0}, one).dtype() == Dtype::float64);
    CHECK_THROWS_AS((void)F::set_item(x, {ids({3})}, one), ValueError);
}

TEST_CASE("set_item with slices: gradients") {
    const auto set = [](const Variables& v) -> Variables {
        return {F::set_item(v[0] * v[0], {slice({}, {}, 2), 1}, v[1] * v[1])};
    };
    const Arrays x{draw({3, 2}), draw({})}, gy{draw({3, 2})};
    gradient_check::check_backward(set, x, gy);
    gradient_check::check_double_backward(set, x, gy, Arrays{draw({3, 2}), draw({})});
    const Variable v(counted({2})), all(counted({2}));
    F::sum(F::set_item(v, {ellipsis}, all)).backward();
    CHECK(values(v.grad()) == Doubles{0, 0});
    CHECK(values(all.grad()) == Doubles{1, 1});
}

TEST_CASE("bytes and masks are indexed as numbers are") {
    const Array i = ids({2, 0, 2}), f = counted({3, 2}) * 40;
    for (const Dtype dtype : {Dtype::uint8, Dtype::bool8}) {
        CAPTURE(name(dtype));
        const Array x = f.astype(dtype), src = F::flip(x);
        const auto is = [&](const Array& y, const Array& expected) {
            CHECK(y.dtype() == dtype);
            return values(y) == values(expected.astype(dtype));
        };
        const Array fx = x.astype(Dtype::float64), fsrc = src.astype(Dtype::float64);
        CHECK(is(F::get_item(x, {i}), F::get_item(fx, {i})));
        CHECK(is(F::get_item(x, {x > 100}), F::get_item(fx, {x > 100})));
        CHECK(is(F::take(x, i), F::take(fx, i)));
        CHECK(is(F::set_item(x, {slice(1, {})}, F::get_item(src, {0})),
                 F::set_item(fx, {slice(1, {})}, F::get_item(fsrc, {0}))));
        CHECK(is(F::set_item(x, {i}, src), F::set_item(fx, {i}, fsrc)));
        CHECK(is(F::put(x, i, src), F::put(fx, i, fsrc)));
        const Array along = Array::from<std::int64_t>({2, 0, 2, 1}, {2, 2});
        CHECK(is(F::gather(x, 0, along), F::gather(fx, 0, along)));
        CHECK(is(F::scatter(x, 0, along, src), F::scatter(fx, 0, along, fsrc)));
        CHECK(is(F::select_item(x, ids({1, 0, 1})), F::select_item(fx, ids({1, 0, 1}))));
        // Sums have the dtype of x: modulo 256, or whether any is true.
        CHECK(is(F::index_add(x, 0, i, src), F::index_add(fx, 0, i, fsrc).astype(Dtype::int32)));
        CHECK(is(F::scatter_add(x, 0, along, src),
                 F::scatter_add(fx, 0, along, fsrc).astype(Dtype::int32)));
    }
    CHECK_THROWS_WITH_AS((void)F::index_add(f, 0, i, f.reshape({2, 3})),
                         "[catena.index_add] src.shape: expected (3, 2), got (2, 3)", ShapeError);
}

TEST_CASE("get_item refuses") {
    const Array x = counted({2, 3});
    const auto text = [&]<class E>(std::initializer_list<Index> index, std::type_identity<E>) {
        return error_of<E>([&] { (void)F::get_item(x, index); });
    };
    constexpr std::type_identity<InvalidError> invalid;
    constexpr std::type_identity<ShapeError> shape;
    constexpr std::type_identity<ValueError> value;
    CHECK(text({0, 1, slice()}, invalid) ==
          "[get_item] index: expected items for at most 2 axes of (2, 3), got 3");
    CHECK(text({ellipsis, ellipsis}, invalid) ==
          "[get_item] index: expected at most one ellipsis, got 2");
    CHECK(text({slice(0, 1, 0)}, invalid) == "[get_item] index[0].step: expected no 0, got 0");
    CHECK(text({slice(), 3}, value) ==
          "[get_item] index[1]: expected an index from -3 to 2, got 3");
    CHECK(text({-3}, value) == "[get_item] index[0]: expected an index from -2 to 1, got -3");
    CHECK(text({Array()}, invalid) == "[get_item] index: expected an array, got an empty handle");
    CHECK(text({slice(), mask_of({1, 1}, {2})}, shape) ==
          "[get_item] index[1].shape: expected the extents of x (2, 3) from axis 1, got (2,)");
    CHECK(text({ids({0, 1}), ids({0, 1, 2})}, shape) ==
          "[catena.get_item_at] indices: expected arrays that broadcast together, got (2,) and "
          "(3,)");
    CHECK(text({x}, std::type_identity<DtypeError>()) ==
          "[get_item] index[0]: expected int32, int64 or bool, got float64");
    contains(text({ids({0, 2})}, value), "indices[1]: expected an index from -2 to 1, got 2");
    contains(text({ids({0, 1}), ids({-4, 0})}, value),
             "x[1][0]: expected an index from -3 to 2, got -4");
    CHECK(error_of<ValueError>([] { (void)F::get_item(counted({0}), {0}); }) ==
          "[get_item] index[0]: expected no integer, for the axis has no elements, got 0");
    CHECK_THROWS_AS((void)F::get_item(Array(), {0}), InvalidError);
    CHECK_THROWS_AS((void)F::get_item(Variable(), {0}), InvalidError);
}

TEST_CASE("gather, scatter, scatter_add: indices that are shorter than x") {
    const Array x = counted({3, 4});
    const Array i = Array::from<std::int64_t>({3, 0, 0, -1}, {2, 2});
    CHECK(values(F::gather(x, 1, i)) == Doubles{3, 0, 4, 7});
    CHECK(values(F::gather(x, 0, Array::from<std::int64_t>({2, 0}, {1, 2}))) == Doubles{8, 1});
    const Array src = counted({3, 3}) + 20;
    CHECK(values(F::scatter(x, 1, i, src)) == Doubles{21, 1, 2, 20, 23, 5, 6, 24, 8, 9, 10, 11});
    CHECK(values(F::scatter_add(x, 1, i, src)) ==
          Doubles{21, 1, 2, 23, 27, 5, 6, 31, 8, 9, 10, 11});
    const Array none = Array::zeros({2, 0}, Dtype::int64);
    CHECK(values(F::scatter(x, 1, none, src)) == values(x));
    CHECK(values(F::scatter_add(x, 1, none, src)) == values(x));
    CHECK(F::gather(x, 1, none).shape() == Shape{2, 0});
    // The last of repeated indices counts, and the others get no gradient. What is replaced by a
    // number was infinite.
    const Array infinite =
        Array::full({2}, std::numeric_limits<double>::infinity(), Dtype::float64);
    const Variable y(infinite), s(Array::from<double>({1, 2, 3}, {3}));
    const Variable z = F::scatter(y, 0, as_variable(ids({0, 1, 0})), s);
    CHECK(values(z.data()) == Doubles{3, 2});
    F::sum(z * z).backward();
    CHECK(values(s.grad()) == Doubles{0, 4, 6});
    CHECK(values(y.grad()) == Doubles{0, 0});
    const auto short_ones = [&](const Variables& v) -> Variables {
        const Variable j = as_variable(i);
        return {F::scatter(v[0] * v[0], 1, j, v[1] * v[1]), F::scatter_add(v[0], 1, j, v[1]) * v[0],
                F::gather(v[0] * v[0], 1, j)};
    };
    const Arrays gy{draw({3, 4}), draw({3, 4}), draw({2, 2})};
    const Arrays in{draw({3, 4}), draw({3, 3})};
    gradient_check::check_backward(short_ones, in, gy);
    gradient_check::check_double_backward(short_ones, in, gy, in);

    CHECK(error_of<ShapeError>([&] {
              (void)F::gather(x, 1, counted({4, 1}));
          }) ==
          "[catena.gather] indices.shape: expected at most (3, 4) but for axis 1, got (4, 1)");
    CHECK(error_of<ShapeError>([&] {
              (void)F::scatter(x, -1, i, counted({1, 3}));
          }) ==
          "[catena.scatter] indices.shape: expected at most (1, 3), the shape of src, got (2, 2)");
    CHECK(error_of<ShapeError>([&] { (void)F::scatter_add(x, 2, i, src); }) ==
          "[catena.scatter_add] axis: expected from -2 to 1, got 2");
    CHECK_THROWS_AS((void)F::scatter(x, 1, counted({1, 1}), src), DtypeError);
    CHECK_THROWS_AS((void)F::scatter(x, 1, i + 9, src), ValueError);
    CHECK_THROWS_AS((void)F::scatter_add(x, 1, i - 9, src), ValueError);
}

TEST_CASE("index_add and put") {
    const Array x = counted({2, 3});
    CHECK(values(F::index_add(x, 1, ids({2, 2, -3}), counted({2, 3}))) ==
          Doubles{2, 1, 3, 8, 4, 12});
    CHECK_THROWS_AS((void)F::index_add(x, 1, ids({0}), counted({2, 2})), ShapeError);
    CHECK_THROWS_AS((void)F::index_add(x, 2, ids({0}), x), ShapeError);
    CHECK(values(F::put(x, ids({5, 0, 5}), counted({3}) + 10)) == Doubles{11, 1, 2, 3, 4, 12});
    CHECK(values(F::put(x, ids({0, -1, 1}), Array::from<double>({7, 8}, {2}))) ==
          Doubles{7, 7, 2, 3, 4, 8});
    CHECK(values(F::put(x, ids({}), counted({0}))) == values(x));
    CHECK(error_of<ShapeError>([&] { (void)F::put(x, ids({0}), counted({0})); }) ==
          "[catena.put] values: expected at least one, got none");
    const Array integers = F::put(ids({1, 2, 3}), ids({1}), ids({9}));
    CHECK(integers.to_vector<std::int64_t>() == Ids{1, 9, 3});
}

TEST_CASE("nonzero, select_item, permutate") {
    const Array x = Array::from<double>({0, 2, -0.0, 1e-300, 0, -1}, {2, 3});
    CHECK(F::nonzero(x).shape() == Shape{3, 2});
    CHECK(F::nonzero(x).to_vector<std::int64_t>() == Ids{0, 1, 1, 0, 1, 2});
    CHECK(F::nonzero(x > 5).shape() == Shape{0, 2});
    CHECK(F::nonzero(counted({})).shape() == Shape{0, 0});
    CHECK(F::nonzero(Variable(ids({0, 4}))).to_vector<std::int64_t>() == Ids{1});

    CHECK(values(F::select_item(x, ids({1, -1}))) == Doubles{2, -1});
    CHECK_THROWS_AS((void)F::select_item(x, ids({1})), ShapeError);
    CHECK_THROWS_AS((void)F::select_item(counted({2}), ids({1, 1})), ShapeError);
    CHECK_THROWS_AS((void)F::select_item(x, ids({1, 3})), ValueError);

    const Array order = ids({2, 0, 1});
    CHECK(values(F::permutate(x, order, 1)) == Doubles{-0.0, 0, 2, -1, 1e-300, 0});
    CHECK(values(F::permutate(F::permutate(x, order, 1), order, -1, true)) == values(x));
    CHECK_THROWS_AS((void)F::permutate(x, ids({0, 1, 0}), 1, true), ValueError);
    CHECK_THROWS_AS((void)F::permutate(x, ids({0, 3, 1}), 1), ValueError);
    CHECK_THROWS_AS((void)F::permutate(x, ids({0, 1}), 1), ShapeError);
    CHECK_THROWS_AS((void)F::permutate(x, order, 2), ShapeError);
}

TEST_CASE("volatile variables") {
    const Variable x(counted({3, 2}), true);
    CHECK(F::get_item(x, {ids({0, 2}), ids({1, 0})}).is_volatile());
    CHECK(F::scatter(x, 0, as_variable(Array::zeros({1, 2}, Dtype::int64)),
                     as_variable(counted({1, 2})))
              .is_volatile());
}
