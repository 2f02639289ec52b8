// Image nets against Chainer 7: image_nets.py prints the numbers; and where they drop units.
#include <catena/catena.hpp>
#include <catena/models.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

using namespace catena;
using models::Classifier;
namespace F = functions;

namespace {

// An eighth of the papers' channels, without rounding; images leave a rest in poolings.
constexpr models::Scale small{.image = 72, .width = 1.0 / 8};
constexpr models::Scale large{.image = 128, .width = 1.0 / 8};

doctest::Approx about(double value) { return doctest::Approx(value).epsilon(1e-6); }

// As Draws in image_nets.py: center +- spread, from the same generator.
class Draws {
public:
    Array operator()(const Shape& shape, double spread, double center = 0) {
        std::vector<double> values(static_cast<std::size_t>(shape.size()));
        for (double& v : values)
            v = center + spread * (static_cast<double>(engine_()) / 2147483648.0 - 1);
        return Array::from(values, shape);
    }

private:
    std::mt19937 engine_{1};
};

// Parameters in float64, in the order of visit(). Weights keep the size of what goes through.
Draws fill(Classifier& net) {
    Draws draws;
    net.to(Dtype::float64);
    for (const auto& [name, p] : net.collect_parameters()) {
        const Shape shape = p.shape();
        const double fan_in = static_cast<double>(shape.size() / shape[0]);
        const double spread = shape.ndim() > 1 ? std::sqrt(6 / fan_in) : 0.25;
        p.data().copy_from(draws(shape, spread, name.ends_with("gamma") ? 1 : 0));
    }
    return draws;
}

Variable images(const Classifier& net, Draws& draws) {
    const Shape& one = net.image_shape();
    return Variable(draws({2, one[0], one[1], one[2]}, 4));
}

Variable labels() { return as_variable(Array::from<std::int32_t>({1, 3}, {2})); }

void check(Classifier& net, Draws& draws, const std::vector<double>& scores, double loss) {
    const using_config testing(&Config::train, false);
    const auto found = net.loss(images(net, draws), labels());
    REQUIRE(found.scores.shape() == Shape{2, 5});
    const auto values = found.scores.data().to_vector<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        CAPTURE(i);
        CHECK(values[i] == about(scores[i]));
    }
    CHECK(found.loss.data().item<double>() == about(loss));
}

// A layer that returns 1 for each input.
template <class Layer>
void give_one(const Layer& layer) {
    layer.W.data().copy_from(Array::zeros(layer.W.shape()));
    layer.b.data().copy_from(Array::ones(layer.b.shape()));
}

// Layers that give the first of their inputs, at the middle of a window, in each output.
template <class... Layers>
void give_first(const Layers&... layers) {
    const auto set = [](const Variable& W, const Variable& b) {
        const Shape shape = W.shape();
        const std::int64_t inputs = shape.size() / shape[0];
        std::vector<float> values(static_cast<std::size_t>(shape.size()));
        for (std::int64_t i = shape.ndim() == 4 ? shape[2] * shape[3] / 2 : 0; i < shape.size();
             i += inputs)
            values[static_cast<std::size_t>(i)] = 1;
        W.data().copy_from(Array::from(values, shape));
        b.data().copy_from(Array::zeros(b.shape()));
    };
    (set(layers.W, layers.b), ...);
}

// A net in which a unit of 1 goes to all scores: in training it is dropped or arrives as `kept`.
void check_dropout(Classifier& net, double kept) {
    const Shape& one = net.image_shape();
    const Variable x = as_variable(Array::zeros({32, one[0], one[1], one[2]}));
    const auto scores = [&](bool train) {
        const using_config mode(&Config::train, train);
        return net(x).data().to_vector<float>();
    };
    for (const float score : scores(false)) CHECK(score == 1);
    seed(1);
    const auto trained = scores(true);
    for (std::size_t i = 0; i < trained.size(); ++i) {
        CAPTURE(i);
        CHECK((trained[i] == 0 || trained[i] == about(kept)));
        CHECK(trained[i] == trained[i - i % 5]);
    }
    const auto dropped = std::count(trained.begin(), trained.end(), 0.0F);
    CHECK(dropped > 0);
    CHECK(dropped < 32 * 5);
}

}  // namespace

TEST_CASE("NIN's scores") {
    models::NIN net(5, small);
    Draws draws = fill(net);
    check(net, draws,
          {4.25309376633, 3.66548964154, 1.47083452793, -1.74852251048, 8.0821398044, 4.68345229034,
           3.36745149484, 1.24463080201, -1.92522353736, 6.79154252514},
          6.65740277492);
}

TEST_CASE("AlexNet's scores") {
    models::AlexNetBN net(5, small);
    Draws draws = fill(net);
    for (links::BatchNormalization* bn : {&net.bn1, &net.bn2}) {
        bn->avg_mean.copy_from(draws(bn->gamma.shape(), 0.25));
        bn->avg_var.copy_from(draws(bn->gamma.shape(), 0.5, 1.5));
    }
    check(net, draws,
          {-5.49397219734, -0.843350168905, 13.3126251024, -4.771730886, -4.89647218562,
           -6.79135585263, -0.346303680464, 13.1436055329, -4.18523457882, -4.14149127058},
          15.7424087878);
}

TEST_CASE("GoogLeNet's scores") {
    models::GoogLeNet net(5, large);
    Draws draws = fill(net);
    check(net, draws,
          {0.487684624867, -4.82768603197, 0.698210735063, -1.78935676015, 0.783275156864,
           0.372206855259, -5.19891558804, 0.932181494261, -1.91393932635, 1.03591373203},
          5.2371022248);
}

TEST_CASE("what GoogLeNet's classifiers in the middle add to the loss") {
    models::GoogLeNet net(5, large);
    Draws draws = fill(net);
    const auto [loss, scores] = net.loss(images(net, draws), labels());
    // The scores vary with what is dropped; the rest does not.
    const Variable last = F::softmax_cross_entropy(scores, labels());
    CHECK(loss.data().item<double>() - last.data().item<double>() == about(1.37788313583));
}

TEST_CASE("NIN drops a half before the last block") {
    models::NIN net(5, {.image = 55, .width = 1.0 / 32});
    give_one(net.block3.b);
    give_first(net.block4.conv, net.block4.a, net.block4.b);
    check_dropout(net, 2);
}

TEST_CASE("AlexNet drops a half of both hidden layers") {
    models::AlexNetBN net(5, {.image = 55, .width = 1.0 / 32});
    give_one(net.fc6);
    give_first(net.fc7, net.fc8);
    check_dropout(net, 4);
}

TEST_CASE("GoogLeNet drops 0.4 of the means") {
    models::GoogLeNet net(5, {.image = 47, .width = 1.0 / 32});
    give_one(net.inc5b.conv1);
    give_first(net.loss3_fc);
    check_dropout(net, 1 / 0.6);
}
