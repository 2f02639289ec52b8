// Tests oneDNN's convolutions against the portable ones.
#include "compare.hpp"

#include <cmath>

using namespace onednn_test;

namespace {

using Ints = std::vector<std::int64_t>;

struct Shape {
    Dims x;
    Dims w;
    Ints stride = {1};
    Ints pad = {0};
    Ints dilate = {1};
    std::int64_t groups = 1;
};

Attrs attributes(const Ints& stride, const Ints& pad) {
    return {set("stride", catena::plugin::Ints(stride)), set("pad", catena::plugin::Ints(pad))};
}
Attrs attributes(const Shape& s) {
    Attrs attrs = attributes(s.stride, s.pad);
    attrs.push_back(set("dilate", catena::plugin::Ints(s.dilate)));
    attrs.push_back(set("groups", s.groups));
    return attrs;
}

// All have enough multiplications for this plugin; many extents are odd.
const Shape shapes[] = {
    {{5, 16, 12, 12}, {32, 16, 3, 3}, {1}, {1}},
    {{7, 29, 13, 15}, {45, 29, 3, 5}, {2, 1}, {1, 2}},
    {{1, 32, 20, 21}, {64, 32, 3, 3}, {1}, {1}},
    {{1, 64, 14, 14}, {128, 64, 3, 3}, {1}, {1}},
    {{5, 31, 15, 16}, {16, 31, 3, 3}, {2}, {1}},
    {{19, 16, 9, 9}, {16, 16, 3, 3}},
    {{97, 30, 8, 8}, {43, 30, 2, 2}, {3}, {1, 0}},
    {{5, 128, 7, 7}, {150, 128, 1, 1}},
    {{4, 14, 30, 31}, {32, 14, 7, 7}, {2}, {3}},
    {{2, 16, 40, 40}, {16, 16, 11, 11}, {4}, {2}},
    {{2, 128, 6, 6}, {256, 128, 3, 3}, {1}, {1}},
    {{100, 32, 4, 4}, {64, 32, 4, 4}},
    {{17, 64, 28, 28}, {32, 64, 3, 3}, {1}, {1}},  // Winograd's algorithm: these three
    {{7, 48, 23, 26}, {64, 48, 3, 3}, {1}, {1, 0}},
    {{5, 47, 31, 30}, {65, 47, 3, 3}},
    {{3, 3, 31, 30}, {32, 3, 7, 7}, {2}, {3}},  // images: few channels
    {{9, 1, 28, 28}, {32, 1, 5, 5}},
    {{5, 16, 14, 15}, {32, 16, 3, 3}, {1}, {2, 1}, {2, 1}},
    {{3, 29, 30, 15}, {45, 29, 3, 2}, {2, 1}, {1, 2}, {4, 5}},
    {{3, 64, 14, 15}, {96, 32, 3, 3}, {1}, {1}, {1}, 2},
    {{5, 64, 17, 15}, {64, 16, 3, 2}, {1, 2}, {1}, {2}, 4},
    {{4, 64, 30, 30}, {64, 1, 3, 3}, {1}, {1}, {1}, 64},
    {{19, 45, 30, 31}, {45, 1, 3, 5}, {2}, {1, 2}, {1}, 45},
};

// With operands rounded to bfloat16.
constexpr Tolerance half = {0x1p-7, 0x1p-4};

}  // namespace

TEST_CASE("convolution_2d") {
    for (const Shape& s : shapes) {
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(s.x)));
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(s.w)));
        const Array x = Array::random<double>(s.x, 1);
        const Array w = Array::random<double>(s.w, 2, -0.2, 0.2);
        const Array b = Array::random<double>({s.w[0]}, 3);
        const Attrs attrs = attributes(s);
        CHECK(compare_plugins({"catena.convolution_2d", {x, w, b}, attrs}) == "");
        CHECK(compare_plugins(
                  {"catena.convolution_2d", {x, w, b}, attrs, half, CATENA_CALL_BFLOAT16}) == "");
        CHECK(compare_plugins({"catena.convolution_2d", {x, w, Array()}, attrs}) == "");
    }
}

TEST_CASE("deconvolution_2d") {
    for (const Shape& s : shapes) {
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(s.x)));
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(s.w)));
        const auto pair = [](const Ints& v, std::size_t i) { return v[v.size() == 1 ? 0 : i]; };
        Dims y = {s.x[0], s.w[0], 0, 0};
        for (std::size_t i : {0, 1})
            y[2 + i] =
                (s.x[2 + i] + 2 * pair(s.pad, i) - (s.w[2 + i] - 1) * pair(s.dilate, i) - 1) /
                    pair(s.stride, i) +
                1;
        Attrs attrs = attributes(s);
        attrs.push_back(set("outsize", catena::plugin::Ints(s.x).subspan(2)));
        const Array x = Array::random<double>(y, 1);
        const Array w = Array::random<double>(s.w, 2, -0.2, 0.2);
        const Array b = Array::random<double>({s.x[1]}, 3);
        CHECK(compare_plugins({"catena.deconvolution_2d", {x, w, b}, attrs}) == "");
        CHECK(compare_plugins(
                  {"catena.deconvolution_2d", {x, w, b}, attrs, half, CATENA_CALL_BFLOAT16}) == "");
        CHECK(compare_plugins({"catena.deconvolution_2d", {x, w, Array()}, attrs}) == "");
        attrs = attributes(s);
        attrs.push_back(set("ksize", catena::plugin::Ints(s.w).subspan(2)));
        CHECK(compare_plugins(
                  {"catena.convolution_2d_grad_w", {Array::random<double>(s.x, 4), x}, attrs}) ==
              "");
    }
}

