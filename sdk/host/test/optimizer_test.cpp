// Optimizers: the steps of Chainer's, hooks on gradients, saved state.
#include <catena/core/error.hpp>
#include <catena/links.hpp>
#include <catena/optimizers.hpp>
#include <catena/serializer.hpp>

#include "temporary.hpp"

#include <cmath>

using namespace catena;

namespace {

// Two parameters, the second without a gradient.
struct Two : Link {
    Variable p{Array::from({1.F, -2.F}, {2})};
    Variable q{Array::from({5.F}, {1})};
    void visit(Visitor& v) override { v("p", p)("q", q); }
    std::vector<float> values() const { return p.data().to_vector<float>(); }
    std::vector<float> grads() const { return p.grad().to_vector<float>(); }
    void set_grad() const { p.set_grad(Array::from({0.5F, -0.25F}, {2})); }
};

void check_steps(Optimizer& optimizer, float first, float second) {
    const Two two;
    optimizer.setup(two);
    two.set_grad();
    for (int i = 0; i < 3; ++i) optimizer.update();
    CHECK(optimizer.t() == 3);
    CHECK(two.values()[0] == doctest::Approx(first).epsilon(1e-6));
    CHECK(two.values()[1] == doctest::Approx(second).epsilon(1e-6));
    CHECK(two.q.data().item<float>() == 5);
    CHECK(two.grads() == std::vector<float>{0.5F, -0.25F});
}

}  // namespace

TEST_CASE("three steps give what Chainer 1.0.1 gives") {
    optimizers::SGD sgd;
    check_steps(sgd, 0.985F, -1.9924998F);
    optimizers::Adam adam;
    check_steps(adam, 0.99700004F, -1.9969999F);
    check_steps(adam, 0.99700004F, -1.9969999F);  // setup() starts afresh
    optimizers::MomentumSGD momentum_sgd;
    check_steps(momentum_sgd, 0.97195F, -1.9859749F);
    optimizers::AdaGrad ada_grad;
    check_steps(ada_grad, 0.9977156F, -1.9977155F);
    optimizers::RMSprop rmsprop;
    check_steps(rmsprop, 0.77108705F, -1.7710872F);
    optimizers::AdaDelta ada_delta;
    check_steps(ada_delta, 0.98643166F, -1.9864333F);
}

TEST_CASE("the rate may change between steps") {
    const Two two;
    optimizers::SGD sgd(1);
    sgd.setup(two);
    two.set_grad();
    sgd.update();
    sgd.lr = 0;
    sgd.update();
    sgd.lr = 2;
    sgd.update();
    CHECK(two.values() == std::vector<float>{1 - 1.5F, -2 + 0.75F});
}

TEST_CASE("hooks work on all gradients together") {
    const Two two;
    optimizers::SGD sgd;
    sgd.setup(two);
    two.set_grad();
    CHECK(sgd.compute_grads_norm() == doctest::Approx(std::sqrt(0.3125)));
    sgd.clip_grads(1);
    CHECK(two.grads() == std::vector<float>{0.5F, -0.25F});
    two.q.set_grad(Array::from({2.F}, {1}));
    sgd.clip_grads(1);
    CHECK(sgd.compute_grads_norm() == doctest::Approx(1).epsilon(1e-6));
    CHECK(two.grads()[0] / two.q.grad().item<float>() == doctest::Approx(0.25));

    sgd.zero_grads();
    CHECK(sgd.compute_grads_norm() == 0);
    sgd.weight_decay(0.5);
    CHECK(two.grads() == std::vector<float>{0.5F, -1});
    sgd.cleargrads();
    CHECK_FALSE(two.p.grad());

    const Array mine = Array::from({1.F, 2.F}, {2});
    sgd.accumulate_grads(std::vector<Array>{mine, Array()});
    sgd.accumulate_grads(std::vector<Array>{mine, Array()});
    CHECK(two.grads() == std::vector<float>{2, 4});
    CHECK(mine.to_vector<float>() == std::vector<float>{1, 2});
    CHECK_FALSE(two.q.grad());
    CHECK_THROWS_AS(sgd.accumulate_grads(std::vector<Array>{mine}), ShapeError);
    CHECK_THROWS_AS(sgd.accumulate_grads(std::vector<Array>{mine, mine}), ShapeError);
}

TEST_CASE("saved state goes on as if it had not stopped") {
    const TemporaryFolder folder;
    struct Run : Visitable {
        Two two;
        optimizers::Adam adam;
        Run() { adam.setup(two); }
        void visit(Visitor& v) override { v("two", two)("adam", adam); }
    };
    Run a;
    a.two.set_grad();
    a.adam.update();
    a.adam.update();
    save_npz(folder.path / "a.npz", a);
    a.adam.update();
    Run b;
    load_npz(folder.path / "a.npz", b);
    CHECK(b.adam.t() == 2);
    b.two.set_grad();
    b.adam.update();
    CHECK(a.two.values() == b.two.values());
    b.adam.setup(b.two);
    CHECK(b.adam.t() == 0);
}

TEST_CASE("an optimizer of one's own is a function and the names of its state") {
    // SGD with the rate of 1 / t.
    struct Falling : Optimizer {
        PluginFunction step() override {
            return PluginFunction("catena.sgd_update", {{"lr", 1.0 / static_cast<double>(t())}});
        }
    };
    const Two two;
    Falling falling;
    falling.setup(two.collect_parameters());
    two.set_grad();
    falling.update();
    falling.update();
    CHECK(two.values() == std::vector<float>{1 - 0.75F, -2 + 0.375F});
}
