// The nets of the host guide that use a parameter twice or compute weights from it.
#include <catena/catena.hpp>

#include "temporary.hpp"

using namespace catena;
namespace F = catena::functions;

namespace {

// [tied]
// The scores of words use the vectors of words as weights.
struct Tied : Chain {
    links::EmbedID words{50, 16};
    links::Linear hidden{16, 16};
    void visit(Visitor& v) override { v("words", words)("hidden", hidden); }
    Variable operator()(const Variable& x) const override {  // (N,) to (N, 50)
        return F::linear(F::tanh(hidden(words(x))), words.W);
    }
};
// [/tied]

// [standardized]
// A convolution whose filters have mean 0 and variance 1, followed by group normalization.
struct Standardized : Chain {
    links::Convolution2D filters{3, 8, 3, 1, 1};
    links::GroupNormalization norm{4, 8};
    void visit(Visitor& v) override { v("filters", filters)("norm", norm); }
    Variable operator()(const Variable& x) const override {
        const Variable W = F::weight_standardization(filters.W);
        return norm(F::convolution_2d(x, W, filters.b, {1}, {1}));
    }
};
// [/standardized]

double train(Chain& net, const Variable& x, const Variable& t, int steps) {
    optimizers::Adam optimizer(0.02);
    optimizer.setup(net);
    double last = 0;
    for (int i = 0; i < steps; ++i) {
        const Variable loss = F::softmax_cross_entropy(net(x), t);
        last = loss.data().item<float>();
        optimizer.cleargrads();
        loss.backward();
        optimizer.update();
    }
    return last;
}

}  // namespace

TEST_CASE("tied vectors are one parameter with the gradients of both uses") {
    seed(1);
    Tied net;
    CHECK(net.parameters().size() == 3);
    CHECK(net.count_parameters() == 50 * 16 + 16 * 16 + 16);
    const auto x = as_variable(Array::from(std::vector<std::int32_t>{3, 7, 3, 9}, {4}));
    const auto t = as_variable(Array::from(std::vector<std::int32_t>{4, 8, 4, 1}, {4}));
    const Variable loss = F::softmax_cross_entropy(net(x), t);
    loss.backward();
    // Words that are neither read nor predicted get a gradient from the scores.
    const auto gradient = net.words.W.grad().to_vector<float>();
    CHECK(gradient[20 * 16] != 0);
    CHECK(gradient[3 * 16] != 0);
    CHECK(train(net, x, t, 60) < 0.1);
}

TEST_CASE("standardized filters do not depend on the mean and scale of their parameters") {
    seed(2);
    Standardized net;
    const Variable x(random::normal({2, 3, 6, 6}));
    const auto before = net(x).data();
    CHECK(before.shape() == Shape{2, 8, 6, 6});
    Array W = net.filters.W.data();
    W *= 3;
    W += 0.5;
    gradient_check::assert_allclose(net(x).data(), before, 1e-3, 1e-3);
    F::sum(net(x) * net(x)).backward();
    CHECK(net.filters.W.grad().shape() == Shape{8, 3, 3, 3});
}
