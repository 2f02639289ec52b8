// Tests of Convolution2D and get_conv_outsize().
#include <catena/core/error.hpp>
#include <catena/function_set.hpp>
#include <catena/links.hpp>

#include "temporary.hpp"

#include <cmath>

using namespace catena;

TEST_CASE("get_conv_outsize") {
    struct Row {
        std::int64_t size, k, s, p, floor, all;
    };
    for (const Row& r : {Row{4, 3, 2, 1, 2, 3}, Row{5, 2, 2, 0, 2, 3}, Row{6, 2, 2, 0, 3, 3},
                         Row{1, 1, 1, 0, 1, 1}, Row{3, 3, 5, 0, 1, 1}, Row{2, 3, 1, 0, 0, 0},
                         Row{0, 1, 1, 0, 0, 0}, Row{2, 5, 4, 1, 0, 1}}) {
        CAPTURE(r.size);
        CHECK(get_conv_outsize(r.size, r.k, r.s, r.p) == r.floor);
        CHECK(get_conv_outsize(r.size, r.k, r.s, r.p, true) == r.all);
    }
    CHECK_THROWS_AS(get_conv_outsize(4, 2, 0, 0), InvalidError);
    CHECK_THROWS_AS(get_conv_outsize(4, 0, 1, 0), InvalidError);
    CHECK_THROWS_AS(get_conv_outsize(4, 2, 1, -1), InvalidError);
}

TEST_CASE("Convolution2D starts as Chainer's") {
    seed(1);
    const links::Convolution2D layer(40, 30, {5, 2}, 1, 0, 3, 0.5);
    CHECK(layer.W.shape() == Shape{30, 40, 5, 2});
    double sum = 0;
    for (const float w : layer.W.data().to_vector<float>()) sum += w * w;
    CHECK(std::sqrt(sum / 12000) == doctest::Approx(3 * std::sqrt(1 / 400.)).epsilon(0.03));
    CHECK(layer.b.data().to_vector<float>() == std::vector<float>(30, 0.5F));
    CHECK_FALSE(links::Convolution2D(2, 3, 1, 1, 0, 1, 0, true).b);
}

TEST_CASE("Convolution2D computes with its stride and pad, also in a copy") {
    links::Convolution2D layer(1, 1, 2, {2, 1}, {0, 1}, 1, 10);
    layer.W.set_data(Array::from({1.F, 2.F, 3.F, 4.F}, {1, 1, 2, 2}));
    const Variable x(Array::from({1.F, 2.F, 3.F, 4.F, 5.F, 6.F}, {1, 1, 3, 2}));
    links::Convolution2D copy = deep_copy(layer);
    copy.b.data().fill(0);
    const Variable y = layer(x);
    CHECK(y.shape() == Shape{1, 1, 1, 3});
    CHECK(y.data().to_vector<float>() == std::vector<float>{24, 40, 24});
    CHECK(copy(x).data().to_vector<float>() == std::vector<float>{14, 30, 14});
}

TEST_CASE("senseless layers and inputs are refused") {
    using links::Convolution2D;
    contains(error_of<ShapeError>([] { Convolution2D(0, 3, 1); }), "[Convolution2D] channels");
    contains(error_of<ShapeError>([] {
                 Convolution2D(1, 3, {3, 0});
             }),
             "[Convolution2D] ksize: expected positive numbers, got 3 and 0");
    contains(error_of<ShapeError>([] { Convolution2D(1, 3, 3, 0); }), "stride");
    contains(error_of<ShapeError>([] { Convolution2D(1, 3, 3, 1, -1); }), "pad");
    Convolution2D layer(2, 3, 5, 1, 1);
    contains(error_of<ShapeError>([&] {
                 layer(Variable(Array::zeros({1, 2, 2, 4})));
             }),
             "W.shape[2:]: expected at most the padded image (4, 6), got (5, 5)");
    contains(error_of<ShapeError>([&] {
                 layer(Variable(Array::zeros({1, 3, 9, 9})));
             }),
             "x.shape[1]: expected 2, got 3");
}
