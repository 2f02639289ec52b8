// Tests convolution_2d and related functions (gradients compose functions of math and array).
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <array>
#include <cmath>
#include <limits>

using namespace catena::testing;

namespace {

using Ints = catena::plugin::Ints;

World& world() {
    static World world({CONNECTION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN});
    return world;
}

struct Layer {
    Dims x;  // (N, C, H, W)
    Dims w;  // (out, C / groups, kh, kw)
    Dims stride = {1};
    Dims pad = {0};
    bool cover = false;
    Dims dilate = {1};
    std::int64_t groups = 1;

    // Of all three functions.
    Attrs common() const {
        return {set("stride", Ints(stride)), set("pad", Ints(pad)), set("dilate", Ints(dilate)),
                set("groups", groups)};
    }
    Attrs attrs() const {
        Attrs all = common();
        all.push_back(set("cover_all", cover));
        return all;
    }
    std::int64_t side(std::size_t d) const {
        const auto of = [&](const Dims& list) { return list[list.size() == 1 ? 0 : d - 2]; };
        return (x[d] + 2 * of(pad) - (w[d] - 1) * of(dilate) - 1 + (cover ? of(stride) - 1 : 0)) /
                   of(stride) +
               1;
    }
    Dims y() const { return {x[0], w[0], side(2), side(3)}; }
};

// Calls f(y, x, w) with the indices of all products that make up y, by the definition.
template <class F>
void each_product(const Layer& l, const F& f) {
    const Dims size = l.y();
    const std::int64_t inner = l.w[1], filters = l.w[0] / l.groups;  // of a group
    std::int64_t i = 0;
    for (std::int64_t n = 0; n < size[0]; ++n)
        for (std::int64_t o = 0; o < size[1]; ++o)
            for (std::int64_t oy = 0; oy < size[2]; ++oy)
                for (std::int64_t ox = 0; ox < size[3]; ++ox, ++i)
                    for (std::int64_t c = 0; c < inner; ++c)
                        for (std::int64_t ky = 0; ky < l.w[2]; ++ky)
                            for (std::int64_t kx = 0; kx < l.w[3]; ++kx) {
                                const std::int64_t iy =
                                    oy * l.stride[0] + ky * l.dilate[0] - l.pad[0];
                                const std::int64_t ix =
                                    ox * l.stride.back() + kx * l.dilate.back() - l.pad.back();
                                const std::int64_t channel = o / filters * inner + c;
                                if (iy < 0 || iy >= l.x[2] || ix < 0 || ix >= l.x[3]) continue;
                                f(i, ((n * l.x[1] + channel) * l.x[2] + iy) * l.x[3] + ix,
                                  ((o * inner + c) * l.w[2] + ky) * l.w[3] + kx);
                            }
}

// Returns the elements of an array as double.
std::vector<double> numbers(const Array& a) {
    std::vector<double> result;
    for (std::int64_t i = 0; i < a.size(); ++i) result.push_back(a.at(i));
    return result;
}

// Computes y, and from a gradient gy of y the gradients of x, W and b.
struct Reference {
    Reference(const Layer& l, const Array& x, const Array& w, const Array& b, const Array& gy) {
        const Dims size = l.y();
        const std::int64_t pixels = size[2] * size[3];
        const std::vector<double> vx = numbers(x), vw = numbers(w), vgy = numbers(gy);
        std::vector<double> vy, vgx(vx.size()), vgw(vw.size()), vgb(std::size_t(l.w[0]));
        for (std::int64_t i = 0; i < gy.size(); ++i) {
            vy.push_back(b ? b.at(i / pixels % size[1]) : 0);
            vgb[std::size_t(i / pixels % size[1])] += gy.at(i);
        }
        each_product(l, [&](std::int64_t iy, std::int64_t ix, std::int64_t iw) {
            const auto [y_, x_, w_] = std::array{std::size_t(iy), std::size_t(ix), std::size_t(iw)};
            vy[y_] += vx[x_] * vw[w_];
            vgx[x_] += vgy[y_] * vw[w_];
            vgw[w_] += vgy[y_] * vx[x_];
        });
        y = Array::from<double>(vy, size);
        gx = {Array::from<double>(vgx, l.x), Array::from<double>(vgw, l.w),
              Array::from<double>(vgb, {l.w[0]})};
    }

