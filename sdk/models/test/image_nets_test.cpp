// Image nets: sizes of the papers, gradients at a reduced size, and what they refuse.
#include <catena/catena.hpp>
#include <catena/models.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace catena;
using models::Classifier;
namespace F = catena::functions;

namespace {

Array drawn(const Shape& shape) { return initializers::Uniform(1)(shape, Dtype::float64); }

// Small enough for finite differences.
constexpr models::Scale reduced{.image = 67, .width = 1.0 / 32};

}  // namespace

TEST_CASE("the nets are those of the papers") {
    // Weights and biases, counted from the papers' tables; AlexNet's in one column.
    const auto check = [](const std::string& name, std::int64_t parameters) {
        const auto net = models::make_image_net(name, 1000, {.image = 224});
        CAPTURE(name);
        CHECK(net->count_parameters() == parameters);
        const no_backprop_mode no_graph;
        const using_config testing(&Config::train, false);
        const Variable y = (*net)(as_variable(Array::zeros({1, 3, 224, 224})));
        CHECK(y.shape() == Shape{1, 1000});
    };
    check("nin", 7595176);
    check("alexnet-bn", 62379048);
    check("googlenet", 13378280);
    check("vit", 22050664);
    CHECK_THROWS_AS((void)models::make_image_net("vgg", 10, {.image = 224}), InvalidError);
}

TEST_CASE("one step at batch 8 of 224x224") {
    for (const auto name : models::image_net_names()) {
        CAPTURE(name);
        seed(1);
        const auto net = models::make_image_net(name, 1000, {.image = 224});
        optimizers::SGD optimizer(1e-4);
        optimizer.setup(*net);
        const Variable x = as_variable(initializers::Normal(1)({8, 3, 224, 224}));
        const Variable t = as_variable(Array::from<std::int32_t>({0, 1, 2, 3, 4, 5, 6, 999}, {8}));
        const auto step = [&] {
            auto [loss, scores] = net->loss(x, t);
            const double value = loss.data().item<double>();
            CHECK(scores.shape() == Shape{8, 1000});
            optimizer.cleargrads();
            std::move(loss).backward();
            optimizer.update();
            return value;
        };
        const double first = step();
        CHECK(std::isfinite(first));
        for (const auto& [parameter, variable] : net->collect_parameters()) {
            CAPTURE(parameter);
            CHECK(variable.grad());
        }
        CHECK(std::isfinite(step()));
    }
}

TEST_CASE("gradients at a reduced size") {
    for (const auto name : models::image_net_names()) {
        CAPTURE(name);
        seed(5);
        const auto net = models::make_image_net(name, 3, reduced);
        net->to(Dtype::float64);
        // Biases of 0 behind a ReLU of nothing: the next ReLU would be at its kink.
        for (const Variable& p : net->parameters())
            p.data().copy_from(p.data() + drawn(p.shape()) * 0.1);
        const Array x = drawn({2, 3, 67, 67});
        const Variable t = as_variable(Array::from<std::int32_t>({2, 0}, {2}));
        // Dropout draws anew in each call: the same numbers for the same seed.
        const auto loss_of = [&](const Array& input) {
            seed(9);
            return net->loss(Variable(input), t).loss;
        };
        Variable input(x);
        seed(9);
        net->loss(input, t).loss.backward();
        // Along random directions, of the input and of all parameters together.
        const auto slope = [&](auto&& at) {
            constexpr double eps = 1e-6;
            return (loss_of(at(eps)).data().template item<double>() -
                    loss_of(at(-eps)).data().template item<double>()) /
                   (2 * eps);
        };
        const Array direction = drawn(x.shape());
        const double expected = F::sum(input.grad() * direction).item<double>();
        const double found = slope([&](double eps) { return x + direction * eps; });
        CHECK(found == doctest::Approx(expected).epsilon(1e-4));
        for (const auto& [parameter, variable] : net->collect_parameters()) {
            CAPTURE(parameter);
            REQUIRE(variable.grad());
            const Array before = variable.data().copy(), along = drawn(before.shape());
            const double wanted = F::sum(variable.grad() * along).item<double>();
            const double got = slope([&](double eps) {
                variable.data().copy_from(before + along * eps);
                return x;
            });
            variable.data().copy_from(before);
            CHECK(got == doctest::Approx(wanted).epsilon(1e-3).scale(1e-3));
        }
    }
}

