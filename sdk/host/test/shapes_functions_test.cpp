// Tests of functions/shapes.hpp: shared memory, dtypes, edges, errors. Golden cases have the values.
#include "nodes.hpp"

namespace {

Array counted(const Shape& shape, Dtype dtype = Dtype::float64) {
    return F::arange(shape.size(), dtype).reshape(shape);
}
bool shares(const Array& a, const Array& b) {
    return a.host<const double>().data() == b.host<const double>().data();
}

}  // namespace

TEST_CASE("results that only have another shape share the memory of x") {
    const Array x = counted({2, 1, 3});
    CHECK(shares(F::expand_dims(x, 0), x));
    CHECK(F::expand_dims(x, {0, -1}).shape() == Shape{1, 2, 1, 3, 1});
    CHECK(F::expand_dims(counted({}), 0).shape() == Shape{1});
    CHECK(shares(F::squeeze(x), x));
    CHECK(F::squeeze(x).shape() == Shape{2, 3});
    CHECK(F::squeeze(x, {1}).shape() == Shape{2, 3});
    CHECK(F::squeeze(counted({1, 1})).shape() == Shape{});
    CHECK(shares(F::flatten(x), x));
    CHECK(F::flatten(counted({})).shape() == Shape{1});
    CHECK(F::flatten(counted({2, 0})).shape() == Shape{0});
    // Axes of length 1 move without a copy; others do not.
    CHECK(shares(F::moveaxis(x, 1, 0), x));
    CHECK(F::moveaxis(x, 1, 0).shape() == Shape{1, 2, 3});
    CHECK(shares(F::swapaxes(x, 0, 1), x));
    CHECK_FALSE(shares(F::swapaxes(x, 0, 2), x));
    CHECK(values(F::flip(x)) == Doubles{5, 4, 3, 2, 1, 0});
    CHECK(values(F::flip(Variable(x)).data()) == Doubles{5, 4, 3, 2, 1, 0});
    CHECK(F::flip(counted({})).shape() == Shape{});
    CHECK(F::rollaxis(x, 2).shape() == Shape{3, 2, 1});
    CHECK(F::rollaxis(x, -1, -2).shape() == Shape{2, 3, 1});
    CHECK(F::rollaxis(x, 0, 3).shape() == Shape{1, 3, 2});
    for (const Array& same :
         {F::moveaxis(x, {0, 2}, {0, 2}), F::roll(x, 4, 0),
          F::roll(x, 5, 1), F::tile(x, 1), F::repeat(x, 1, 0), F::pad(x, 0), F::pad(x, 0, "edge"),
          F::broadcast({x, x})[1]})
        CHECK(shares(same, x));
    // Other results are copies.
    const Array one = counted({3});
    F::concat({one}, 0).fill(7);
    F::stack({one}).fill(7);
    F::separate(one)[0].fill(7);
    CHECK(values(one) == Doubles{0, 1, 2});
}

TEST_CASE("functions that change nothing return a variable of its own") {
    const Variable x(counted({2, 3}));
    const Variable all[] = {F::tile(x, 1),
                            F::tile(x, {1, 1}),
                            F::repeat(x, 1, 0),
                            F::pad(x, 0, "constant"),
                            F::pad(x, 0, "edge"),
                            F::squeeze(x),
                            F::moveaxis(x, 0, 0),
                            F::swapaxes(x, 1, 1),
                            F::rollaxis(x, 0),
                            F::roll(x, 4, 0),
                            F::flatten(Variable(counted({6}))),
                            F::broadcast({x, x})[1],
                            F::get_item(x, {ellipsis}),
                            F::concat({x}, 0),
                            F::dropout(x, 0.5, false)};
    for (const Variable& y : all) {
        INFO(y.creator()->label());
        CHECK(y.node_ref() != x.node_ref());
        REQUIRE(y.creator());
        y.set_name("y");
        CHECK(x.name() == "");
        y.set_grad(F::full(y.shape(), 2, Dtype::float64));
        y.backward();
        if (y.ndim() == 1) continue;  // of another variable
        CHECK(values(x.grad()) == Doubles{2, 2, 2, 2, 2, 2});
        y.set_data(F::full(y.shape(), 7, Dtype::float64));
        CHECK(values(x.data()) == Doubles{0, 1, 2, 3, 4, 5});
        x.cleargrad();
    }
}