    Array y;
    std::vector<Array> gx;
};

const std::vector<Layer> layers = {
    {{2, 3, 5, 4}, {2, 3, 3, 3}, {1}, {1}},
    {{2, 2, 6, 7}, {3, 2, 3, 2}, {2, 1}, {1, 0}},
    {{1, 3, 4, 4}, {2, 3, 1, 1}},
    {{3, 1, 1, 1}, {2, 1, 1, 1}},
    {{2, 2, 3, 4}, {3, 2, 3, 4}},               // the filter covers the image
    {{1, 2, 7, 8}, {1, 2, 2, 2}, {3, 4}},       // the stride exceeds the filter
    {{1, 1, 2, 3}, {2, 1, 3, 2}, {2}, {3, 2}},  // windows on padding only
    {{0, 2, 3, 3}, {2, 2, 2, 2}},
    {{1, 1, 4, 3}, {1, 1, 3, 3}, {2}, {1}, true},
    {{2, 3, 6, 5}, {2, 3, 3, 3}, {2}, {0}, true},
    {{2, 2, 7, 8}, {3, 2, 2, 3}, {3, 4}, {1, 0}, true},
    {{1, 2, 5, 5}, {2, 2, 1, 1}, {3}, {0}, true},  // the last window lies outside x
    {{1, 2, 2, 3}, {2, 2, 4, 3}, {3}, {0}, true},  // a filter larger than x
    {{1, 2, 4, 4}, {2, 2, 3, 3}, {1}, {1}, true},  // without effect
    {{2, 2, 0, 3}, {3, 2, 1, 2}, {1}, {1, 0}},     // images without rows
    {{2, 3, 9, 8}, {2, 3, 3, 2}, {1}, {1}, false, {2, 3}},
    {{1, 2, 9, 9}, {3, 2, 3, 3}, {2, 3}, {2, 1}, true, {3, 2}},  // neighbours share a factor
    {{2, 4, 5, 4}, {6, 2, 3, 2}, {1}, {1}, false, {1}, 2},
    {{2, 3, 5, 6}, {6, 1, 2, 3}, {2, 1}, {1, 0}, false, {2, 1}, 3},
    {{1, 4, 3, 3}, {4, 1, 1, 1}, {1}, {0}, false, {1}, 4},
    {{2, 0, 3, 3}, {2, 0, 2, 2}, {1}, {0}, false, {1}, 2},
};

}  // namespace

TEST_CASE("convolution_2d") {
    for (const Layer& l : layers) {
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(l.w)));
        const Array x = Array::random<double>(l.x, 1);
        const Array w = Array::random<double>(l.w, 2);
        const Array b = Array::random<double>({l.w[0]}, 3);
        const Array gy = Array::random<double>(l.y(), 4);
        CHECK(compare(world().forward("catena.convolution_2d", {x, w, b}, l.attrs())[0],
                      Reference(l, x, w, b, gy).y, {1e-12, 1e-12}) == "");
        CHECK(check(world(), {"catena.convolution_2d", {x, w, b}, l.attrs()}) == "");
        CHECK(check(world(), {"catena.convolution_2d", {x, w, Array()}, l.attrs()}) == "");
    }
}

TEST_CASE("deconvolution_2d, convolution_2d_grad_w") {
    for (const Layer& l : layers) {
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(l.w)));
        const Array y = Array::random<double>(l.y(), 4);
        const Array w = Array::random<double>(l.w, 2);
        const Array b = Array::random<double>({l.x[1]}, 3);
        const Array x = Array::random<double>(l.x, 1);
        Attrs sized = l.common();
        sized.push_back(set("outsize", Ints(l.x).subspan(2)));
        CHECK(check(world(), {"catena.deconvolution_2d", {y, w, b}, sized}) == "");
        CHECK(check(world(), {"catena.deconvolution_2d", {y, w, Array()}, sized}) == "");
        Attrs filter = l.attrs();
        filter.push_back(set("ksize", Ints(l.w).subspan(2)));
        CHECK(check(world(), {"catena.convolution_2d_grad_w", {x, y}, filter}) == "");
    }
}