TEST_CASE("auxiliary losses are of training alone") {
    models::GoogLeNet net(4, reduced);
    const Variable x = as_variable(initializers::Normal(1)({2, 3, 67, 67}));
    const Variable t = as_variable(Array::from<std::int32_t>({1, 3}, {2}));
    const using_config testing(&Config::train, false);
    const auto [loss, scores] = net.loss(x, t);
    CHECK(loss.data().item<double>() == F::softmax_cross_entropy(scores, t).data().item<double>());
    const using_config training(&Config::train, true);
    net.loss(x, t).loss.backward();
    CHECK(net.loss1.fc2.W.grad());
    CHECK(net.loss2.conv.W.grad());
}

TEST_CASE("what does not fit is refused") {
    CHECK_THROWS_AS(models::NIN(10, {.image = 54, .width = 0.1}), ShapeError);
    CHECK_NOTHROW(models::NIN(10, {.image = 55, .width = 0.1}));
    CHECK_THROWS_AS(models::AlexNetBN(10, {.image = 54, .width = 0.1}), ShapeError);
    CHECK_NOTHROW(models::AlexNetBN(10, {.image = 55, .width = 0.1}));
    CHECK_THROWS_AS(models::GoogLeNet(10, {.image = 46, .width = 0.1}), ShapeError);
    CHECK_NOTHROW(models::GoogLeNet(10, {.image = 47, .width = 0.1}));
    CHECK_THROWS_AS(models::NIN(0), ShapeError);
    CHECK_THROWS_AS(models::Mlp({1, 0, 3}, 10, 4), ShapeError);
    CHECK_THROWS_AS(models::Cnn({1, 14, 28}, 10, 4), ShapeError);
    models::Mlp mlp({1, 2, 3}, 4, 5);
    CHECK(mlp(as_variable(Array::zeros({7, 6}))).shape() == Shape{7, 4});
    models::Cnn cnn({1, 15, 15}, 4, 5);
    CHECK(cnn(as_variable(Array::zeros({7, 225}))).shape() == Shape{7, 4});
    CHECK(cnn(as_variable(Array::zeros({7, 1, 15, 15}))).shape() == Shape{7, 4});
    CHECK_THROWS_AS((void)cnn(as_variable(Array::zeros({7, 224}))), ShapeError);
    CHECK_THROWS_AS((void)cnn(as_variable(Array::zeros({7, 1, 225, 1}))), ShapeError);
}

TEST_CASE("two columns: the net of Chainer's manual") {
    const Device here = Device::get("cpu:0");
    models::TwoColumnMlp net({1, 4, 4}, 3, 5, here, here);
    const Variable x = as_variable(initializers::Normal(1)({6, 16}));
    auto &a = net.first, &b = net.second;
    const auto layer = [](auto& link, const Variable& h) { return F::relu(link(h)); };
    const Variable h =
        layer(a.l3, layer(a.l2, layer(a.l1, x))) + layer(b.l3, layer(b.l2, layer(b.l1, x)));
    const Variable y =
        layer(a.l6, layer(a.l5, layer(a.l4, h))) + layer(b.l6, layer(b.l5, layer(b.l4, h)));
    CHECK(a.l3.W.shape() == Shape{10, 5});
    CHECK(net(x).data().to_vector<float>() == y.data().to_vector<float>());
}

TEST_CASE("two columns on two devices compute what they compute on one") {
    const Device a = Device::get("cpu:0"), b = Device::get("cpu:1");
    seed(3);
    models::TwoColumnMlp one({1, 4, 4}, 3, 5, a, a);
    seed(3);
    models::TwoColumnMlp two({1, 4, 4}, 3, 5, a, b);
    const Variable x = as_variable(initializers::Normal(1)({6, 16}));
    const Variable t = as_variable(Array::from<std::int32_t>({0, 1, 2, 0, 1, 2}, {6}));
    const auto first = one.loss(x, t), second = two.loss(x, t);
    CHECK(second.scores.device() == a);
    CHECK(first.scores.data().to_vector<float>() == second.scores.data().to_vector<float>());
    first.loss.backward();
    second.loss.backward();
    const auto p = one.collect_parameters(), q = two.collect_parameters();
    for (std::size_t i = 0; i < p.size(); ++i) {
        CHECK(q[i].variable.device() == (q[i].name.starts_with("first/") ? a : b));
        CHECK(p[i].variable.grad().to_vector<float>() == q[i].variable.grad().to_vector<float>());
    }
}
