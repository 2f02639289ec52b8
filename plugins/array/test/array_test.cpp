// Tests array.catena: shapes, dtypes, dropout.
#include <doctest/doctest.h>

#include <catena/plugin/philox.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "world.hpp"

using namespace catena::testing;
using catena::plugin::Ints;

TEST_CASE("reshape and identity are views") {
    const Array x = iota({3, 4});
    const auto reshaped = [&](const Dims& shape) {
        return world().forward("catena.reshape", {x}, {set("shape", Ints(shape))})[0];
    };
    CHECK(reshaped({2, 6}).shape() == Dims{2, 6});
    CHECK(reshaped({-1, 2}).shape() == Dims{6, 2});
    CHECK(reshaped({12}) == x.reshaped({12}));
    CHECK_THROWS_WITH(reshaped({5, -1}),
                      "[catena.reshape] shape: expected 12 elements of x (3, 4), "
                      "got (5, -1)");
    CHECK_THROWS_WITH(reshaped({-1, -1}),
                      "[catena.reshape] shape: expected one -1 at most, "
                      "got (-1, -1)");
    CHECK_THROWS_AS(reshaped({0, -1}), Failure);
    const Dims six = {2, 6};
    const auto gx = world().gradient("catena.reshape", {x}, {x.reshaped(six)}, {iota(six)},
                                     {set("shape", Ints(six))});
    CHECK(gx[0] == x);
    CHECK(world().forward("catena.identity", {x})[0] == x);
    CHECK(world().gradient("catena.identity", {x}, {x}, {x})[0] == x);
}

TEST_CASE("broadcast_to and sum_to") {
    struct Pair {
        Dims small, large;
    };
    for (const Pair& p :
         {Pair{{}, {2, 3}}, Pair{{3}, {2, 3}}, Pair{{2, 1}, {2, 3}}, Pair{{1, 3, 1}, {4, 2, 3, 5}},
          Pair{{2, 3}, {2, 3}}, Pair{{1}, {0, 4}}, Pair{{}, {}}, Pair{{7, 1, 1}, {7, 6, 40}}}) {
        const Attrs large = {set("shape", Ints(p.large))};
        const Attrs small = {set("shape", Ints(p.small))};
        const Array x = Array::random<double>(p.small, 1);
        CHECK(check(world(), {"catena.broadcast_to", {x}, large}) == "");
        const Array y = world().forward("catena.broadcast_to", {x}, large)[0];
        CHECK(y.shape() == p.large);
        CHECK(check(world(), {"catena.sum_to", {Array::random<double>(p.large, 2)}, small}) == "");
        const double times = x.size() == 0 ? 0 : static_cast<double>(y.size() / x.size());
        const Array back = world().forward("catena.sum_to", {y}, small)[0];
        for (std::int64_t i = 0; i < x.size(); ++i)
            CHECK(back.at(i) == doctest::Approx(times * x.at(i)));
    }
    const Dims wrong = {2, 4};
    CHECK_THROWS_WITH(
        world().forward("catena.broadcast_to", {iota({3})}, {set("shape", Ints(wrong))}),
        "[catena.broadcast_to] x.shape: expected broadcastable to (2, 4), got (3,)");
}