// Several tiles, bands, groups of images and shares of channels, each with a partial one at the
// end; the instruction sets have different tiles.
TEST_CASE("large layers") {
    const std::vector<Layer> large = {
        {{3, 17, 13, 11}, {33, 17, 3, 3}, {1}, {1}},
        {{2, 5, 40, 37}, {7, 5, 5, 4}, {1}, {2, 1}},
        {{1, 3, 61, 50}, {70, 3, 7, 5}, {3, 2}, {3, 2}},
        {{37, 20, 4, 4}, {13, 20, 3, 3}},      // images smaller than a tile
        {{21, 40, 1, 1}, {150, 40, 1, 1}},     // a matrix product
        {{2, 9, 30, 30}, {11, 9, 1, 1}, {2}},  // most of x is not read
        {{1, 4, 300, 2}, {5, 4, 1, 2}, {1}, {0, 1}},
        {{5, 80, 9, 9}, {105, 80, 3, 3}, {2}, {1}},  // filters in several panels at once
        {{2, 2, 7, 7}, {3, 2, 2, 2}, {1}, {4}},      // a pad larger than the filter
        {{3, 17, 14, 12}, {33, 17, 3, 3}, {2}, {1}, true},
        {{1, 3, 60, 50}, {70, 3, 7, 5}, {4, 3}, {3, 2}, true},
        {{2, 34, 33, 31}, {66, 17, 3, 3}, {2, 1}, {4, 2}, false, {3, 2}, 2},
        {{3, 40, 30, 29}, {40, 1, 3, 3}, {1}, {1}, false, {1}, 40},  // a channel in each group
    };
    for (const Layer& l : large) {
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(l.x)));
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(l.w)));
        const Array x64 = Array::random<double>(l.x, 1);
        const Array w64 = Array::random<double>(l.w, 2);
        const Array b64 = Array::random<double>({l.w[0]}, 3);
        const Array gy64 = Array::random<double>(l.y(), 4);
        const Reference expected(l, x64, w64, b64, gy64);
        for (const catena_dtype dtype :
             {catena::plugin::dtype_of<float>(), catena::plugin::dtype_of<double>()})
            for (const char* isa : world().isas("catena.convolution_2d")) {
                CAPTURE(isa);
                const Array x = x64.to(dtype);
                const Array w = w64.to(dtype);
                const Array b = b64.to(dtype);
                const Array gy = gy64.to(dtype);
                const Tolerance tolerance =
                    dtype.bits == 32 ? Tolerance{1e-4, 1e-4} : Tolerance{1e-11, 1e-11};
                Options options;
                options.isa = isa;
                const auto y =
                    world().forward("catena.convolution_2d", {x, w, b}, l.attrs(), options);
                CHECK(compare(y[0], expected.y, tolerance) == "");
                const auto gx = world().backward("catena.convolution_2d", {x, w, b}, y, {gy},
                                                 l.attrs(), options);
                for (std::size_t i = 0; i < 3; ++i)
                    CHECK(compare(gx[i], expected.gx[i], tolerance) == "");
                options.threads = 3;
                CHECK(world().forward("catena.convolution_2d", {x, w, b}, l.attrs(), options) == y);
                CHECK(world().backward("catena.convolution_2d", {x, w, b}, y, {gy}, l.attrs(),
                                       options) == gx);
            }
    }
}

TEST_CASE("no channels") {
    const Array x = Array::random<float>({2, 0, 3, 3}, 1);
    const Array w = Array::random<float>({2, 0, 2, 2}, 2);
    const Array b = Array::from<float>({3, 4}, {2});
    const Array y = world().forward("catena.convolution_2d", {x, w, b})[0];
    for (std::int64_t i = 0; i < y.size(); ++i) CHECK(y.at(i) == (i / 4 % 2 == 0 ? 3 : 4));
}

TEST_CASE("numbers beyond the filter's reach do not matter, those within do") {
    Array x = Array::random<float>({1, 1, 5, 5}, 1);
    x.set(12, std::numeric_limits<double>::infinity());
    x.set(24, std::numeric_limits<double>::quiet_NaN());
    const Array w = Array::from<float>({1, 1, 1, 1}, {1, 1, 2, 2});
    const Dims stride = {2};
    const Array y =
        world().forward("catena.convolution_2d", {x, w}, {set("stride", Ints(stride))})[0];
    REQUIRE(y.shape() == Dims{1, 1, 2, 2});
    CHECK(std::isfinite(y.at(0)));
    CHECK(std::isfinite(y.at(1)));
    CHECK(std::isfinite(y.at(2)));
    CHECK(std::isinf(y.at(3)));
}

