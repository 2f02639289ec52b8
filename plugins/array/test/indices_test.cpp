// Tests take, take_along_axis, their gradients, and last_along_axis.
#include <doctest/doctest.h>

#include <limits>

#include "world.hpp"

using namespace catena::testing;
using catena::plugin::Ints;

namespace {

using Ids = std::vector<std::int64_t>;

Array ids_of(const Dims& shape, const Ids& ids, bool wide = true) {
    const Array x = Array::from<std::int64_t>(ids, shape);
    return wide ? x : x.to(dtype_of<std::int32_t>());
}
// n indices of an axis of this length; about half of them are negative.
Ids draw_ids(std::int64_t n, std::int64_t length, std::uint64_t seed = 1) {
    Ids ids(static_cast<std::size_t>(n));
    for (std::int64_t& id : ids) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        id = static_cast<std::int64_t>(seed >> 33) % (2 * length) - length;
    }
    return ids;
}
Attrs with(std::int64_t axis) { return {set("axis", axis)}; }
Attrs with(std::int64_t axis, const Dims& shape) {
    return {set("shape", Ints(shape)), set("axis", axis)};
}
std::int64_t product(const Dims& shape, std::size_t from, std::size_t to) {
    std::int64_t n = 1;
    for (std::size_t d = from; d < to; ++d) n *= shape[d];
    return n;
}
std::string error_of(const std::string& function, const std::vector<Array>& x, const Attrs& attrs,
                     catena_status status) {
    try {
        world().forward("catena." + function, x, attrs);
    } catch (const Failure& e) {
        CHECK(e.status() == status);
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("take: values") {
    const Array x = iota({4, 3});
    const auto take = [&](const Array& indices, std::int64_t axis) {
        return world().forward("catena.take", {x, indices}, with(axis))[0];
    };
    CHECK(take(ids_of({3}, {2, -4, 2}), 0) ==
          Array::from<double>({6, 7, 8, 0, 1, 2, 6, 7, 8}, {3, 3}));
    CHECK(take(ids_of({2}, {-1, 1}, false), 1) ==
          Array::from<double>({2, 1, 5, 4, 8, 7, 11, 10}, {4, 2}));
    CHECK(take(ids_of({}, {1}), 0) == Array::from<double>({3, 4, 5}, {3}));
    CHECK(take(ids_of({2, 1}, {0, 2}), -1).shape() == Dims{4, 2, 1});
    CHECK(take(ids_of({0, 5}, {}), 0).shape() == Dims{0, 5, 3});
    CHECK(world()
              .forward("catena.take",
                       {Array::from<std::int64_t>({5, 6}, {2}), ids_of({3}, {1, 0, -1})})[0]
              .values<std::int64_t>() == Ids{6, 5, 6});
}

TEST_CASE("take and put_rows_add: gradients, and sums of repeated rows") {
    struct Sample {
        Dims shape;
        std::int64_t axis;
        Dims indices;
    };
    for (const Sample& s :
         {Sample{{5}, 0, {7}}, Sample{{4, 3}, 0, {2, 2}}, Sample{{2, 3, 4}, 1, {5}},
          Sample{{2, 3}, -1, {}}, Sample{{3, 2, 2}, -2, {3}}, Sample{{3, 0}, 0, {2}},
          Sample{{1, 1}, 1, {9}}, Sample{{2, 3}, 0, {0}}}) {
        const auto axis = static_cast<std::size_t>(
            s.axis < 0 ? s.axis + static_cast<std::int64_t>(s.shape.size()) : s.axis);
        const Ids ids = draw_ids(product(s.indices, 0, s.indices.size()), s.shape[axis]);
        const Array indices = ids_of(s.indices, ids, ids.size() % 2 == 0);
        const Array x = Array::random<double>(s.shape, 1);
        CHECK(check(world(), {"catena.take", {x, indices}, with(s.axis)}) == "");
        const Array y = world().forward("catena.take", {x, indices}, with(s.axis))[0];
        CHECK(check(world(), {"catena.put_rows_add",
                              {Array::random<double>(y.shape(), 2), indices},
                              with(s.axis, s.shape)}) == "");
    }
    CHECK(world().forward("catena.put_rows_add", {iota({3, 2}), ids_of({3}, {1, -3, 1})},
                          with(0, {3, 2}))[0] == Array::from<double>({2, 3, 4, 6, 0, 0}, {3, 2}));
    CHECK(world()
              .forward("catena.put_rows_add",
                       {Array::from<std::int32_t>({1, 2, 3}, {3}), ids_of({3}, {1, -1, 1})},
                       with(0, {2}))[0]
              .values<std::int32_t>() == std::vector<std::int32_t>{0, 6});
}

TEST_CASE("put_rows_add: the same bits for any number of threads, narrow and wide rows") {
    struct Sample {
        std::int64_t groups, table, size, n;
    };
    for (const Sample& s :
         {Sample{1, 100, 64, 3000}, Sample{1, 7, 1, 50000}, Sample{3, 40, 33, 1500},
          Sample{1, 3, 5000, 40}, Sample{9, 11, 1, 9000}, Sample{1, 2, 700, 100}}) {
        const Dims shape = {s.groups, s.table, s.size};
        const Ids ids = draw_ids(s.n, s.table);
        const Array rows = Array::random<float>({s.groups, s.n, s.size}, 1);
        std::vector<double> expected(static_cast<std::size_t>(s.groups * s.table * s.size));
        for (std::int64_t g = 0; g < s.groups; ++g)
            for (std::int64_t i = 0; i < s.n; ++i)
                for (std::int64_t k = 0; k < s.size; ++k) {
                    const std::int64_t id = ids[static_cast<std::size_t>(i)];
                    const std::int64_t row = g * s.table + (id < 0 ? id + s.table : id);
                    expected[static_cast<std::size_t>(row * s.size + k)] +=
                        rows.at((g * s.n + i) * s.size + k);
                }
        Array first;
        for (const int threads : {1, 2, 3, 7}) {
            Options options;
            options.threads = threads;
            const Array y = world().forward("catena.put_rows_add", {rows, ids_of({s.n}, ids)},
                                            with(1, shape), options)[0];
            double error = 0;
            for (std::int64_t i = 0; i < y.size(); ++i)
                error = std::max(error, std::abs(y.at(i) - expected[static_cast<std::size_t>(i)]));
            CHECK(error < 1e-3 * static_cast<double>(s.n / s.table + 1));
            if (threads == 1) first = y;
            else CHECK(y == first);
        }
    }
}

TEST_CASE("take_along_axis and put_along_axis_add") {
    struct Sample {
        Dims shape;
        std::int64_t axis, n;
    };
    for (const Sample& s :
         {Sample{{5}, 0, 7}, Sample{{4, 3}, 0, 2}, Sample{{4, 3}, 1, 5}, Sample{{2, 3, 4}, -2, 5},
          Sample{{2, 3, 4}, 2, 1}, Sample{{3, 2}, 0, 0}, Sample{{0, 2}, 1, 3},
          Sample{{70, 3, 80}, 1, 4}, Sample{{1, 1}, 0, 3}}) {
        const std::size_t ndim = s.shape.size();
        const auto axis = static_cast<std::size_t>(
            s.axis < 0 ? s.axis + static_cast<std::int64_t>(ndim) : s.axis);
        Dims of_indices = s.shape;
        of_indices[axis] = s.n;
        const std::int64_t length = s.shape[axis];
        const std::int64_t inner = product(s.shape, axis + 1, ndim);
        const Ids ids = draw_ids(product(of_indices, 0, ndim), length);
        const Array indices = ids_of(of_indices, ids, ids.size() % 3 == 0);
        const Array x = iota(s.shape);
        const Array y = world().forward("catena.take_along_axis", {x, indices}, with(s.axis))[0];
        REQUIRE(y.shape() == of_indices);
        int wrong = 0;
        Array sums(s.shape, dtype_of<double>());
        for (std::int64_t i = 0; i < sums.size(); ++i) sums.set(i, 0);
        Array last(s.shape, indices.dtype());
        for (std::int64_t i = 0; i < last.size(); ++i) last.set(i, 0);
        for (std::int64_t i = 0; i < y.size(); ++i) {
            const std::int64_t id = ids[static_cast<std::size_t>(i)];
            const std::int64_t at =
                (i / inner / s.n * length + (id < 0 ? id + length : id)) * inner + i % inner;
            wrong += y.at(i) != x.at(at);
            sums.set(at, sums.at(at) + static_cast<double>(i));
            last.set(at, static_cast<double>(i / inner % s.n + 1));
        }
        CHECK(wrong == 0);
        Options options;
        for (options.threads = 1; options.threads < 4; ++options.threads) {
            CHECK(world().forward("catena.put_along_axis_add", {iota(of_indices), indices},
                                  with(s.axis, s.shape), options)[0] == sums);
            CHECK(world().forward("catena.last_along_axis", {indices}, with(s.axis, s.shape),
                                  options)[0] == last);
        }
        if (y.size() > 100) continue;
        CHECK(check(world(), {"catena.take_along_axis",
                              {Array::random<double>(s.shape, 1), indices},
                              with(s.axis)}) == "");
        CHECK(check(world(), {"catena.put_along_axis_add",
                              {Array::random<double>(of_indices, 2), indices},
                              with(s.axis, s.shape)}) == "");
    }
}

TEST_CASE("ravel_multi_index") {
    const Dims shape = {4, 5, 2};
    const auto ravel = [&](const std::vector<Array>& x) {
        return world().forward("catena.ravel_multi_index", x, {set("shape", Ints(shape))})[0];
    };
    for (const bool wide : {false, true})
        CHECK(ravel({ids_of({3}, {0, -1, 1}, wide), ids_of({3}, {4, 0, -5}, wide),
                     ids_of({3}, {1, 0, -1}, wide)}) == ids_of({3}, {9, 30, 11}, wide));
    CHECK(ravel({ids_of({}, {3}), ids_of({}, {4}), ids_of({}, {1})}) == ids_of({}, {39}));
    CHECK(ravel({ids_of({0}, {}), ids_of({0}, {}), ids_of({0}, {})}).shape() == Dims{0});
    const auto text = [&](const std::vector<Array>& x, const Dims& of, catena_status status) {
        return error_of("ravel_multi_index", x, {set("shape", Ints(of))}, status);
    };
    const Array i = ids_of({2}, {1, 2});
    CHECK(text({i, i}, {4, 2}, CATENA_E_VALUE) ==
          "[catena.ravel_multi_index] x[1][1]: expected an index from -2 to 1, got 2");
    CHECK(text({i}, {4, 2}, CATENA_E_SHAPE) ==
          "[catena.ravel_multi_index] x: expected 2 arrays, one for each axis, got 1");
    CHECK(text({i, ids_of({}, {0})}, {4, 2}, CATENA_E_SHAPE) ==
          "[catena.ravel_multi_index] x[1].shape: expected (2,), got ()");
    const Array narrow = ids_of({}, {0}, false);
    CHECK(text({narrow, narrow}, {65536, 65536}, CATENA_E_SHAPE) ==
          "[catena.ravel_multi_index] shape: expected at most 2^31 - 1 elements for int32, got "
          "(65536, 65536)");
    CHECK_FALSE(text({iota({1})}, {4}, CATENA_E_DTYPE).empty());
}

TEST_CASE("indices out of range are refused, and named") {
    for (const bool wide : {false, true}) {
        CHECK(error_of("take", {iota({4, 3}), ids_of({2, 2}, {0, 3, 4, -5}, wide)}, with(0),
                       CATENA_E_VALUE) ==
              "[catena.take] indices[1, 0]: expected an index from -4 to 3, got 4");
        CHECK(error_of("take_along_axis", {iota({2, 3}), ids_of({2, 1}, {0, -4}, wide)}, with(1),
                       CATENA_E_VALUE) ==
              "[catena.take_along_axis] indices[1, 0]: expected an index from -3 to 2, got -4");
        CHECK(error_of("put_rows_add", {iota({1, 3}), ids_of({1}, {2}, wide)}, with(0, {2, 3}),
                       CATENA_E_VALUE) ==
              "[catena.put_rows_add] indices[0]: expected an index from -2 to 1, got 2");
        CHECK(error_of("put_along_axis_add", {iota({1}), ids_of({1}, {2}, wide)}, with(0, {2}),
                       CATENA_E_VALUE) ==
              "[catena.put_along_axis_add] indices[0]: expected an index from -2 to 1, got 2");
        CHECK(error_of("last_along_axis", {ids_of({1}, {2}, wide)}, with(0, {2}), CATENA_E_VALUE) ==
              "[catena.last_along_axis] indices[0]: expected an index from -2 to 1, got 2");
    }
    CHECK(error_of("take", {iota({0, 3}), ids_of({}, {0})}, with(0), CATENA_E_VALUE) ==
          "[catena.take] indices: expected no index, for the axis has no elements, got 0");
    constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
    CHECK(error_of("take", {iota({3}), ids_of({1}, {least})}, with(0), CATENA_E_VALUE) ==
          "[catena.take] indices[0]: expected an index from -3 to 2, got -9223372036854775808");
}

TEST_CASE("shapes and dtypes that do not fit are refused") {
    CHECK(error_of("take", {iota({}), ids_of({}, {0})}, with(0), CATENA_E_SHAPE) ==
          "[catena.take] axis: expected none of a 0-d array, got 0");
    CHECK(error_of("take", {iota({2}), ids_of({}, {0})}, with(1), CATENA_E_SHAPE) ==
          "[catena.take] axis: expected from -1 to 0, got 1");
    CHECK(error_of("take", {iota({2}), ids_of(Dims(16, 1), {0})}, with(0), CATENA_E_SHAPE) == "");
    CHECK(error_of("take", {iota({2, 1}), ids_of(Dims(16, 1), {0})}, with(0), CATENA_E_SHAPE) ==
          "[catena.take] y.ndim: expected at most 16, got 17");
    CHECK_FALSE(error_of("take", {iota({2}), iota({1})}, with(0), CATENA_E_DTYPE).empty());
    CHECK(error_of("take_along_axis", {iota({2, 3}), ids_of({1, 3}, {0, 0, 0})}, with(1),
                   CATENA_E_SHAPE) ==
          "[catena.take_along_axis] indices.shape: expected (2, 3) but for axis 1, got (1, 3)");
    CHECK(
        error_of("take_along_axis", {iota({2, 3}), ids_of({2}, {0, 0})}, with(1), CATENA_E_SHAPE) ==
        "[catena.take_along_axis] indices.shape: expected (2, 3) but for axis 1, got (2,)");
    CHECK(error_of("put_rows_add", {iota({2, 3}), ids_of({1}, {0})}, with(0, {4, 3}),
                   CATENA_E_SHAPE) == "[catena.put_rows_add] x.shape: expected (1, 3), got (2, 3)");
    CHECK(error_of("put_rows_add", {iota({1, 3}), ids_of({1}, {0})}, with(0, {-4, 3}),
                   CATENA_E_INVALID) ==
          "[catena.put_rows_add] shape: expected one that an array can have, got (-4, 3)");
}
