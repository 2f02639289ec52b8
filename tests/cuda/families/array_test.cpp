// Functions that move elements: concat, get_item, put_item and transpose.
#include <numeric>

#include "both.hpp"

namespace {

using Numbers = std::vector<std::int64_t>;

Attrs slice(const Numbers& begin, const Numbers& end, const Numbers& step) {
    return {plugin::set("begin", plugin::Ints(begin)), plugin::set("end", plugin::Ints(end)),
            plugin::set("step", plugin::Ints(step))};
}
template <class T>
void check_slice(const Dims& shape, const Numbers& begin, const Numbers& end, const Numbers& step,
                 bool add = false) {
    check_both<T>("catena.get_item", {draw<T>(shape, 1)}, slice(begin, end, step), true, add);
}
// Puts the elements back that get_item takes.
template <class T>
void check_put(const Dims& shape, const Numbers& begin, const Numbers& end, const Numbers& step,
               bool add = false) {
    Attrs attrs = slice(begin, end, step);
    const Array x = world().forward("catena.get_item", {draw<T>(shape, 1)}, attrs, on("cuda"))[0];
    attrs.push_back(plugin::set("shape", plugin::Ints(shape)));
    check_both<T>("catena.put_item", {x}, attrs, true, add);
}
template <class T>
void check_transpose(const Dims& shape, const Numbers& axes, bool add = false) {
    check_both<T>("catena.transpose", {draw<T>(shape, 1)},
                  {plugin::set("axes", plugin::Ints(axes))}, true, add);
}

}  // namespace

TEST_CASE_TEMPLATE("concat: along any axis", T, float, double, Float16, BFloat16) {
    const auto join = [](const std::vector<Dims>& shapes, std::int64_t axis, bool add = false) {
        std::vector<Array> x;
        for (const Dims& shape : shapes)
            x.push_back(draw<T>(shape, static_cast<unsigned>(x.size()) + 1));
        check_both<T>("catena.concat", x, {plugin::set("axis", axis)}, true, add);
    };
    join({{3, 8}, {3, 16}, {3, 24}}, 1);
    join({{3, 8}, {3, 5}, {3, 8}}, 1);  // arrays after an odd one are not aligned
    join({{300, 3}, {300, 1}}, 1, true);
    join({{7, 33}, {1, 33}, {0, 33}, {5, 33}}, 0);
    join({{2, 3, 4, 8}, {2, 5, 4, 8}}, 1, true);
    join({{2, 3, 5}, {2, 3, 1}}, -1);
    join({{5}}, 0);
    join({{1030}, {3}, {257}}, 0);
    join({{4, 0}, {4, 3}}, 1);
    join({{0, 2}, {0, 3}}, 1);
    join({{0, 2}, {0, 2}}, 0);
}

TEST_CASE("concat: many arrays, and where they end") {
    for (const std::size_t n : {31, 32, 33, 64, 70}) {
        std::vector<Array> x;
        for (std::size_t i = 0; i < n; ++i)
            x.push_back(
                draw<float>({3, static_cast<std::int64_t>(i % 5)}, static_cast<unsigned>(i) + 1));
        check_both<float>("catena.concat", x, {}, true, n == 33);
        const auto ends =
            world().forward("catena.concat", x, {}, on("cuda"))[1].values<std::int64_t>();
        std::int64_t end = 0;
        for (std::size_t i = 0; i < n; ++i) {
            end += static_cast<std::int64_t>(i % 5);
            CHECK(ends[i] == end);
        }
    }
    const Array a = Array::random<std::int64_t>({4, 5}, 1, -50, 50);
    const Array b = Array::random<std::int64_t>({4, 2}, 2, -50, 50);
    check_both<std::int64_t>("catena.concat", {a, b}, {}, false);
}