TEST_CASE("every dtype can be rearranged") {
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64,
                              Dtype::int32, Dtype::int64, Dtype::uint8, Dtype::bool8}) {
        CAPTURE(name(dtype));
        const Array x = (counted({2, 3}) > 1).astype(dtype);
        const auto is = [&](const Array& y, const Doubles& expected) {
            CHECK(y.dtype() == dtype);
            return values(y) == expected;
        };
        CHECK(is(F::stack({x, x}, 2), {0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}));
        CHECK(is(F::separate(x)[0], {0, 0, 1}));
        CHECK(is(F::swapaxes(x, 0, 1), {0, 1, 0, 1, 1, 1}));
        CHECK(is(F::flip(x, 1), {1, 0, 0, 1, 1, 1}));
        CHECK(is(F::roll(x, 1), {1, 0, 0, 1, 1, 1}));
        CHECK(is(F::tile(x, {1, 2}), {0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1}));
        CHECK(is(F::repeat(x, 2, 0), {0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1}));
        CHECK(is(F::pad(x, {0, 0, 1, 0}), {0, 0, 0, 1, 0, 1, 1, 1}));
        CHECK(is(F::pad(x, {0, 0, 1, 0}, "reflect"), {0, 0, 0, 1, 1, 1, 1, 1}));
        if (dtype == Dtype::uint8) continue;  // arithmetic has no kernels for uint8
        CHECK(is(F::pad(x, {0, 0, 1, 0}, "constant", 1), {1, 0, 0, 1, 1, 1, 1, 1}));
        CHECK(is(F::triu(x), {0, 0, 1, 0, 1, 1}));
    }
    // Halves, whose rows are converted, and integers do not mix with other floating dtypes.
    CHECK(F::concat({counted({1}, Dtype::float16), counted({1}, Dtype::int64)}, 0).dtype() ==
          Dtype::float16);
}

TEST_CASE("empty arrays, one element, 0-d") {
    const Array none = counted({0, 3}), one = counted({1, 1}), scalar = counted({});
    CHECK(F::stack({none, none}, -1).shape() == Shape{0, 3, 2});
    CHECK(F::stack({scalar, scalar}).shape() == Shape{2});
    CHECK(F::vstack({scalar, scalar}).shape() == Shape{2, 1});
    CHECK(F::hstack({scalar, scalar}).shape() == Shape{2});
    CHECK(F::dstack({scalar}).shape() == Shape{1, 1, 1});
    CHECK(F::separate(none).empty());
    CHECK(F::separate(none, 1).size() == 3);
    CHECK(F::separate(none, 1)[0].shape() == Shape{0});
    CHECK(F::separate(counted({2}))[1].item() == 1);
    CHECK(F::broadcast({scalar, none})[0].shape() == Shape{0, 3});
    CHECK(F::broadcast({one, none})[0].shape() == Shape{0, 3});
    CHECK(F::flip(none, 0).shape() == Shape{0, 3});
    CHECK(F::roll(none, 2).shape() == Shape{0, 3});
    CHECK(F::roll(scalar, 1).shape() == Shape{});
    CHECK(F::tile(one, {0, 2}).shape() == Shape{0, 2});
    CHECK(F::tile(scalar, {2, 2}).shape() == Shape{2, 2});
    CHECK(F::tile(none, 2).shape() == Shape{0, 6});
    CHECK(F::repeat(scalar, 3).shape() == Shape{3});
    CHECK(F::repeat(one, 0, 1).shape() == Shape{1, 0});
    CHECK(F::repeat(counted({2}), {0, 0}, 0).shape() == Shape{0});
    CHECK(F::repeat(none, std::vector<std::int64_t>{}, 0).shape() == Shape{0, 3});
    CHECK(values(F::pad(none, {1, 0, 0, 0}, "constant", 2)) == Doubles{2, 2, 2});
    CHECK(F::pad(none, {0, 0, 1, 1}, "wrap").shape() == Shape{0, 5});
    CHECK(F::pad(scalar, 3).shape() == Shape{});
    CHECK(F::tril(none).shape() == Shape{0, 3});
    CHECK(values(F::triu(one, 1)) == Doubles{0});
    CHECK(values(F::pad(one, 1, "constant", -HUGE_VAL))[4] == 0);
    CHECK(F::pad_sequence({counted({0, 2}), counted({2, 2})}).shape() == Shape{2, 2, 2});
    CHECK(F::pad_sequence({counted({0})}).shape() == Shape{1, 0});
}

TEST_CASE("duplicates, volatile variables, gradients of the parts that are used") {
    const Variable x(counted({2, 2}));
    F::sum(F::stack({x, x, 3 * x}) * 2).backward();
    CHECK(values(x.grad()) == Doubles{10, 10, 10, 10});
    x.cleargrad();
    F::sum(F::separate(x, 1)[1]).backward();
    CHECK(values(x.grad()) == Doubles{0, 1, 0, 1});
    x.cleargrad();
    F::sum(F::pad(x, {1, 1}, "symmetric")).backward();
    CHECK(values(x.grad()) == Doubles{4, 4, 4, 4});
    CHECK(F::flip(Variable(x.data(), true), 0).is_volatile());
    CHECK(F::pad(Variable(x.data(), true), 1, "constant", 1).is_volatile());
    // A constant next to a variable.
    const Variable y = F::concat({x, as_variable(F::arange(4).reshape({2, 2}))});
    CHECK(y.dtype() == Dtype::float64);
    CHECK(y.requires_grad());
}

