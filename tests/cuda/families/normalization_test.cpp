// Normalization, with sizes and shapes that matter on a GPU.
#include "both.hpp"

#include <cmath>
#include <vector>

namespace {

// Rows and columns that are multiples of a pack or not; lines shorter than a warp and lines split
// over blocks; a single channel, image or value of a channel; no images and no pixels.
const Dims shapes[] = {{6, 4},          {130, 8},      {33, 70},     {1, 5},       {700, 1},
                       {1, 1},          {3, 2, 5},     {4, 3, 7, 7}, {2, 5, 6, 6}, {1, 3, 70},
                       {2, 2, 60, 100}, {40, 3, 1, 1}, {3, 1, 500},  {5, 33, 2},   {2, 130, 3, 4},
                       {0, 4},          {2, 3, 0},     {9, 8, 4}};

template <class T>
using Statistic = std::conditional_t<sizeof(T) == 2, float, T>;

template <class T>
std::vector<Array> channels_of(const Dims& shape, unsigned seed) {
    return {draw<T>({shape[1]}, seed), draw<T>({shape[1]}, seed + 1)};
}
template <class T>
std::vector<Array> with_statistics(std::vector<Array> x) {
    const Dims channels = x[1].shape();
    x.push_back(draw<Statistic<T>>(channels, 7));
    x.push_back(draw<Statistic<T>>(channels, 8, 0.5, 2));
    return x;
}

}  // namespace

TEST_CASE_TEMPLATE("batch normalization: rows and columns of every length", T, float, double,
                   Float16, BFloat16) {
    for (const Dims& shape : shapes) {
        CAPTURE(shape.size());
        CAPTURE(shape[0]);
        CAPTURE(shape[1]);
        const auto of = channels_of<T>(shape, 2);
        // A single value equals its mean, so its gradient consists of rounding errors.
        const double low = shape[0] == 1 && shape.size() == 2 ? 0.5 : -2;
        check_both<T>("catena.batch_normalization", {draw<T>(shape, 1, low), of[0], of[1]},
                      {plugin::set("eps", 0.01)}, true, shape[0] % 2 == 0);
    }
}

TEST_CASE("batch normalization: channels split over blocks, in rows and in columns") {
    for (const Dims& shape : {Dims{70000, 3}, Dims{3000, 64}, Dims{4, 2, 150, 151},
                              Dims{2, 1, 200, 300}, Dims{600, 3, 9}})
        check_both<float>("catena.batch_normalization",
                          {draw<float>(shape, 1), channels_of<float>(shape, 2)[0],
                           channels_of<float>(shape, 2)[1]});
}

TEST_CASE_TEMPLATE("batch normalization: a huge mean, a small variance, a first value far off", T,
                   float, double) {
    for (const Dims& shape : {Dims{3000, 8}, Dims{4, 3, 60, 70}, Dims{600, 5, 7}})
        for (const double mean : {1e3, -1e6})
            for (const bool outlier : {false, true}) {
                const double step = mean == 1e3 ? 1e-4 : 0.0625;  // about float's spacing there
                Array x = draw<double>(shape, 1, -100, 100);
                for (std::int64_t i = 0; i < x.size(); ++i)
                    x.set(i, mean + std::round(x.at(i)) * step);
                if (outlier)
                    for (std::int64_t c = 0; c < shape[1]; ++c)
                        x.set(c * (x.size() / shape[0] / shape[1]), 0);
                x = x.to(plugin::dtype_of<T>());
                const auto of = channels_of<T>(shape, 2);
                const Attrs attrs = {plugin::set("eps", 1e-12)};
                const auto y = world().forward("catena.batch_normalization", {x, of[0], of[1]},
                                               attrs, on("cuda"));
                const auto expected =
                    world().forward("catena.batch_normalization",
                                    {wide(x), wide(of[0]), wide(of[1])}, attrs, on("cpu"));
                // An outlier makes up nearly all of the variance.
                const Tolerance fine = {std::is_same_v<T, double> ? 1e-9 : 2e-5, 1e-5};
                CHECK(compare(wide(y), wide(expected), fine) == "");
            }
}

TEST_CASE("batch normalization: NaN and infinity stay in their channel") {
    for (const Dims& shape : {Dims{300, 4}, Dims{3, 4, 90}})
        for (const double bad : {no_number, inf, -inf})
            for (const bool first : {false, true}) {
                Array x = draw<float>(shape, 1);
                const std::int64_t rest = x.size() / shape[0] / shape[1];
                x.set((first ? 0 : 2 * shape[1] * rest) + 2 * rest, bad);
                const auto of = channels_of<float>(shape, 2);
                const auto y = world().forward("catena.batch_normalization", {x, of[0], of[1]}, {},
                                               on("cuda"));
                for (std::int64_t i = 0; i < x.size(); ++i)
                    REQUIRE(std::isnan(y[0].at(i)) == (i / rest % shape[1] == 2));
                for (std::int64_t c = 0; c < 4; ++c) CHECK(std::isnan(y[2].at(c)) == (c == 2));
            }
}

TEST_CASE_TEMPLATE("fixed batch normalization: rows and columns of every length", T, float, double,
                   Float16, BFloat16) {
    for (const Dims& shape : shapes) {
        CAPTURE(shape.size());
        CAPTURE(shape[0]);
        CAPTURE(shape[1]);
        const auto of = channels_of<T>(shape, 2);
        check_both<T>("catena.fixed_batch_normalization",
                      with_statistics<T>({draw<T>(shape, 1), of[0], of[1]}),
                      {plugin::set("eps", 0.01)}, false, shape[0] % 2 == 0);
    }
}

TEST_CASE_TEMPLATE("local response normalization: windows of every size, pixels of every number", T,
                   float, double, Float16, BFloat16) {
    for (const Dims& shape : {Dims{2, 7, 3}, Dims{1, 1, 5}, Dims{3, 40}, Dims{2, 6, 9, 9},
                              Dims{1, 100, 5, 5}, Dims{2, 33, 300}, Dims{0, 2, 2}, Dims{2, 3, 0}})
        for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 12, 31, 64, 300, 1 << 30}) {
            CAPTURE(shape.size());
            CAPTURE(shape[1]);
            CAPTURE(n);
            const Array x = draw<T>(shape, 1);
            const bool add = n % 2 == 0;
            const double beta = n == 4 ? 0.5 : 0.75;
            check_both<T>("catena.local_response_normalization", {x},
                          {plugin::set("n", n), plugin::set("alpha", 0.1),
                           plugin::set("beta", beta), plugin::set("k", 1.5)},
                          true, add);
        }
}

TEST_CASE("local response normalization: what is no number stays in its windows") {
    for (const std::int64_t n : {3, 5, 9})
        for (const double bad : {no_number, inf, 1e19}) {
            const Dims shape = {2, 40, 6};
            Array x = draw<float>(shape, 1);
            x.set(17 * 6 + 4, bad);
            const Attrs attrs = {plugin::set("n", n)};
            const auto y =
                world().forward("catena.local_response_normalization", {x}, attrs, on("cuda"))[0];
            const auto expected =
                world().forward("catena.local_response_normalization", {x}, attrs, on("cpu"))[0];
            CHECK(compare({y}, {expected}, {2e-5, 2e-6}) == "");
        }
}