// The pixels between those that a filter sees, and zeros between pixels, are not multiplied.
TEST_CASE("infinite filters whose elements are apart") {
    const double inf = std::numeric_limits<double>::infinity();
    const Array x = Array::from<double>({1, 2, 3, 4}, {1, 1, 1, 4});
    const Array w = Array::from<double>({inf, 1}, {1, 1, 1, 2});
    const Dims two = {2};
    const Attrs attrs = {set("dilate", Ints(two))};
    const Array y = world().forward("catena.convolution_2d", {x, w}, attrs)[0];
    CHECK(numbers(y) == std::vector<double>{inf, inf});
    const auto gx = world().backward("catena.convolution_2d", {x, w}, {y}, {y}, attrs);
    CHECK(numbers(gx[0]) == std::vector<double>{inf, inf, inf, inf});
    const Array back = world().forward("catena.deconvolution_2d", {x, w}, attrs)[0];
    CHECK(numbers(back) == std::vector<double>{inf, inf, inf, inf, 3, 4});
}

TEST_CASE("deconvolution_2d's sizes") {
    const Array x = Array::random<float>({2, 3, 4, 5}, 1);
    const Array w = Array::random<float>({3, 2, 3, 2}, 2);
    const auto shape = [&](const Dims& stride, const Dims& pad, const Dims& outsize) {
        return world()
            .forward("catena.deconvolution_2d", {x, w},
                     {set("stride", Ints(stride)), set("pad", Ints(pad)),
                      set("outsize", Ints(outsize))})[0]
            .shape();
    };
    CHECK(shape({1}, {0}, {}) == Dims{2, 2, 6, 6});
    CHECK(shape({2, 3}, {1, 0}, {}) == Dims{2, 2, 7, 14});
    CHECK(shape({2, 3}, {1, 0}, {8, 16}) == Dims{2, 2, 8, 16});
    CHECK(shape({2, 2}, {0}, {10}) == Dims{2, 2, 10, 10});
    // Only cover_all maps (8, 9) back to x's size, no mode (7, 8) or (11, 11); (8, 11) mixes modes.
    CHECK(shape({2, 2}, {0}, {8, 9}) == Dims{2, 2, 8, 9});
    CHECK_THROWS_AS(shape({2, 2}, {0}, {7, 8}), Failure);
    CHECK_THROWS_AS(shape({2, 2}, {0}, {11}), Failure);
    CHECK_THROWS_AS(shape({2, 2}, {0}, {8, 11}), Failure);
}

// The expected values are Chainer 7.8.1's.
TEST_CASE("convolution_nd and deconvolution_nd count what filters of ones cover") {
    const auto ones = [](const Dims& shape) {
        return Array::from<double>(
            std::vector<double>(static_cast<std::size_t>(catena::plugin::size_of(shape)), 1),
            shape);
    };
    const Dims one = {1}, two = {2};
    const auto numbers = [](const Array& y) {
        std::vector<double> all;
        for (std::int64_t i = 0; i < y.size(); ++i) all.push_back(y.at(i));
        return all;
    };
    const Array x = ones({1, 1, 2, 1, 3}), w = ones({1, 1, 2, 1, 2});
    CHECK(numbers(world().forward("catena.convolution_nd", {x, w, ones({1})})[0]) ==
          std::vector<double>{5, 5});
    CHECK(numbers(world().forward("catena.convolution_1d",
                                  {ones({1, 2, 3}), ones({1, 2, 2}), Array()},
                                  {set("pad", Ints(one))})[0]) == std::vector<double>{2, 4, 4, 2});
    CHECK(numbers(world().forward("catena.deconvolution_nd", {x, w, Array()})[0]) ==
          std::vector<double>{1, 2, 2, 1, 2, 4, 4, 2, 1, 2, 2, 1});
    CHECK(numbers(world().forward("catena.deconvolution_1d",
                                  {ones({1, 1, 2}), ones({1, 1, 1}), ones({1})},
                                  {set("stride", Ints(two))})[0]) == std::vector<double>{2, 1, 2});
}

TEST_CASE("deconvolution_2d to a size that cover_all alone takes back") {
    const Dims stride = {2}, pad = {1}, size = {4, 3};
    const Attrs attrs = {set("stride", Ints(stride)), set("pad", Ints(pad)),
                         set("outsize", Ints(size))};
    const Array x = Array::from<double>({1, 2, 3, 4, 5, 6}, {1, 1, 3, 2});
    const Array w = Array::from<double>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3});
    const Array gy = Array::from<double>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 1, 4, 3});
    const Array y = world().forward("catena.deconvolution_2d", {x, w}, attrs)[0];
    CHECK(numbers(y) == std::vector<double>{5, 14, 10, 14, 36, 24, 15, 34, 20, 34, 76, 44});
    for (const auto& gx : {world().backward("catena.deconvolution_2d", {x, w}, {y}, {gy}, attrs),
                           world().gradient("catena.deconvolution_2d", {x, w}, {y}, {gy}, attrs)}) {
        CHECK(numbers(gx[0]) == std::vector<double>{94, 106, 285, 267, 53, 35});
        CHECK(numbers(gx[1]) == std::vector<double>{86, 158, 70, 36, 64, 26, 54, 94, 38});
    }
}

