// convolution_2d and its kin alone (gradients compose functions of math and array).
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

namespace {

using Ints = catena::plugin::Ints;

World& world() {
    static World world({CONNECTION_PLUGIN, MATH_PLUGIN, ARRAY_PLUGIN});
    return world;
}

struct Layer {
    Dims x;  // (N, C, H, W)
    Dims w;  // (out, C, kh, kw)
    Dims stride = {1};
    Dims pad = {0};

    Attrs attrs() const { return {set("stride", Ints(stride)), set("pad", Ints(pad))}; }
    std::int64_t side(std::size_t d) const {
        const std::size_t s = stride.size() == 1 ? 0 : d - 2;
        const std::size_t p = pad.size() == 1 ? 0 : d - 2;
        return (x[d] + 2 * pad[p] - w[d]) / stride[s] + 1;
    }
    Dims y() const { return {x[0], w[0], side(2), side(3)}; }
};

// y by the definition, in double.
Array convolved(const Layer& l, const Array& x, const Array& w, const Array& b) {
    const Dims size = l.y();
    Array y(size, catena::plugin::dtype_of<double>());
    std::int64_t i = 0;
    for (std::int64_t n = 0; n < size[0]; ++n)
        for (std::int64_t o = 0; o < size[1]; ++o)
            for (std::int64_t oy = 0; oy < size[2]; ++oy)
                for (std::int64_t ox = 0; ox < size[3]; ++ox) {
                    double sum = b ? b.at(o) : 0;
                    for (std::int64_t c = 0; c < l.x[1]; ++c)
                        for (std::int64_t ky = 0; ky < l.w[2]; ++ky)
                            for (std::int64_t kx = 0; kx < l.w[3]; ++kx) {
                                const std::int64_t iy = oy * l.stride[0] + ky - l.pad[0];
                                const std::int64_t ix = ox * l.stride.back() + kx - l.pad.back();
                                if (iy < 0 || iy >= l.x[2] || ix < 0 || ix >= l.x[3]) continue;
                                sum += x.at(((n * l.x[1] + c) * l.x[2] + iy) * l.x[3] + ix) *
                                       w.at(((o * l.x[1] + c) * l.w[2] + ky) * l.w[3] + kx);
                            }
                    y.set(i++, sum);
                }
    return y;
}

const std::vector<Layer> layers = {
    {{2, 3, 5, 4}, {2, 3, 3, 3}, {1}, {1}},
    {{2, 2, 6, 7}, {3, 2, 3, 2}, {2, 1}, {1, 0}},
    {{1, 3, 4, 4}, {2, 3, 1, 1}},
    {{3, 1, 1, 1}, {2, 1, 1, 1}},
    {{2, 2, 3, 4}, {3, 2, 3, 4}},               // the filter covers the image
    {{1, 2, 7, 8}, {1, 2, 2, 2}, {3, 4}},       // gaps between places
    {{1, 1, 2, 3}, {2, 1, 3, 2}, {2}, {3, 2}},  // places that see padding alone
    {{0, 2, 3, 3}, {2, 2, 2, 2}},
};

}  // namespace

TEST_CASE("convolution_2d") {
    for (const Layer& l : layers) {
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(l.w)));
        const Array x = Array::random<double>(l.x, 1);
        const Array w = Array::random<double>(l.w, 2);
        const Array b = Array::random<double>({l.w[0]}, 3);
        CHECK(compare(world().forward("catena.convolution_2d", {x, w, b}, l.attrs())[0],
                      convolved(l, x, w, b), {1e-12, 1e-12}) == "");
        CHECK(check(world(), {"catena.convolution_2d", {x, w, b}, l.attrs()}) == "");
        CHECK(check(world(), {"catena.convolution_2d", {x, w, Array()}, l.attrs()}) == "");
    }
}

TEST_CASE("deconvolution_2d, convolution_2d_grad_w") {
    for (const Layer& l : layers) {
        CAPTURE(catena::plugin::text_of(catena::plugin::Shape(l.w)));
        const Array y = Array::random<double>(l.y(), 4);
        const Array w = Array::random<double>(l.w, 2);
        const Array b = Array::random<double>({l.w[1]}, 3);
        const Array x = Array::random<double>(l.x, 1);
        Attrs sized = l.attrs();
        sized.push_back(set("outsize", Ints(l.x).subspan(2)));
        CHECK(check(world(), {"catena.deconvolution_2d", {y, w, b}, sized}) == "");
        CHECK(check(world(), {"catena.deconvolution_2d", {y, w, Array()}, sized}) == "");
        Attrs filter = l.attrs();
        filter.push_back(set("ksize", Ints(l.w).subspan(2)));
        CHECK(check(world(), {"catena.convolution_2d_grad_w", {x, y}, filter}) == "");
    }
}
