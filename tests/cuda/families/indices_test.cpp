// Indices along an axis, and the sums of what is added at them.
#include <cmath>

#include "both.hpp"

namespace {

Array draw_ids(const Dims& shape, std::int64_t length, bool wide) {
    Array ids(shape, plugin::dtype_of<std::int64_t>());
    std::uint64_t seed = 1;
    for (std::int64_t i = 0; i < ids.size(); ++i) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        ids.set(i,
                static_cast<double>(static_cast<std::int64_t>(seed >> 33) % (2 * length) - length));
    }
    return wide ? ids : ids.to(plugin::dtype_of<std::int32_t>());
}
Attrs with(std::int64_t axis) { return {plugin::set("axis", axis)}; }
Attrs with(std::int64_t axis, const Dims& shape) {
    return {plugin::set("shape", plugin::Ints(shape)), plugin::set("axis", axis)};
}

}  // namespace

TEST_CASE_TEMPLATE("take and take_along_axis: axes and sizes", T, float, double, Float16,
                   BFloat16) {
    for (const Dims& shape : {Dims{7, 3, 5}, Dims{1, 300, 1}, Dims{2, 1, 33}, Dims{3, 4, 0}}) {
        for (const std::int64_t axis : {0, 1, 2}) {
            const std::int64_t length = shape[static_cast<std::size_t>(axis)];
            if (length == 0) continue;
            for (const std::int64_t n : {0, 1, 5, 64}) {
                const Array ids = draw_ids({n}, length, n % 2 == 0);
                Dims taken = shape;
                taken[static_cast<std::size_t>(axis)] = n;
                const Array along = draw_ids(taken, length, n % 2 == 1);
                const bool add = n == 5;
                check_both<T>("catena.take", {draw<T>(shape, 1), ids}, with(axis), true, add);
                check_both<T>("catena.put_rows_add", {draw<T>(taken, 2), ids}, with(axis, shape),
                              true, add);
                check_both<T>("catena.take_along_axis", {draw<T>(shape, 1), along}, with(axis),
                              true, add);
                check_both<T>("catena.put_along_axis_add", {draw<T>(taken, 2), along},
                              with(axis, shape), true, add);
            }
        }
    }
}

TEST_CASE("integers: take, put_rows_add, last_along_axis, ravel_multi_index") {
    const Array x = Array::from<std::int32_t>({3, 1, 4, 1, 5, 9}, {2, 3});
    const auto same = [](const char* function, const std::vector<Array>& inputs,
                         const Attrs& attrs) {
        const auto expected = world().forward(function, inputs, attrs, on("cpu"));
        CHECK(world().forward(function, inputs, attrs, on("cuda")) == expected);
    };
    for (const bool wide : {false, true}) {
        same("catena.take", {x, draw_ids({4}, 3, wide)}, with(1));
        same("catena.put_rows_add", {x, draw_ids({3}, 5, wide)}, with(1, {2, 5}));
        same("catena.last_along_axis", {draw_ids({40, 3}, 7, wide)}, with(0, {7, 3}));
        const Dims shape = {3, 4};
        same("catena.ravel_multi_index", {draw_ids({5, 2}, 3, wide), draw_ids({5, 2}, 4, wide)},
             {plugin::set("shape", plugin::Ints(shape))});
    }
}

TEST_CASE("bytes: take, where, extremes, topk") {
    const auto same = [](const char* function, const std::vector<Array>& inputs,
                         const Attrs& attrs = {}) {
        CAPTURE(std::string(function));
        const auto expected = world().forward(function, inputs, attrs, on("cpu"));
        CHECK(world().forward(function, inputs, attrs, on("cuda")) == expected);
        CHECK(world().ran().ends_with(".cuda"));
    };
    const Array numbers = draw<float>({40, 33}, 1, 0, 255);
    const Array mask = draw<float>({40, 33}, 2, 0, 2)
                           .to(plugin::dtype_of<std::uint8_t>())
                           .to(plugin::dtype_of<bool>());
    for (const auto dtype : {plugin::dtype_of<std::uint8_t>(), plugin::dtype_of<bool>()}) {
        const Array x = numbers.to(dtype);
        same("catena.take", {x, draw_ids({7}, 33, true)}, with(1));
        same("catena.take_along_axis", {x, draw_ids({40, 5}, 33, false)}, with(1));
        same("catena.where", {mask, x, x});
    }
    const Array x = numbers.to(plugin::dtype_of<std::uint8_t>());
    const std::int64_t axis[] = {1};
    for (const char* function : {"catena.max", "catena.min", "catena.argmax", "catena.argmin"})
        same(function, {x}, {plugin::set("axis", plugin::Ints(axis))});
    same("catena.topk", {x}, {plugin::set("k", std::int64_t{9}), plugin::set("axis", 1)});
}

TEST_CASE("an index out of range reads NaN and adds nothing") {
    const Array x = Array::from<float>({1, 2, 3}, {3});
    const Array ids = Array::from<std::int64_t>({0, 3, -4, -1}, {4});
    const Array y = world().forward("catena.take", {x, ids}, with(0), on("cuda"))[0];
    CHECK(y.at(0) == 1);
    CHECK(std::isnan(y.at(1)));
    CHECK(std::isnan(y.at(2)));
    CHECK(y.at(3) == 3);
    CHECK(world().forward("catena.put_along_axis_add", {Array::from<float>({1, 2, 3, 4}, {4}), ids},
                          with(0, {3}), on("cuda"))[0] == Array::from<float>({1, 0, 4}, {3}));
    CHECK(world().forward("catena.last_along_axis", {ids}, with(0, {3}), on("cuda"))[0] ==
          Array::from<std::int64_t>({1, 0, 4}, {3}));
    const Dims shape = {3};
    CHECK(world()
              .forward("catena.ravel_multi_index", {ids},
                       {plugin::set("shape", plugin::Ints(shape))}, on("cuda"))[0]
              .values<std::int64_t>() ==
          std::vector<std::int64_t>{0, std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::min(), 2});
}