TEST_CASE("transpose") {
    const Dims permutation = {2, 0, 1};
    const Dims negative = {-1, 0, -2};
    for (const Dims& axes : {permutation, negative}) {
        const Attrs attrs = {set("axes", Ints(axes))};
        const Array x = iota({2, 3, 4});
        const Array y = world().forward("catena.transpose", {x}, attrs)[0];
        CHECK(y.shape() == Dims{4, 2, 3});
        for (std::int64_t i = 0; i < 4; ++i)
            for (std::int64_t j = 0; j < 2; ++j)
                for (std::int64_t k = 0; k < 3; ++k)
                    CHECK(y.at((i * 2 + j) * 3 + k) == x.at((j * 3 + k) * 4 + i));
        CHECK(check(world(), {"catena.transpose", {Array::random<double>({2, 3, 4}, 1)}, attrs}) ==
              "");
    }
    for (const Dims& shape : {Dims{}, Dims{5}, Dims{70, 45}, Dims{1, 3, 1}, Dims{0, 2}}) {
        const Array x = iota(shape);
        const Array y = world().forward("catena.transpose", {x})[0];
        CHECK(y.shape() == Dims(shape.rbegin(), shape.rend()));
        if (shape.size() == 2)
            for (std::int64_t i = 0; i < x.size(); ++i)
                CHECK(y.at(i) == x.at(i % shape[0] * shape[1] + i / shape[0]));
        CHECK(world().forward("catena.transpose", {y})[0] == x);
    }
    const Dims twice = {0, 0, 1};
    CHECK_THROWS_WITH(
        world().forward("catena.transpose", {iota({1, 2, 3})}, {set("axes", Ints(twice))}),
        "[catena.transpose] axes: expected each axis once, got (0, 0, 1)");
}

TEST_CASE_TEMPLATE("cast to half precision rounds once", Half, Float16, BFloat16) {
    // Just above the middle of two neighbours: float32 would round to the middle, which is a tie.
    const double unit = std::is_same_v<Half, Float16> ? 0x1p-10 : 0x1p-7;
    std::vector<double> x, expected;
    for (const double sign : {1.0, -1.0})
        for (const double scale : {1.0, 64.0, 0x1p-13, 0x1p-3})
            for (const double step : {2.0, 3.0}) {
                const double low = sign * scale * (1 + step * unit);
                const double high = sign * scale * (1 + (step + 1) * unit);
                const double middle = (low + high) / 2;
                x.insert(x.end(), {middle + (high - low) * 0x1p-30, middle - (high - low) * 0x1p-30,
                                   middle});
                expected.insert(expected.end(), {high, low, step == 2 ? low : high});
            }
    // Beyond float32's range, and below its and the half's subnormals.
    x.insert(x.end(), {1e300, -1e300, 1e-300, INFINITY});
    expected.insert(expected.end(), {INFINITY, -INFINITY, 0, INFINITY});
    const auto n = static_cast<std::int64_t>(x.size());
    const Array y = world().forward("catena.cast", {Array::from<double>(x, {n})},
                                    {set("dtype", dtype_of<Half>())})[0];
    for (std::int64_t i = 0; i < n; ++i) {
        CAPTURE(i);
        CHECK(y.at(i) == expected[static_cast<std::size_t>(i)]);
    }
    // An integer that float32 rounds to a tie.
    const Array whole = Array::from<std::int32_t>({0x10100001, -0x10100001}, {2});
    if (!std::is_same_v<Half, BFloat16>) return;
    const Array rounded =
        world().forward("catena.cast", {whole}, {set("dtype", dtype_of<Half>())})[0];
    CHECK(rounded.at(0) == 0x10200000);
    CHECK(rounded.at(1) == -0x10200000);
}