TEST_CASE_TEMPLATE("get_item: runs, steps, backwards, out of range", T, float, double, Float16,
                   BFloat16) {
    for (const bool add : {false, true}) {
        check_slice<T>({64, 32}, {3}, {50}, {}, add);
        check_slice<T>({64, 32}, {3, 8}, {50, 24}, {}, add);
        check_slice<T>({64, 33}, {3, 1}, {50, 30}, {}, add);
        check_slice<T>({9, 70}, {-1, 69}, {-8, 0}, {-2, -3}, add);
        check_slice<T>({1030}, {}, {}, {-1}, add);
        check_slice<T>({5, 3, 40}, {0, 2, 0}, {5, 0, 40}, {2, -1, 1}, add);
    }
    check_slice<T>({4000}, {1}, {4000}, {});
    check_slice<T>({4001}, {8}, {4001}, {});
    check_slice<T>({4, 3}, {2}, {2}, {});
    check_slice<T>({4, 3}, {3}, {1}, {});
    check_slice<T>({0, 3}, {0}, {9}, {});
    check_slice<T>({3, 4, 5}, {}, {}, {});
    Dims many(16, 2);
    Numbers begin(16, 0), end(16, 2), step(16, 1);
    for (std::size_t d = 0; d < 16; d += 2) {
        begin[d] = 1;
        end[d] = -3;
        step[d] = -1;
    }
    check_slice<T>(many, begin, end, step);
    many[3] = 1;
    for (std::size_t d = 1; d < 16; d += 4) begin[d] = 1;
    check_slice<T>(many, Numbers(16, 0), Numbers(16, 2), Numbers(16, 2));
}

TEST_CASE_TEMPLATE("put_item: zeros but for a slice", T, float, double, Float16, BFloat16) {
    for (const bool add : {false, true}) {
        check_put<T>({64, 32}, {3, 8}, {50, 24}, {}, add);
        check_put<T>({9, 70}, {-1, 69}, {-8, 0}, {-2, -3}, add);
        check_put<T>({1031}, {}, {}, {-1}, add);
        check_put<T>({4, 3}, {2}, {2}, {}, add);
        check_put<T>({33, 7}, {}, {}, {}, add);
    }
}

TEST_CASE("transpose: elements of one byte") {
    for (const catena_dtype dtype : {plugin::dtype_of<bool>(), plugin::dtype_of<std::uint8_t>()})
        for (const Dims& shape : {Dims{33, 70}, Dims{16, 3, 40}}) {
            const Array x = Array::random<double>(shape, 1, 0, 200).to(dtype);
            CHECK(world().forward("catena.transpose", {x}, {}, on("cuda"))[0] ==
                  world().forward("catena.transpose", {x}, {}, on("cpu"))[0]);
        }
}

TEST_CASE_TEMPLATE("transpose: long and small axes, the last one where it was", T, float, double,
                   Float16, BFloat16) {
    for (const std::int64_t rows : {31, 32, 33, 64, 65, 130})
        for (const std::int64_t columns : {31, 32, 33, 100})
            check_transpose<T>({rows, columns}, {}, rows == 33);
    for (const std::int64_t thin : {2, 3, 5, 17}) {
        check_transpose<T>({thin, 1030}, {});
        check_transpose<T>({1030, thin}, {}, true);
    }
    check_transpose<T>({3, 5, 7, 64}, {0, 2, 1, 3}, true);
    check_transpose<T>({3, 5, 7, 3}, {0, 2, 1, 3});
    check_transpose<T>({2, 40, 30, 3}, {0, 3, 1, 2}, true);  // images to channels-first
    check_transpose<T>({2, 3, 40, 30}, {0, 2, 3, 1});
    check_transpose<T>({6, 33, 5, 34}, {3, 0, 2, 1});
    check_transpose<T>({2, 300, 2}, {});
    for (const std::int64_t few : {15, 16, 17})
        check_transpose<T>({few, 2, few}, {2, 1, 0}, few == 16);
    check_transpose<T>({1, 40, 1, 50}, {3, 2, 1, 0});
    check_transpose<T>({7}, {});
    check_transpose<T>({}, {});
    check_transpose<T>({1, 1}, {});
    check_transpose<T>({4000}, {0}, true);
    check_transpose<T>({0, 5}, {});
    check_transpose<T>(Dims(14, 2), {});
    Numbers comb(14);
    std::iota(comb.begin(), comb.end(), 0);
    for (std::size_t d = 0; d < 14; d += 2) std::swap(comb[d], comb[d + 1]);
    check_transpose<T>(Dims(14, 2), comb);
}

TEST_CASE("integers and NaN are moved as they are") {
    const Array a = Array::random<std::int64_t>({40, 33}, 1, -1000000000000, 1000000000000);
    const Array b = Array::random<std::int32_t>({40, 33}, 1, -1000000, 1000000);
    check_both<std::int64_t>("catena.transpose", {a}, {}, false);
    check_both<std::int32_t>("catena.transpose", {b}, {}, false, true);
    check_both<std::int64_t>("catena.get_item", {a}, slice({1, 2}, {39, 30}, {3, 1}), false);
    check_both<float>("catena.transpose",
                      {Array::from<double>({1, no_number, inf, -inf, 0, 3e38}, {2, 3})
                           .to(plugin::dtype_of<float>())});
}
