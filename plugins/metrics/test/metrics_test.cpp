// Tests metrics.catena: scores of three classes, of two, and of numbers.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>

using namespace catena::testing;
using catena::plugin::Ints;

namespace {

World& world() {
    static World world({METRICS_PLUGIN});
    return world;
}

}  // namespace

TEST_CASE("classification_summary: precision, recall, F2 score and number of labels") {
    // Predictions 0, 0, 1, 1 for the labels 0, 1, 1, and one that is ignored; class 2 has no label.
    const auto y = Array::from<float>({1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0}, {4, 3});
    const auto t = Array::from<std::int32_t>({0, 1, 1, -1}, {4});
    const std::int64_t classes[] = {3};
    const auto all = world().forward("catena.classification_summary", {y, t},
                                     {set("label_num", Ints(classes)), set("beta", 2.0)});
    CHECK(all[0].at(0) == 0.5);
    CHECK(all[0].at(1) == 1);
    CHECK(all[1].at(0) == 1);
    CHECK(all[1].at(1) == 0.5);
    CHECK(all[2].at(0) == doctest::Approx(5 * 0.5 / (4 * 0.5 + 1)));
    CHECK(all[2].at(1) == doctest::Approx(5 * 0.5 / (4 * 1 + 0.5)));
    CHECK(std::isnan(all[1].at(2)));
    CHECK(all[3].at(0) == 1);
    CHECK(all[3].at(1) == 2);
    CHECK(all[3].at(2) == 0);
    const auto recall =
        world().forward("catena.recall", {y, t});  // two classes: the labels 0 and 1
    CHECK(recall[0].size() == 2);
    CHECK(recall[0].at(1) == 0.5);
    CHECK(world().forward("catena.precision", {y, t})[0].at(0) == 0.5);
    CHECK(world().forward("catena.f1_score", {y, t})[0].at(0) == doctest::Approx(2. / 3));
}

TEST_CASE("binary_accuracy: the label -1 does not count") {
    const auto y = Array::from<float>({1, -1, 0, 2}, {4});
    const auto t = Array::from<std::int32_t>({1, 1, 1, -1}, {4});
    CHECK(world().forward("catena.binary_accuracy", {y, t})[0].at(0) == doctest::Approx(2. / 3));
}

TEST_CASE("r2_score: of each column, and their mean") {
    const auto pred = Array::from<double>({1, 5, 2, 5, 4, 5}, {3, 2});
    const auto real = Array::from<double>({1, 7, 2, 7, 3, 7}, {3, 2});
    const auto each = world().forward("catena.r2_score", {pred, real, Array()},
                                      {set("multioutput", "raw_values")})[0];
    CHECK(each.at(0) == 0.5);
    CHECK(each.at(1) == 0);  // the numbers are constant
    CHECK(world().forward("catena.r2_score", {pred, real, Array()})[0].at(0) == 0.25);
}

TEST_CASE("classification_summary refuses labels of another shape") {
    const Array y = Array::random<float>({6, 3}, 1);
    const auto t = Array::from<std::int32_t>({0, 1, 2, 0, 1, 2}, {2, 3});
    CHECK_THROWS_WITH(world().forward("catena.classification_summary", {y, t}),
                      "[catena.classification_summary] t.shape: expected (6,), got (2, 3)");
    CHECK_THROWS_AS(world().forward("catena.recall", {y, t}), Failure);
    const auto each = world().forward("catena.recall", {y.reshaped({2, 3, 3}), t});
    CHECK(each[1].values<std::int64_t>() == std::vector<std::int64_t>{2, 2, 2});
}