TEST_CASE("cast") {
    const auto cast = [](const Array& x, catena_dtype dtype) {
        return world().forward("catena.cast", {x}, {set("dtype", dtype)})[0];
    };
    const Array x = Array::from<float>({0, -1.5f, 2.75f, 100, -0.0f, 1}, {6});
    CHECK(cast(x, dtype_of<std::int32_t>()).values<std::int32_t>() ==
          std::vector<std::int32_t>{0, -1, 2, 100, 0, 1});
    CHECK(cast(x, dtype_of<std::int64_t>()).at(3) == 100);
    CHECK(cast(x, dtype_of<double>()).at(2) == 2.75);
    CHECK(cast(x, dtype_of<bool>()).values<std::uint8_t>() ==
          std::vector<std::uint8_t>{0, 1, 1, 1, 0, 1});
    // A cast to float and back keeps each half except NaN. Casts to half round ties to even.
    Array half({65536}, dtype_of<Float16>());
    Array brain({65536}, dtype_of<BFloat16>());
    for (std::uint32_t i = 0; i < 65536; ++i)
        half.data<std::uint16_t>()[i] = brain.data<std::uint16_t>()[i] =
            static_cast<std::uint16_t>(i);
    for (const Array& a : {half, brain}) {
        const Array wide = cast(a, dtype_of<float>());
        const Array again = cast(wide, a.dtype());
        bool same = true;
        for (std::int64_t i = 0; i < 65536; ++i)
            same = same && (std::isnan(wide.at(i)) ||
                            again.data<std::uint16_t>()[i] == a.data<std::uint16_t>()[i]);
        CHECK(same);
    }
    const Array wide = cast(half, dtype_of<float>());
    CHECK(wide.at(0x3c00) == 1);
    CHECK(wide.at(0x0001) == std::ldexp(1.0, -24));
    CHECK(wide.at(0x7bff) == 65504);
    CHECK(std::isinf(wide.at(0x7c00)));
    CHECK(std::isnan(wide.at(0x7e00)));
    const Array ties =
        Array::from<float>({2049, 2051, 65519, 65520, 0x1p-25f, 0x1.8p-24f, 1e-10f}, {7});
    CHECK(cast(ties, dtype_of<Float16>()).values<std::uint16_t>() ==
          std::vector<std::uint16_t>{0x6800, 0x6802, 0x7bff, 0x7c00, 0, 2, 0});
    const Array y = cast(x, dtype_of<double>());
    const auto gx =
        world().gradient("catena.cast", {x}, {y}, {y}, {set("dtype", dtype_of<double>())});
    CHECK(gx[0] == x);
    CHECK(world().backward("catena.cast", {x}, {y}, {y}, {set("dtype", dtype_of<double>())})[0] ==
          x);
}

TEST_CASE("scalar_like") {
    const Array y = world().forward("catena.scalar_like", {iota({2})}, {set("value", 2.5)})[0];
    CHECK(y.shape().empty());
    CHECK(y.at(0) == 2.5);
}

TEST_CASE("dropout") {
    const Attrs attrs = {set("ratio", 0.25)};
    CHECK(check(world(), {"catena.dropout", {Array::random<double>({9, 11}, 1)}, attrs}) == "");
    CHECK(check(world(), {"catena.dropout", {Array::random<double>({0, 2}, 1)}, attrs}) == "");
    const Array x = Array::random<float>({300, 1001}, 2, 1, 2);
    world().seed = 7;
    world().drawn = 0;
    const auto y = world().forward("catena.dropout", {x}, attrs);
    std::int64_t zeros = 0;
    bool right = true;
    for (std::int64_t i = 0; i < x.size(); ++i) {
        zeros += y[0].at(i) == 0;
        right = right && (y[0].at(i) == 0 || std::abs(y[0].at(i) * 0.75 - x.at(i)) < 1e-6);
    }
    CHECK(right);
    CHECK(static_cast<double>(zeros) / static_cast<double>(x.size()) ==
          doctest::Approx(0.25).epsilon(0.02));
    CHECK(world().drawn == (300300 + 255) / 256 * 64);
    // The random word of element 700, by the order of numbers in dropout's source.
    const auto word = catena::plugin::philox(7, 700 / 256 * 64 + 700 % 256 % 64).v[700 % 256 / 64];
    CHECK((y[0].at(700) == 0) == (word < 0x40000000u));
    const auto gx = world().backward("catena.dropout", {x}, y, {x}, attrs);
    CHECK(gx[0] == y[0]);  // the same mask
    CHECK(world().gradient("catena.dropout", {x}, y, {x, Array()}, attrs)[0] == y[0]);

    world().drawn = 0;
    Options options;
    options.threads = 3;
    CHECK(world().forward("catena.dropout", {x}, attrs, options) == y);
    CHECK_FALSE(world().forward("catena.dropout", {x}, attrs)[0] == y[0]);  // new random numbers

    options.train = false;
    const auto test = world().forward("catena.dropout", {x}, attrs, options);
    CHECK(test[0] == x);
    CHECK(world().backward("catena.dropout", {x}, test, {x}, attrs)[0] == x);
    CHECK(world().forward("catena.dropout", {x}, {set("ratio", 0.0)})[0] == x);
    CHECK_THROWS_WITH(world().forward("catena.dropout", {x}, {set("ratio", 1.0)}),
                      "[catena.dropout] ratio: expected less than 1, got 1.0");
    CHECK_THROWS_WITH(world().forward("catena.apply_dropout", {x, y[1]}, {set("ratio", 1.0)}),
                      "[catena.apply_dropout] ratio: expected less than 1, got 1.0");
}

