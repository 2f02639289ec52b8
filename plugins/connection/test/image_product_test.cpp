// Where the kernels for GPUs look up their numbers: the products by plain loops, against convolutions.
#include "image_product.hpp"

#include <doctest/doctest.h>

#include <vector>

using catena::plugins::Convolution;
using catena::plugins::ImageProduct;
using catena::plugins::ImageProductKind;

namespace {

using Doubles = std::vector<double>;

Doubles numbers(std::int64_t n, int seed) {
    Doubles values;
    for (std::int64_t i = 0; i < n; ++i)
        values.push_back(static_cast<double>((i * 37 + seed) % 11 - 5));
    return values;
}
double& at(Doubles& values, std::int64_t i) { return values.at(static_cast<std::size_t>(i)); }

// body(x, w, y) for all that meet: indices of elements.
template <class Body>
void for_each_meeting(const Convolution& c, const Body& body) {
    for (std::int64_t n = 0; n < c.n; ++n)
        for (std::int64_t o = 0; o < c.outputs; ++o)
            for (std::int64_t i = 0; i < c.pixels(); ++i)
                for (std::int64_t tap = 0; tap < c.taps(); ++tap) {
                    const std::int64_t y = i / c.ow * c.stride.y - c.pad.y + tap / c.kw % c.kh;
                    const std::int64_t x = i % c.ow * c.stride.x - c.pad.x + tap % c.kw;
                    if (y < 0 || y >= c.height || x < 0 || x >= c.width) continue;
                    const std::int64_t channel = tap / (c.kh * c.kw);
                    body(((n * c.channels + channel) * c.height + y) * c.width + x,
                         o * c.taps() + tap, (n * c.outputs + o) * c.pixels() + i);
                }
}

// As image_product_kernel, one element after the other.
Doubles product(const Convolution& c, ImageProductKind kind, Doubles a, Doubles b,
                std::int64_t size) {
    const ImageProduct p = image_product(c, kind, c.n);
    Doubles result(static_cast<std::size_t>(size));
    std::vector<int> written(result.size());
    for (std::int64_t i = 0; i < p.classes(); ++i) {
        const ImageProduct::Class of(p, static_cast<std::int32_t>(i));
        for (std::int64_t n = 0; n < p.n_of(of); ++n) {
            std::int64_t out = -1;
            const auto column = p.place_of_n(of, static_cast<std::uint32_t>(n), out);
            for (std::int32_t m = 0; m < p.m; ++m) {
                double sum = 0;
                for (std::int32_t k = 0; k < p.k_of(of); ++k) {
                    std::int64_t from = -1;
                    const auto step = p.place_of_k(of, static_cast<std::uint32_t>(k), from);
                    if (ImageProduct::is_within(step.y, column.y, p.height) &&
                        ImageProduct::is_within(step.x, column.x, p.width))
                        sum += at(a, m * p.a_row + from) * at(b, step.at + column.at);
                }
                at(result, m * p.out_row + out) = sum;
                ++written.at(static_cast<std::size_t>(m * p.out_row + out));
            }
        }
    }
    CHECK(written == std::vector<int>(written.size(), 1));
    return result;
}

}  // namespace

TEST_CASE("products over images find each number, and write each result once") {
    const Convolution all[] = {
        {2, 3, 5, 4, 2, 5, 4, 3, 3, {1, 1}, {1, 1}},
        {1, 1, 1, 1, 1, 1, 1, 1, 1, {1, 1}, {0, 0}},
        {2, 3, 17, 14, 4, 5, 8, 4, 3, {3, 2}, {0, 2}},
        {1, 2, 9, 23, 3, 3, 5, 2, 3, {4, 5}, {1, 0}},  // pixels that no filter sees
        {2, 2, 3, 3, 3, 1, 1, 3, 3, {7, 7}, {2, 2}},   // steps longer than the image
        {2, 3, 2, 2, 2, 3, 4, 6, 5, {1, 1}, {3, 3}},   // filters larger than the image
        {3, 1, 7, 6, 5, 2, 2, 2, 2, {4, 4}, {0, 1}},
    };
    for (const Convolution& c : all) {
        CAPTURE(c.height);
        REQUIRE(is_countable(c));
        Doubles x = numbers(c.n * c.image(), 1);
        Doubles w = numbers(c.outputs * c.taps(), 2);
        Doubles gy = numbers(c.n * c.outputs * c.pixels(), 3);
        Doubles y(gy.size()), gx(x.size()), gw(w.size());
        for_each_meeting(c, [&](std::int64_t i, std::int64_t j, std::int64_t k) {
            at(y, k) += at(x, i) * at(w, j);
            at(gx, i) += at(gy, k) * at(w, j);
            at(gw, j) += at(gy, k) * at(x, i);
        });
        const auto size = [](const Doubles& values) { return std::ssize(values); };
        CHECK(product(c, ImageProductKind::convolve, w, x, size(y)) == y);
        CHECK(product(c, ImageProductKind::back, w, gy, size(gx)) == gx);
        CHECK(product(c, ImageProductKind::correlate, gy, x, size(gw)) == gw);
    }
}