TEST_CASE("senseless calls") {
    const auto message = [](const char* function, const Dims& x, const Dims& w, const Dims& b,
                            const Attrs& attrs = {}) -> std::string {
        try {
            std::vector<Array> inputs = {Array::random<float>(x, 1), Array::random<float>(w, 1)};
            if (!b.empty()) inputs.push_back(Array::random<float>(b, 1));
            world().forward(std::string("catena.") + function, inputs, attrs);
        } catch (const Failure& e) {
            return e.what();
        }
        return "";
    };
    const char* const forward = "convolution_2d";
    CHECK(message(forward, {2, 3, 4}, {1, 3, 2, 2}, {}) ==
          "[catena.convolution_2d] x.ndim: expected 4, got 3");
    CHECK(message(forward, {2, 3, 4, 4}, {3, 2, 2}, {}) ==
          "[catena.convolution_2d] W.ndim: expected 4, got 3");
    CHECK(message(forward, {2, 3, 4, 4}, {1, 2, 2, 2}, {}) ==
          "[catena.convolution_2d] x.shape[1]: expected 2, got 3");
    CHECK(message(forward, {2, 3, 4, 4}, {1, 3, 2, 2}, {2}) ==
          "[catena.convolution_2d] b.shape: expected (1,), got (2,)");
    CHECK(message(forward, {2, 3, 4, 4}, {1, 3, 5, 2}, {}) ==
          "[catena.convolution_2d] W.shape[2:]: expected at most the padded image (4, 4), got (5, "
          "2)");
    CHECK(message(forward, {2, 3, 4, 4}, {1, 3, 0, 2}, {}) ==
          "[catena.convolution_2d] W.shape[2:]: expected at least (1, 1), got (0, 2)");
    const Dims three = {1, 1, 1};
    CHECK(message(forward, {2, 3, 4, 4}, {1, 3, 2, 2}, {}, {set("pad", Ints(three))}) ==
          "[catena.convolution_2d] pad: expected 1 or 2 numbers, got 3");
    const auto groups = [](std::int64_t n) { return Attrs{set("groups", n)}; };
    CHECK(message(forward, {2, 4, 4, 4}, {4, 1, 2, 2}, {}, groups(2)) ==
          "[catena.convolution_2d] x.shape[1]: expected 2, got 4");
    CHECK(message(forward, {2, 4, 4, 4}, {3, 2, 2, 2}, {}, groups(2)) ==
          "[catena.convolution_2d] W.shape[0]: expected a multiple of groups = 2, got 3");
    CHECK(message("deconvolution_2d", {2, 3, 4, 4}, {3, 2, 2, 2}, {}, groups(2)) ==
          "[catena.deconvolution_2d] x.shape[1]: expected a multiple of groups = 2, got 3");
    CHECK(message("deconvolution_2d", {2, 4, 4, 4}, {4, 2, 2, 2}, {2}, groups(2)) ==
          "[catena.deconvolution_2d] b.shape: expected (4,), got (2,)");
    const Dims six = {6};
    CHECK(message(forward, {2, 3, 4, 4}, {1, 3, 1, 2}, {}, {set("dilate", Ints(six))}) ==
          "[catena.convolution_2d] W.shape[2:]: expected at most the padded image (4, 4), got (1, "
          "7)");
    const Dims nine = {9};
    CHECK(
        message("deconvolution_2d", {2, 3, 4, 4}, {3, 2, 2, 2}, {}, {set("outsize", Ints(nine))}) ==
        "[catena.deconvolution_2d] outsize: expected a size that convolution_2d takes to (4, 4), "
        "got (9, 9), taken to (8, 8)");
    const Dims two = {2};
    CHECK(message("convolution_2d_grad_w", {2, 3, 4, 4}, {2, 3, 4, 4}, {},
                  {set("ksize", Ints(two))}) ==
          "[catena.convolution_2d_grad_w] gy.shape: expected (2, 3, 3, 3), got (2, 3, 4, 4)");
}