TEST_CASE("concat") {
    const auto joined = [](const std::vector<Array>& x, std::int64_t axis) {
        return world().forward("catena.concat", x, {set("axis", axis)})[0];
    };
    const Array a = iota({2, 2});
    const Array b = iota({2, 1});
    CHECK(joined({a, b, a}, 1) == Array::from<double>({0, 1, 0, 0, 1, 2, 3, 1, 2, 3}, {2, 5}));
    CHECK(joined({a, b, a}, -1) == joined({a, b, a}, 1));
    CHECK(joined({a, a}, 0) == Array::from<double>({0, 1, 2, 3, 0, 1, 2, 3}, {4, 2}));
    CHECK(world().forward("catena.concat", {a, b})[0] == joined({a, b}, 1));
    CHECK(joined({b}, 0) == b);
    CHECK(joined({iota({3, 0}), iota({3, 2})}, 1) == iota({3, 2}));
    const Array ids = Array::from<std::int64_t>({4, 5}, {1, 2});
    CHECK(joined({ids, ids}, 0).values<std::int64_t>() == std::vector<std::int64_t>{4, 5, 4, 5});
    struct Sample {
        std::vector<Dims> shapes;
        std::int64_t axis;
    };
    for (const Sample& sample :
         {Sample{{{2, 3}, {2, 1}, {2, 4}}, 1}, Sample{{{3}, {2}}, 0}, Sample{{{2, 3}}, 1},
          Sample{{{2, 1, 3}, {2, 2, 3}}, -2}, Sample{{{0, 3}, {2, 3}}, 0},
          Sample{{{0, 3}, {0, 1}}, 1}, Sample{{{1, 2, 2}, {3, 2, 2}}, 0}}) {
        std::vector<Array> x;
        for (const Dims& shape : sample.shapes)
            x.push_back(Array::random<double>(shape, static_cast<unsigned>(x.size())));
        CHECK(check(world(), {"catena.concat", x, {set("axis", sample.axis)}}) == "");
    }
    // More inputs than a word has bits.
    std::vector<Array> many;
    for (unsigned i = 0; i < 70; ++i) many.push_back(Array::random<double>({2, i % 3}, i));
    CHECK(check(world(), {"catena.concat", many}) == "");
    // Enough elements for several threads; the arrays' boundaries are in the middle of pieces.
    const Array large = Array::random<float>({3, 70001}, 1);
    Options options;
    options.threads = 3;
    const auto y = world().forward("catena.concat", {large, large}, {}, options);
    CHECK(y[0].at(70001 + 8192) == large.at(8192));
    CHECK(y[0].at(5 * 70001 + 70000) == large.at(3 * 70001 - 1));
    CHECK(world().backward("catena.concat", {large, large}, y, {y[0]}, {}, options)[1] == large);

    CHECK_THROWS_WITH(joined({iota({2, 3}), iota({3, 3})}, 1),
                      "[catena.concat] x[1].shape: expected (2, 3) but for axis 1, got (3, 3)");
    CHECK_THROWS_WITH(joined({iota({2, 3}), iota({2})}, 0),
                      "[catena.concat] x[1].shape: expected (2, 3) but for axis 0, got (2,)");
    CHECK_THROWS_WITH(joined({iota({})}, 0),
                      "[catena.concat] axis: expected none of a 0-d array, got 0");
}

