// Tests pooling.catena: compares windows with their definition in double.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace catena::testing;

namespace {

using Ints = catena::plugin::Ints;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double quiet = std::numeric_limits<double>::quiet_NaN();

World& world() {
    static World world({POOLING_PLUGIN});
    return world;
}

struct Pool {
    Dims x;  // (N, C, H, W)
    Dims ksize, stride = {}, pad = {0};
    bool cover_all = false;

    std::int64_t k(std::size_t a) const { return ksize[ksize.size() == 1 ? 0 : a]; }
    std::int64_t s(std::size_t a) const {
        return stride.empty() ? k(a) : stride[stride.size() == 1 ? 0 : a];
    }
    std::int64_t p(std::size_t a) const { return pad[pad.size() == 1 ? 0 : a]; }
    // Returns the number of windows along axis a, as Chainer counts them.
    std::int64_t count(std::size_t a) const {
        const std::int64_t room = x[2 + a] + 2 * p(a) - k(a);
        return cover_all ? (room + s(a) - 1) / s(a) + 1 : room / s(a) + 1;
    }
    Attrs attrs(bool max) const {
        Attrs list = {set("ksize", Ints(ksize)), set("stride", Ints(stride)),
                      set("pad", Ints(pad))};
        if (max) list.push_back(set("cover_all", cover_all));
        return list;
    }
};

// Folds value = fold(value, x) over each window.
template <class Fold>
Array pooled(const Pool& l, const Array& x, double start, const Fold& fold) {
    Array y({l.x[0], l.x[1], l.count(0), l.count(1)}, catena::plugin::dtype_of<double>());
    std::int64_t i = 0;
    for (std::int64_t plane = 0; plane < l.x[0] * l.x[1]; ++plane)
        for (std::int64_t oy = 0; oy < l.count(0); ++oy)
            for (std::int64_t ox = 0; ox < l.count(1); ++ox) {
                double value = start;
                for (std::int64_t ky = 0; ky < l.k(0); ++ky)
                    for (std::int64_t kx = 0; kx < l.k(1); ++kx) {
                        const std::int64_t iy = oy * l.s(0) + ky - l.p(0);
                        const std::int64_t ix = ox * l.s(1) + kx - l.p(1);
                        if (iy < 0 || iy >= l.x[2] || ix < 0 || ix >= l.x[3]) continue;
                        value = fold(value, x.at((plane * l.x[2] + iy) * l.x[3] + ix));
                    }
                y.set(i++, value);
            }
    return y;
}

// Returns the gradient of x for pooled() with a + share * v.
Array unspread(const Pool& l, const Array& gy, double share) {
    Array gx(l.x, catena::plugin::dtype_of<double>());
    std::vector<double> sums(static_cast<std::size_t>(gx.size()));
    std::int64_t i = 0;
    for (std::int64_t plane = 0; plane < l.x[0] * l.x[1]; ++plane)
        for (std::int64_t oy = 0; oy < l.count(0); ++oy)
            for (std::int64_t ox = 0; ox < l.count(1); ++ox, ++i)
                for (std::int64_t ky = 0; ky < l.k(0); ++ky)
                    for (std::int64_t kx = 0; kx < l.k(1); ++kx) {
                        const std::int64_t iy = oy * l.s(0) + ky - l.p(0);
                        const std::int64_t ix = ox * l.s(1) + kx - l.p(1);
                        if (iy < 0 || iy >= l.x[2] || ix < 0 || ix >= l.x[3]) continue;
                        sums[static_cast<std::size_t>((plane * l.x[2] + iy) * l.x[3] + ix)] +=
                            share * gy.at(i);
                    }
    for (std::int64_t k = 0; k < gx.size(); ++k) gx.set(k, sums[static_cast<std::size_t>(k)]);
    return gx;
}
// Returns the expected result: the values, plus 1 if they are added to ones.
Array more(const Array& values, bool add) {
    Array sum(values.shape(), catena::plugin::dtype_of<double>());
    for (std::int64_t i = 0; i < values.size(); ++i) sum.set(i, values.at(i) + (add ? 1 : 0));
    return sum;
}

// Returns values so far apart that the step of a finite difference does not reorder them.
Array apart(const Dims& shape) {
    Array x(shape, catena::plugin::dtype_of<double>());
    for (std::int64_t i = 0; i < x.size(); ++i)
        x.set(i, static_cast<double>(i * 7919 % 10007) * 0.01);
    return x;
}

const std::vector<Pool> pools = {
    {{2, 3, 4, 6}, {2}},
    {{1, 2, 5, 5}, {3}, {2}, {1}},
    {{2, 1, 5, 4}, {3, 2}, {2, 1}, {1, 0}},
    {{1, 1, 1, 1}, {1}},
    {{0, 2, 4, 4}, {2}},
    {{1, 1, 7, 150}, {2, 3}, {1, 2}, {0, 1}},
    {{1, 2, 9, 9}, {3}, {4}},
    {{1, 1, 20, 20}, {16}, {1}},  // more cells than a byte can number
    {{3, 5, 24, 24}, {2}},
    {{2, 2, 6, 94}, {2}},
    {{1, 3, 8, 40}, {2}},
    {{2, 3, 9, 54}, {3}},
    {{1, 2, 6, 70}, {2}, {2}, {1}},
};

}  // namespace

