// Convolutions with catena's own kernels: image borders, strides, and pixels that no filter covers.
#include "both.hpp"

#include <cmath>

namespace {

struct Geometry {
    Dims x, w;
    std::vector<std::int64_t> stride, pad, dilate = {1};
    std::int64_t groups = 1;
};
const Geometry geometries[] = {
    {{2, 3, 5, 4}, {2, 3, 3, 3}, {1}, {1}},
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {1}, {0}},
    {{3, 5, 13, 11}, {70, 5, 3, 2}, {1}, {1, 0}},  // many outputs
    {{2, 20, 9, 17}, {6, 20, 5, 5}, {1}, {2}},     // many taps
    {{2, 4, 16, 15}, {5, 4, 3, 3}, {2}, {1}},
    {{2, 3, 17, 14}, {4, 3, 4, 3}, {3, 2}, {0, 2}},
    {{1, 2, 9, 23}, {3, 2, 2, 3}, {4, 5}, {1, 0}},  // pixels that no filter covers
    {{2, 2, 3, 3}, {3, 2, 3, 3}, {7}, {2}},         // strides longer than the image
    {{2, 3, 2, 2}, {2, 3, 6, 5}, {1}, {3}},         // filters larger than the image
    {{130, 1, 2, 2}, {2, 1, 1, 1}, {1}, {0}},
    {{0, 2, 4, 4}, {3, 2, 3, 3}, {1}, {0}},
    {{2, 0, 4, 4}, {3, 0, 3, 3}, {1}, {0}},
    {{2, 2, 0, 3}, {3, 2, 1, 2}, {1}, {1, 0}},
    {{2, 3, 9, 8}, {2, 3, 3, 2}, {1}, {1}, {2, 3}},
    {{1, 2, 9, 9}, {3, 2, 3, 3}, {2, 3}, {2, 1}, {3, 2}},
    {{2, 4, 5, 4}, {6, 2, 3, 2}, {1}, {1}, {1}, 2},
    {{2, 3, 5, 6}, {6, 1, 2, 3}, {2, 1}, {1, 0}, {2, 1}, 3},
};
Attrs attributes(const Geometry& g) {
    return {plugin::set("stride", plugin::Ints(g.stride)), plugin::set("pad", plugin::Ints(g.pad)),
            plugin::set("dilate", plugin::Ints(g.dilate)), plugin::set("groups", g.groups)};
}

}  // namespace

TEST_CASE_TEMPLATE("convolution: every geometry, both ways", T, float, double, Float16, BFloat16) {
    unsigned i = 0;
    for (const Geometry& g : geometries) {
        CAPTURE(++i);
        const Array b = i % 2 == 0 ? draw<T>({g.w[0]}, 3) : Array();
        check_both<T>("catena.convolution_2d", {draw<T>(g.x, 1), draw<T>(g.w, 2), b}, attributes(g),
                      true, i % 3 == 0);
        // The same geometry for the transposed convolution and the gradient of W.
        const auto y = world().forward("catena.convolution_2d", {draw<T>(g.x, 1), draw<T>(g.w, 2)},
                                       attributes(g), on("cpu"))[0];
        Attrs attrs = attributes(g);
        const std::int64_t size[] = {g.x[2], g.x[3]};
        Attrs back = attrs;
        back.push_back(plugin::set("outsize", plugin::Ints(size)));
        check_both<T>("catena.deconvolution_2d", {draw<T>(y.shape(), 4), draw<T>(g.w, 2), Array()},
                      back, true, i % 3 == 1);
        const std::int64_t filter[] = {g.w[2], g.w[3]};
        attrs.push_back(plugin::set("ksize", plugin::Ints(filter)));
        check_both<T>("catena.convolution_2d_grad_w", {draw<T>(g.x, 1), draw<T>(y.shape(), 4)},
                      attrs, true, i % 3 == 2);
    }
}

TEST_CASE("convolution: sums over many pixels, images in one part and in several") {
    check_both<float>("catena.convolution_2d", {draw<float>({5, 2, 40, 41}, 1),
                                                draw<float>({3, 2, 3, 3}, 2), draw<float>({3}, 3)});
    const Dims wide = {3, 1, 150, 280};  // columns of 2 images fit in 2^22 elements, of 3 not
    const std::int64_t pad[] = {3};
    check_both<float>("catena.convolution_2d",
                      {draw<float>(wide, 1), draw<float>({1, 1, 7, 7}, 2), draw<float>({1}, 3)},
                      {plugin::set("pad", plugin::Ints(pad))});
}

TEST_CASE("convolution: NaN stays where the filter sees it") {
    std::vector<float> x(25, 1);
    x[12] = static_cast<float>(no_number);
    const auto y = world()
                       .forward("catena.convolution_2d",
                                {Array::from<float>(x, {1, 1, 5, 5}),
                                 Array::from<float>(std::vector<float>{2}, {1, 1, 1, 1})},
                                {}, on("cuda"))[0]
                       .values<float>();
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i == 12));
}