TEST_CASE("get_item follows NumPy's slices") {
    // Compares all slices of ten elements with a loop by NumPy's rules.
    const Array x = iota({10});
    int wrong = 0;
    for (std::int64_t step : {-11, -10, -3, -2, -1, 1, 2, 3, 10, 11})
        for (std::int64_t begin = -13; begin <= 13; ++begin)
            for (std::int64_t end = -13; end <= 13; ++end) {
                const auto cut = [&](std::int64_t i) {
                    i = i < 0 ? i + 10 : i;
                    return step > 0 ? std::clamp<std::int64_t>(i, 0, 10)
                                    : std::clamp<std::int64_t>(i, -1, 9);
                };
                std::vector<double> expected;
                for (std::int64_t i = cut(begin); step > 0 ? i < cut(end) : i > cut(end); i += step)
                    expected.push_back(static_cast<double>(i));
                const auto y =
                    world().forward("catena.get_item", {x},
                                    {set("begin", Ints(&begin, 1)), set("end", Ints(&end, 1)),
                                     set("step", Ints(&step, 1))})[0];
                wrong += y.values<double>() != expected;
            }
    CHECK(wrong == 0);
    const auto limits = std::numeric_limits<std::int64_t>();
    const Dims far = {limits.max()}, near = {limits.min()}, back = {-1}, huge = {limits.min()};
    const auto slice = [](const Array& from, const Dims& begin, const Dims& end,
                          const Dims& step = {}) {
        return world().forward(
            "catena.get_item", {from},
            {set("begin", Ints(begin)), set("end", Ints(end)), set("step", Ints(step))})[0];
    };
    CHECK(slice(x, far, near, back).at(0) == 9);
    CHECK(slice(x, far, near, back).size() == 10);
    CHECK(slice(x, far, near, huge).values<double>() == std::vector<double>{9});
    CHECK(slice(iota({}), {}, {}) == iota({}));

    // Omitted lists mean from the start, to the end, and step 1.
    CHECK(slice(x, {7}, {}).values<double>() == std::vector<double>{7, 8, 9});
    CHECK(slice(x, {-2}, {}).values<double>() == std::vector<double>{8, 9});
    CHECK(slice(x, {}, {2}).values<double>() == std::vector<double>{0, 1});
    CHECK(slice(x, {}, {-8}).values<double>() == std::vector<double>{0, 1});
    CHECK(slice(x, {2}, {}, {-1}).values<double>() == std::vector<double>{2, 1, 0});
    CHECK(slice(x, {}, {7}, {-1}).values<double>() == std::vector<double>{9, 8});
    CHECK(slice(x, {}, {}, {-4}).values<double>() == std::vector<double>{9, 5, 1});
    CHECK(slice(x, {}, {}) == x);
    CHECK(slice(iota({2, 3}), {-1, 1}, {}) == Array::from<double>({4, 5}, {1, 2}));

    const Array cube = iota({4, 5, 6});
    const Array y = slice(cube, {3, 1, 0}, {0, 5, 6}, {-2, 3, 4});
    CHECK(y.shape() == Dims{2, 2, 2});
    for (std::int64_t i = 0; i < 8; ++i)
        CHECK(y.at(i) == (3 - i / 4 * 2) * 30 + (1 + i / 2 % 2 * 3) * 6 + i % 2 * 4);
    CHECK(slice(cube, {1}, {3}).at(0) == 30);
    CHECK(slice(cube, {0, 2}, {4, 3}).shape() == Dims{4, 1, 6});
    CHECK(slice(Array::from<std::int32_t>({7, 8, 9}, {3}), {1}, {3}).at(1) == 9);
}