TEST_CASE("places beyond the pad are for the portable kernels") {
    const Ints stride = {2}, size = {12, 12};
    const Attrs two = {set("stride", catena::plugin::Ints(stride))};
    Attrs cover = two, sized = two;
    cover.push_back(set("cover_all", true));
    sized.push_back(set("outsize", catena::plugin::Ints(size)));
    const auto in = narrow(
        {Array::random<double>({16, 16, 12, 12}, 1), Array::random<double>({32, 16, 3, 3}, 2)});
    const auto ran = [&](const char* function, const std::vector<Array>& x, const Attrs& attrs) {
        const auto y = world().forward(function, x, attrs);
        const std::string forward = world().ran();
        world().backward(function, x, y, {y[0]}, attrs);
        CHECK(world().ran() == forward);
        return forward;
    };
    const char* const portable = "org.catena.connection";
    CHECK(ran("catena.convolution_2d", in, two) == onednn_id);
    CHECK(ran("catena.convolution_2d", in, cover) == portable);
    const Array places = narrow(Array::random<double>({16, 32, 6, 6}, 3));
    CHECK(ran("catena.deconvolution_2d", {places, in[1]}, sized) == portable);
}

TEST_CASE("a pin works both ways") {
    const auto x = narrow({Array::random<double>({8, 16, 12, 12}, 1),
                           Array::random<double>({32, 16, 3, 3}, 2), Array()});
    Options options;
    for (const char* id : {"org.catena.connection", onednn_id}) {
        options.plugin = id;
        const auto y = world().forward("catena.convolution_2d", x, {}, options);
        CHECK(world().ran() == id);
        world().backward("catena.convolution_2d", x, y, {y[0]}, {}, options);
        CHECK(world().ran() == id);
    }
}

TEST_CASE("what others do better is left to them") {
    const auto done_by = [](const Dims& x, const Dims& w, const Attrs& attrs, catena_dtype dtype) {
        world().forward(
            "catena.convolution_2d",
            {Array::random<double>(x, 1).to(dtype), Array::random<double>(w, 2).to(dtype), Array()},
            attrs);
        return world().ran();
    };
    const Ints one = {1};
    const Ints three = {3};
    const Dims x = {8, 16, 12, 12};
    const Dims w = {32, 16, 3, 3};
    CHECK(done_by(x, w, {}, dtype_of<float>()) == onednn_id);
    CHECK(done_by(x, w, {}, dtype_of<double>()) != onednn_id);
    CHECK(done_by({1, 2, 5, 5}, {2, 2, 3, 3}, {}, dtype_of<float>()) != onednn_id);
    CHECK(done_by({0, 16, 12, 12}, w, {}, dtype_of<float>()) != onednn_id);
    CHECK(done_by(x, w, attributes(one, three), dtype_of<float>()) != onednn_id);
    CHECK(done_by({100, 1, 28, 28}, {32, 1, 5, 5}, {}, dtype_of<float>()) == onednn_id);
    CHECK(done_by({100, 5, 28, 28}, {32, 5, 5, 5}, {}, dtype_of<float>()) != onednn_id);
    CHECK(done_by({10, 20, 12, 12}, {50, 20, 5, 5}, {}, dtype_of<float>()) != onednn_id);
    CHECK(done_by({8, 64, 14, 14}, {64, 64, 1, 1}, {}, dtype_of<float>()) != onednn_id);
}

TEST_CASE("zeros around the image do not touch what is no number") {
    auto inputs = narrow({Array::random<double>({4, 15, 12, 12}, 1),
                          Array::random<double>({48, 15, 3, 3}, 2), Array()});
    inputs[0].set(0, std::nan(""));  // the first pixel
    inputs[0].set(15 * 144 + 5, std::numeric_limits<float>::infinity());
    const Ints one = {1};
    Options portable;
    portable.plugin = "org.catena.connection";
    const auto attrs = attributes(one, one);
    const auto expected = world().forward("catena.convolution_2d", inputs, attrs, portable);
    CHECK(compare(world().forward("catena.convolution_2d", inputs, attrs)[0], expected[0],
                  {1e-4, 1e-4}) == "");
    CHECK(world().ran() == onednn_id);
}
