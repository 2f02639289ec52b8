// Tests vision.catena: images whose pixels are known.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

namespace {

using Ints = catena::plugin::Ints;

World& world() {
    static World world({VISION_PLUGIN});
    return world;
}
std::vector<double> numbers(const Array& x) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < x.size(); ++i) all.push_back(x.at(i));
    return all;
}
const Array square = Array::from<double>({1, 2, 3, 4}, {1, 1, 2, 2});

}  // namespace

TEST_CASE("resize_images: pixels between those of x") {
    const std::int64_t size[] = {2, 3};
    const auto resized = [&](const char* mode, bool align) {
        return numbers(world().forward(
            "catena.resize_images", {square},
            {set("output_shape", Ints(size)), set("mode", mode), set("align_corners", align)})[0]);
    };
    CHECK(resized("bilinear", true) == std::vector<double>{1, 1.5, 2, 3, 3.5, 4});
    CHECK(resized("nearest", true) == std::vector<double>{1, 1, 2, 3, 3, 4});
    const std::vector<double> apart = resized("bilinear", false);
    CHECK(apart[1] == doctest::Approx(1.5));
    CHECK(apart[5] == doctest::Approx(4));
}

TEST_CASE("spatial_transformer: the mirrored image, moved by half a pixel") {
    const std::int64_t size[] = {2, 2};
    const Array theta = Array::from<double>({-1, 0, 1, 0, 1, 0}, {1, 2, 3});
    const Array grid = world().forward("catena.spatial_transformer_grid", {theta},
                                       {set("output_shape", Ints(size))})[0];
    CHECK(numbers(grid) == std::vector<double>{2, 0, 2, 0, -1, -1, 1, 1});
    const Array y = world().forward("catena.spatial_transformer_sampler", {square, grid})[0];
    CHECK(numbers(y) == std::vector<double>{1, 1.5, 2, 3.5});
}
