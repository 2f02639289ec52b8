// Pooling, with sizes and shapes that matter on a GPU.
#include "both.hpp"

#include <algorithm>

namespace {

struct Pool {
    Dims x;
    Dims ksize;
    Dims stride = {};
    Dims pad = {0};

    Attrs attrs() const {
        return {plugin::set("ksize", plugin::Ints(ksize)),
                plugin::set("stride", plugin::Ints(stride)), plugin::set("pad", plugin::Ints(pad))};
    }
};

// Windows that tile, overlap or leave gaps; of 2, 3 and more; many small and few large ones;
// padding on all sides.
const Pool pools[] = {
    {{2, 3, 8, 8}, {2}},
    {{1, 2, 7, 9}, {2}, {}, {1}},
    {{3, 2, 17, 18}, {3}, {2}, {1}},
    {{2, 2, 12, 13}, {3}, {1}, {1}},
    {{1, 3, 10, 11}, {3}, {4}},
    {{2, 2, 11, 16}, {3, 2}, {2, 1}, {1, 0}},
    {{2, 1, 20, 21}, {5}, {1}, {2}},
    {{1, 2, 23, 19}, {7, 4}, {3, 5}, {3, 1}},
    {{5, 40, 7, 7}, {7}},
    {{5, 1, 13, 13}, {3}, {2}},
    {{3, 5, 4, 16}, {2}},
    {{1, 2, 40, 70}, {40, 70}},
    {{1, 1, 33, 35}, {16}, {1}},
    {{2, 1, 18, 19}, {17, 16}, {1}, {3}},
    {{1, 2, 3, 5}, {9}, {2}, {4}},
    {{4, 1, 1, 1}, {1}},
    {{1, 1, 6, 300}, {1, 40}, {1, 40}},
    {{0, 2, 4, 4}, {2}},
};

}  // namespace

TEST_CASE_TEMPLATE("max pooling: windows of all sorts, and back", T, float, double, Float16,
                   BFloat16) {
    for (const Pool& p : pools)
        for (const bool cover_all : {true, false}) {
            const std::int64_t ksize = p.ksize[0];
            if (!cover_all && ksize == 9) continue;
            Attrs attrs = p.attrs();
            attrs.push_back(plugin::set("cover_all", cover_all));
            CAPTURE(ksize);
            check_both<T>("catena.max_pooling_2d", {draw<T>(p.x, 1)}, attrs, true, cover_all);
        }
}

TEST_CASE_TEMPLATE("average pooling: windows of all sorts, and back", T, float, double, Float16,
                   BFloat16) {
    for (const Pool& p : pools) {
        const std::int64_t ksize = p.ksize[0];
        CAPTURE(ksize);
        check_both<T>("catena.average_pooling_2d", {draw<T>(p.x, 1)}, p.attrs(), true, p.x[0] == 2);
    }
}

TEST_CASE("pooling: many windows") {
    const Pool large = {{2, 1, 200, 210}, {6}, {1}, {2}};
    check_both<float>("catena.max_pooling_2d", {draw<float>(large.x, 1)}, large.attrs());
    check_both<float>("catena.average_pooling_2d", {draw<float>(large.x, 1)}, large.attrs());
}

TEST_CASE("pooling: strides, windows and padding beyond 32 bits") {
    constexpr std::int64_t huge = 1 << 30;
    for (const Pool& p :
         {Pool{{1, 2, 5, 6}, {huge}, {huge}, {huge / 2 - 2}}, Pool{{1, 2, 5, 6}, {2}, {huge}, {0}},
          Pool{{1, 2, 5, 6}, {3, 2}, {1, huge}, {1, 1}}}) {
        check_both<float>("catena.average_pooling_2d", {draw<float>(p.x, 1)}, p.attrs());
        if (p.ksize.size() == 1 && p.ksize[0] == huge) continue;  // too many cells to count
        check_both<float>("catena.max_pooling_2d", {draw<float>(p.x, 1)}, p.attrs());
    }
    const Pool far = {{1, 2, 5, 6}, {2, 1 << 29}, {1, 1 << 29}, {0, (1 << 28) + 7}};
    check_both<float>("catena.max_pooling_2d", {draw<float>(far.x, 1)}, far.attrs());
    check_both<double>("catena.average_pooling_2d", {draw<double>(far.x, 1)}, far.attrs());
}

TEST_CASE_TEMPLATE("max pooling: the first of equals, NaN, -inf, windows without a cell", T, float,
                   double, Float16, BFloat16) {
    for (const std::int64_t ksize : {2, 3, 6, 20})
        for (const std::int64_t pad : {0, 1, 3}) {
            const Dims shape = {3, 2, 20, 23};
            Array x(shape, plugin::dtype_of<double>());
            for (std::int64_t i = 0; i < x.size(); ++i)
                x.set(i, i % 7 == 0 ? -inf : i % 101 == 50 ? no_number : double(i * 13 % 5 / 2));
            for (std::int64_t i = 0; i < 460; ++i) x.set(i, -inf);
            const Dims k = {ksize};
            const Dims stride = {std::min<std::int64_t>(ksize, 5)};
            const Dims p = {pad};
            const Attrs attrs = {plugin::set("ksize", plugin::Ints(k)),
                                 plugin::set("stride", plugin::Ints(stride)),
                                 plugin::set("pad", plugin::Ints(p))};
            const Array given = x.to(plugin::dtype_of<T>());
            const auto y = world().forward("catena.max_pooling_2d", {given}, attrs, on("cuda"));
            CHECK(world().ran() == "org.catena.pooling.cuda");
            const auto expected =
                world().forward("catena.max_pooling_2d", {wide(given)}, attrs, on("cpu"));
            CHECK(compare(wide(y), wide(expected), {0, 0}) == "");
        }
}

TEST_CASE_TEMPLATE("max pooling, twice differentiated: cells of both types, some of no window", T,
                   float, double, Float16) {
    for (const std::int64_t ksize : {2, 3, 16}) {
        const std::int64_t n = ksize + 6;
        const Dims k = {ksize};
        const Dims one = {1};
        const Dims size = {n, n};
        const Attrs attrs = {plugin::set("ksize", plugin::Ints(k)),
                             plugin::set("stride", plugin::Ints(one)),
                             plugin::set("pad", plugin::Ints(one))};
        Attrs sized = attrs;
        sized.push_back(plugin::set("size", plugin::Ints(size)));
        const Dims windows = {2, 3, 9, 9};
        Array at(windows,
                 ksize == 16 ? plugin::dtype_of<std::int32_t>() : plugin::dtype_of<std::uint8_t>());
        for (std::int64_t i = 0; i < at.size(); ++i)
            at.set(i, double(i % 11 == 0  ? (ksize == 16 ? -1 : 255)
                             : i % 7 == 0 ? ksize * ksize + 3
                                          : i * 31 % (ksize * ksize)));
        const Array x = draw<T>({2, 3, n, n}, 1);
        const Array gy = draw<T>(windows, 2);
        for (const bool add : {false, true}) {
            check_both<T>("catena.max_pooling_2d_at", {x, at}, attrs, true, add);
            check_both<T>("catena.max_pooling_2d_grad", {gy, at}, sized, true, add);
            check_both<T>("catena.average_pooling_2d_grad", {gy}, sized, true, add);
        }
    }
}