TEST_CASE("average_pooling_2d") {
    for (const Pool& l : pools) {
        const Array x = Array::random<double>(l.x, 1);
        const double cells = static_cast<double>(l.k(0) * l.k(1));
        const Array y = world().forward("catena.average_pooling_2d", {x}, l.attrs(false))[0];
        CHECK(compare(y, pooled(l, x, 0, [&](double a, double v) { return a + v / cells; }),
                      {1e-12, 1e-12}) == "");
        CHECK(check(world(), {"catena.average_pooling_2d", {x}, l.attrs(false)}) == "");
    }
}

// Rows longer than one block of work, windows beyond the image, gaps, many planes.
TEST_CASE("average_pooling_2d of any size, on any number of threads") {
    const std::vector<Pool> wide = {
        {{1, 2, 3, 4500}, {2, 3}, {1}, {0, 1}},
        {{2, 1, 2, 6000}, {1, 4500}, {1, 700}},
        {{1, 1, 2, 30}, {2, 5000}, {1, 3}, {0, 4990}},
        {{1, 1, 2, 9000}, {1, 2}, {1, 4300}},
        {{1, 1, 20, 2000}, {1, 2}, {3, 2}, {1, 0}},
        {{1, 2, 3, 3}, {2}, {1}, {4}},
        {{1, 2, 7, 40}, {2}, {5}, {3}},
        {{2, 70, 8, 8}, {7}, {1}},
        {{3, 50, 7, 7}, {3}, {1}, {1}},
        {{1, 3, 90, 90}, {40}, {1}, {10}},
        {{2, 2, 150, 33}, {9, 4}, {2, 1}, {4, 3}},
        {{2, 300, 7, 7}, {7}},
    };
    for (const Pool& l : wide) {
        CAPTURE(l.x[3]);
        const double share = 1 / static_cast<double>(l.k(0) * l.k(1));
        const Array x = Array::random<double>(l.x, 1);
        const Array expected = pooled(l, x, 0, [&](double a, double v) { return a + share * v; });
        const Array gy = Array::random<double>(expected.shape(), 2);
        const Array numbers = unspread(l, gy, share);
        for (const bool add : {false, true}) {
            for (const char* isa : world().isas("catena.average_pooling_2d")) {
                Options options;
                options.isa = isa;
                options.add = add;
                const auto run = [&](int threads) {
                    options.threads = threads;
                    Array y = world().forward("catena.average_pooling_2d", {x}, l.attrs(false),
                                              options)[0];
                    Array gx = world().backward("catena.average_pooling_2d", {x}, {y}, {gy},
                                                l.attrs(false), options)[0];
                    return std::pair(y, gx);
                };
                const auto [y, gx] = run(1);
                CHECK(compare(y, more(expected, add), {1e-12, 1e-12}) == "");
                CHECK(compare(gx, more(numbers, add), {1e-12, 1e-12}) == "");
                const auto [y3, gx3] = run(3);
                CHECK(compare(y3, y, {0, 0}) == "");
                CHECK(compare(gx3, gx, {0, 0}) == "");
            }
        }
    }
}

TEST_CASE("max_pooling_2d") {
    for (Pool l : pools) {
        for (const bool cover_all : {false, true}) {
            l.cover_all = cover_all;
            const Array x = apart(l.x);
            const Array y = world().forward("catena.max_pooling_2d", {x}, l.attrs(true))[0];
            CHECK(compare(y, pooled(l, x, -inf, [](double a, double v) { return std::max(a, v); }),
                          {0, 0}) == "");
            CHECK(check(world(), {"catena.max_pooling_2d", {x}, l.attrs(true)}) == "");
        }
    }
}