TEST_CASE("what does not fit is refused") {
    const Array x = counted({2, 3}), none;
    CHECK_THROWS_WITH_AS((void)F::stack({x, counted({3, 2})}),
                         "[catena.stack] xs[1].shape: expected (2, 3), got (3, 2)", ShapeError);
    CHECK_THROWS_WITH_AS((void)F::stack({x}, 3),
                         "[catena.stack] axis: expected from -3 to 2, got 3",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)F::stack(Arrays()),
                         "[catena.stack] inputs: expected 1 or more, got 0", InvalidError);
    CHECK_THROWS_WITH_AS((void)F::vstack({x, none}),
                         "[catena.vstack] xs[1]: expected an array, got none", InvalidError);
    CHECK_THROWS_AS((void)F::hstack({x, counted({3})}), ShapeError);
    CHECK_THROWS_AS((void)F::concat({x, none}), InvalidError);
    CHECK_THROWS_AS((void)F::concat(Arrays()), Error);
    CHECK_THROWS_WITH_AS((void)F::separate(x, 2), "[separate] axis: expected one of (2, 3), got 2",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)F::separate(counted({})),
                         "[separate] axis: expected one of (), got 0", ShapeError);
    CHECK_THROWS_WITH_AS((void)F::broadcast({x, counted({2})}),
                         "[broadcast] xs[1].shape: expected broadcastable to (2, 3), got (2,)",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)F::pad_sequence({x, counted({2, 2})}),
                         "[catena.pad_sequence] xs[1].shape: expected (2, 3), got (2, 2)", ShapeError);
    CHECK_THROWS_WITH_AS((void)F::pad_sequence({x}, 1),
                         "[catena.pad_sequence] length: expected at least 2, got 1", ShapeError);
    CHECK_THROWS_AS((void)F::pad_sequence({counted({})}), ShapeError);
    CHECK_THROWS_WITH_AS((void)F::expand_dims(x, {0, 0}),
                         "[catena.expand_dims] axis: expected each axis once, got (0, 0)", InvalidError);
    CHECK_THROWS_AS((void)F::expand_dims(x, 3), ShapeError);
    CHECK_THROWS_WITH_AS((void)F::squeeze(x, 1),
                         "[catena.squeeze] axis: expected axes of length 1 of (2, 3), got 1", ShapeError);
    CHECK_THROWS_WITH_AS((void)F::moveaxis(x, {0, 1}, 0),
                         "[catena.moveaxis] destination: expected 2 axes as in source, got 1",
                         InvalidError);
    CHECK_THROWS_AS((void)F::moveaxis(x, {0, -2}, {0, 1}), InvalidError);
    CHECK_THROWS_AS((void)F::swapaxes(x, 0, -3), ShapeError);
    CHECK_THROWS_WITH_AS((void)F::rollaxis(x, 0, 3), "[catena.rollaxis] start: expected -2 to 2, got 3",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)F::fliplr(counted({2})),
                         "[catena.fliplr] a.ndim: expected at least 2, got 1", ShapeError);
    CHECK_THROWS_AS((void)F::flipud(counted({})), ShapeError);
    CHECK_THROWS_WITH_AS((void)F::roll(x, {1, 2}, 0),
                         "[catena.roll] shift: expected one number or 1, got 2", InvalidError);
    CHECK_THROWS_WITH_AS((void)F::tile(x, {2, -1}),
                         "[catena.tile] reps: expected no negative number, got (2, -1)", InvalidError);
    CHECK_THROWS_WITH_AS((void)F::repeat(x, {1, 2}, 1),
                         "[catena.repeat] repeats: expected one number or 3, got 2", InvalidError);
    CHECK_THROWS_AS((void)F::repeat(x, -1), InvalidError);
    CHECK_THROWS_WITH_AS((void)F::pad(x, {1, 2, 3}),
                         "[catena.pad] pad_width: expected 1, 2 or 4 numbers, got 3", InvalidError);
    CHECK_THROWS_AS((void)F::pad(x, {1, -2}), InvalidError);
    CHECK_THROWS_WITH_AS(
        (void)F::pad(x, 1, "mirror"),
        "[catena.pad] attribute 'mode': expected one of constant, edge, reflect, symmetric, wrap, "
        "got 'mirror'",
        InvalidError);
    CHECK_THROWS_WITH_AS((void)F::pad(counted({0, 3}), 1, "edge"),
                         "[catena.pad] x: expected elements along axis 0, got (0, 3)",
                         ShapeError);
    CHECK_THROWS_AS((void)F::tril(counted({2})), ShapeError);
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { (void)F::separate(none); }, [&] { (void)F::expand_dims(none, 0); },
             [&] { (void)F::squeeze(none); }, [&] { (void)F::flatten(none); },
             [&] { (void)F::moveaxis(none, 0, 0); }, [&] { (void)F::flip(none, 0); },
             [&] { (void)F::roll(none, 1); }, [&] { (void)F::tile(none, 1); },
             [&] { (void)F::repeat(none, 1); }, [&] { (void)F::pad(none, 1); },
             [&] { (void)F::triu(none); }, [&] { (void)F::swapaxes(Variable(), 0, 0); }})
        CHECK_THROWS_AS(call(), InvalidError);
}