TEST_CASE("get_item and put_item: gradients") {
    struct Sample {
        Dims shape, begin, end, step;
    };
    for (const Sample& s :
         {Sample{{5}, {1}, {4}, {}}, Sample{{4, 3}, {-1}, {-4}, {-2}},
          Sample{{3, 4}, {0, 1}, {3, 3}, {}}, Sample{{2, 3, 4}, {0, 2, 3}, {2, 0, 0}, {1, -1, -2}},
          Sample{{2, 4, 2}, {0, 0}, {2, 4}, {1, 2}}, Sample{{3, 2}, {2}, {1}, {}},
          Sample{{0, 2}, {0}, {5}, {}}, Sample{{}, {}, {}, {}}, Sample{{4, 3}, {1, -1}, {}, {}},
          Sample{{4, 3}, {}, {}, {-2}}}) {
        const Attrs attrs = {set("begin", Ints(s.begin)), set("end", Ints(s.end)),
                             set("step", Ints(s.step))};
        const Array x = Array::random<double>(s.shape, 1);
        CHECK(check(world(), {"catena.get_item", {x}, attrs}) == "");
        const Array y = world().forward("catena.get_item", {x}, attrs)[0];
        Attrs put = attrs;
        put.push_back(set("shape", Ints(s.shape)));
        CHECK(check(world(), {"catena.put_item", {Array::random<double>(y.shape(), 2)}, put}) ==
              "");
    }
    const Array large = Array::random<float>({300, 500}, 1);
    const Dims begin = {10, 499}, end = {290, 0}, step = {3, -1};
    const Attrs attrs = {set("begin", Ints(begin)), set("end", Ints(end)), set("step", Ints(step))};
    Options options;
    options.threads = 3;
    const auto y = world().forward("catena.get_item", {large}, attrs);
    CHECK(world().forward("catena.get_item", {large}, attrs, options) == y);
    CHECK(y[0].at(499 + 7) == large.at(13 * 500 + 499 - 7));
    const auto gx = world().backward("catena.get_item", {large}, y, y, attrs, options);
    CHECK(gx[0].at(13 * 500 + 492) == y[0].at(499 + 7));
    CHECK(gx[0].at(14 * 500 + 492) == 0);
}

TEST_CASE("get_item refuses") {
    const auto text = [](const Dims& begin, const Dims& end, const Dims& step) -> std::string {
        try {
            world().forward(
                "catena.get_item", {iota({2, 3})},
                {set("begin", Ints(begin)), set("end", Ints(end)), set("step", Ints(step))});
        } catch (const Failure& e) {
            CHECK(e.status() == CATENA_E_INVALID);
            return e.what();
        }
        return "";
    };
    CHECK(text({0, 0, 0}, {1, 1, 1}, {}) ==
          "[catena.get_item] begin: expected at most 2 indices, one for each axis, got (0, 0, 0)");
    CHECK(text({}, {1, 1, 1}, {}) ==
          "[catena.get_item] end: expected at most 2 indices, one for each axis, got (1, 1, 1)");
    CHECK(text({}, {}, {1, 1, 1}) ==
          "[catena.get_item] step: expected at most 2 indices, one for each axis, got (1, 1, 1)");
    CHECK(text({0}, {1, 1}, {}) ==
          "[catena.get_item] end: expected 1 indices, as begin has, got (1, 1)");
    CHECK(text({0}, {1}, {1, 1}) ==
          "[catena.get_item] step: expected as many distances as begin and end have indices, got "
          "(1, 1)");
    CHECK(text({}, {1}, {1, 1}) ==
          "[catena.get_item] step: expected as many distances as begin and end have indices, got "
          "(1, 1)");
    CHECK(text({0}, {1}, {0}) == "[catena.get_item] step: expected no 0, got (0,)");
    const Dims shape = {4}, wrong = {-4}, begin = {1}, end = {4};
    CHECK_THROWS_WITH(world().forward("catena.put_item", {iota({2})},
                                      {set("shape", Ints(shape)), set("begin", Ints(begin)),
                                       set("end", Ints(end))}),
                      "[catena.put_item] x.shape: expected (3,), got (2,)");
    CHECK_THROWS_AS(world().forward("catena.put_item", {iota({2})}, {set("shape", Ints(wrong))}),
                    Failure);
}