TEST_CASE("the first of equal maxima takes the gradient, a NaN wins") {
    const Pool l{{1, 1, 2, 6}, {2}};
    const Array x = Array::from<double>({3, 3, -inf, -inf, 1, quiet,  //
                                         3, 3, -inf, -inf, quiet, 2},
                                        l.x);
    for (const char* isa : world().isas("catena.max_pooling_2d")) {
        Options options;
        options.isa = isa;
        const auto y = world().forward("catena.max_pooling_2d", {x}, l.attrs(true), options);
        CHECK(y[0].at(0) == 3);
        CHECK(y[0].at(1) == -inf);
        CHECK(std::isnan(y[0].at(2)));
        const Array gy = Array::from<double>({1, 2, 4}, {1, 1, 1, 3});
        const Array gx = world().backward("catena.max_pooling_2d", {x}, y, {gy, Array()},
                                          l.attrs(true), options)[0];
        CHECK(compare(gx, Array::from<double>({1, 0, 2, 0, 0, 4, 0, 0, 0, 0, 0, 0}, l.x), {0, 0}) ==
              "");
    }
}

TEST_CASE("a window outside the image gives -inf and takes no gradient") {
    const Pool l{{1, 1, 2, 2}, {1}, {3}, {1}};
    const Array x = Array::from<double>({1, 2, 3, 4}, l.x);
    const auto y = world().forward("catena.max_pooling_2d", {x}, l.attrs(true));
    CHECK(y[0].shape() == Dims{1, 1, 2, 2});
    CHECK(y[0].at(0) == -inf);
    const Array gy = Array::from<double>({1, 1, 1, 1}, {1, 1, 2, 2});
    const Array gx =
        world().backward("catena.max_pooling_2d", {x}, y, {gy, Array()}, l.attrs(true))[0];
    for (std::int64_t i = 0; i < 4; ++i) CHECK(gx.at(i) == 0);
}

TEST_CASE("what is refused") {
    const Array x = Array::random<float>({1, 1, 4, 4}, 1);
    const auto max = [&](const Array& images, const Pool& l) {
        (void)world().forward("catena.max_pooling_2d", {images}, l.attrs(true));
    };
    CHECK_THROWS_WITH(max(Array::random<float>({4, 4}, 1), {{}, {2}}),
                      "[catena.max_pooling_2d] x.ndim: expected 4, got 2");
    CHECK_THROWS_WITH(max(x, {{}, {1, 2, 3}}),
                      "[catena.max_pooling_2d] ksize: expected 1 or 2 numbers, got 3");
    CHECK_THROWS_WITH(max(x, {{}, {7}}),
                      "[catena.max_pooling_2d] ksize: expected a window within the padded image "
                      "(4, 4), got (7, 7)");
    // Ignores cell numbers that are out of range of the window.
    const Array at = Array::from<std::uint8_t>({0, 4, 200, 255}, {1, 1, 2, 2});
    const std::vector<std::int64_t> two = {2}, size = {4, 4};
    const Array gx = world().forward("catena.max_pooling_2d_grad",
                                     {Array::from<float>({1, 2, 4, 8}, {1, 1, 2, 2}), at},
                                     {set("ksize", Ints(two)), set("size", Ints(size))})[0];
    double sum = 0;
    for (std::int64_t i = 0; i < gx.size(); ++i) sum += gx.at(i);
    CHECK(sum == 1);
}

TEST_CASE("windows that are larger than any image, and farther apart") {
    constexpr std::int64_t huge = std::int64_t{1} << 30;
    const Pool steps = {{2, 2, 4, 6}, {1}, {1, huge}, {4}};
    const Array x = Array::random<float>(steps.x, 1);
    CHECK(compare(world().forward("catena.average_pooling_2d", {x}, steps.attrs(false))[0],
                  pooled(steps, x, 0, [](double a, double b) { return a + b; }), {}) == "");
    // The first window ends with the first pixel, and the second begins after it.
    const Pool wide = {{1, 1, 2, 3}, {1, huge}, {1, huge}, {0, huge - 1}};
    const Array image = Array::from<float>({1, 2, 3, 4, 6, 5}, wide.x);
    CHECK(world().forward("catena.max_pooling_2d", {image}, wide.attrs(true))[0].values<float>() ==
          std::vector<float>{1, 3, 4, 6});
    const Pool uncountable = {{1, 1, 2, 3}, {huge}, {huge}, {huge / 2}};
    CHECK_THROWS_WITH(
        (void)world().forward("catena.max_pooling_2d", {image}, uncountable.attrs(true)),
        "[catena.max_pooling_2d] ksize: expected at most 2147483647 cells, got "
        "1152921504606846976");
}