TEST_CASE_TEMPLATE("integers are moved", I, std::int32_t, std::int64_t) {
    using V = std::vector<I>;
    const auto y = [](const std::string& name, const std::vector<Array>& x,
                      const Attrs& attrs = {}) {
        const Array result = world().forward("catena." + name, x, attrs)[0];
        REQUIRE(catena::plugin::same(result.dtype(), dtype_of<I>()));
        return result.values<I>();
    };
    const I most = std::numeric_limits<I>::max();
    const Array a = Array::from<I>({1, most, -3, 4}, {2, 2});
    const Dims shape = {2, 2, 2}, begin = {-1}, put = {4};
    CHECK(y("broadcast_to", {a}, {set("shape", Ints(shape))}) == V{1, most, -3, 4, 1, most, -3, 4});
    CHECK(y("transpose", {a}) == V{1, -3, most, 4});
    CHECK(y("concat", {a, a}, {set("axis", std::int64_t{0})}) == V{1, most, -3, 4, 1, most, -3, 4});
    CHECK(y("get_item", {a}, {set("begin", Ints(begin))}) == V{-3, 4});
    CHECK(y("put_item", {Array::from<I>({most}, {1})},
            {set("shape", Ints(put)), set("begin", Ints(begin))}) == V{0, 0, 0, most});
}

TEST_CASE("sum_to of integers and bool is int64") {
    using V = std::vector<std::int64_t>;
    const auto summed = [](const Array& x, const Dims& shape) {
        const Attrs attrs = {set("shape", Ints(shape))};
        const Array y = world().forward("catena.sum_to", {x}, attrs)[0];
        REQUIRE(catena::plugin::same(y.dtype(), dtype_of<std::int64_t>()));
        CHECK(y.shape() == shape);
        return y.values<std::int64_t>();
    };
    const std::int32_t most = std::numeric_limits<std::int32_t>::max();
    const Array x = Array::from<std::int32_t>({most, most, -3, 4}, {2, 2});
    CHECK(summed(x, {}) == V{2 * std::int64_t{most} + 1});
    CHECK(summed(x, {1, 2}) == V{std::int64_t{most} - 3, std::int64_t{most} + 4});
    CHECK(summed(x, {2, 1}) == V{2 * std::int64_t{most}, 1});
    CHECK(summed(x, {2, 2}) == V{most, most, -3, 4});
    CHECK(summed(Array::from<std::int32_t>({}, {3, 0}), {3, 1}) == V{0, 0, 0});
    CHECK(summed(Array::from<std::int32_t>({}, {0, 3}), {3}) == V{0, 0, 0});
    constexpr std::int64_t large = std::numeric_limits<std::int64_t>::max();
    CHECK(summed(Array::from<std::int64_t>({large, 1}, {2}), {}) ==
          V{std::numeric_limits<std::int64_t>::min()});  // wraps
    const Array bits = Array::constant({300, 700}, dtype_of<bool>(), 1);
    const Array bytes = Array::constant({300, 700}, dtype_of<std::uint8_t>(), 200);
    CHECK(summed(bits, {}) == V{210000});
    CHECK(summed(bits, {700}) == V(700, 300));
    CHECK(summed(bytes, {300, 1}) == V(300, 140000));
}

TEST_CASE("shapes whose elements cannot be counted are refused") {
    constexpr std::int64_t huge = std::int64_t{1} << 62;
    catena_meta m = {};
    m.struct_size = sizeof m;
    m.ndim = 2;
    m.dtype = dtype_of<float>();
    m.shape[0] = m.shape[1] = huge;
    CHECK_THROWS_WITH(world().infer("catena.concat", {m, m}),
                      "[catena.concat] x: expected at most 2^63 - 1 elements along the axis, "
                      "got more");
    const Dims two = {2, -1}, overflows = {huge, 4};
    CHECK_THROWS_AS(world().infer("catena.reshape", {m}, {set("shape", Ints(two))}), Failure);
    m.shape[1] = 1;
    CHECK_THROWS_AS(world().infer("catena.reshape", {m}, {set("shape", Ints(overflows))}), Failure);
    CHECK(world().infer("catena.reshape", {m}, {set("shape", Ints(two))})[0].shape[1] == huge / 2);
}

TEST_CASE("broadcast_to: a negative extent is refused") {
    const Dims shape = {-17, 7};
    const Array x = Array::constant({}, dtype_of<float>(), 1);
    CHECK_THROWS_WITH(
        (void)world().forward("catena.broadcast_to", {x}, {set("shape", Ints(shape))}),
        "[catena.broadcast_to] shape: expected no negative extent, got (-17, 7)");
}
