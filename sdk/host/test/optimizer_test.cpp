// Tests of optimizers: Chainer's steps, gradient hooks, saved state.
#include <catena/core/error.hpp>
#include <catena/links.hpp>
#include <catena/operators.hpp>
#include <catena/optimizers.hpp>
#include <catena/serializer.hpp>

#include "temporary.hpp"
#include "two_parameters.hpp"

#include <cmath>
#include <functional>

using namespace catena;

TEST_CASE("three steps give what Chainer 1.0.1 gives") {
    optimizers::SGD sgd;
    check_steps(sgd, 0.985F, -1.9924998F);
    optimizers::Adam adam;
    check_steps(adam, 0.99700004F, -1.9969999F);
    check_steps(adam, 0.99700004F, -1.9969999F);  // setup() resets the state
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
    // SGD with the rate 1 / t.
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

namespace {

// Update rules on arrays: without state, with assignment, with in-place updates.
struct PlainSgd : Optimizer {
    void update_one(Array& param, const Array& grad, std::span<Array>) override {
        steps.push_back(t());
        devices.push_back(Device::current());
        param = param - 0.5 * grad;
    }
    std::vector<std::int64_t> steps;
    std::vector<Device> devices;
};
struct Assigning : Optimizer {
    Assigning() : Optimizer({"v"}) {}
    void update_one(Array& param, const Array& grad, std::span<Array> state) override {
        state[0] = 0.9 * state[0] - 0.1 * grad;
        param = param + state[0];
    }
};
struct InPlace : Optimizer {
    InPlace() : Optimizer({"v"}) {}
    void update_one(Array& param, const Array& grad, std::span<Array> state) override {
        state[0].copy_from(0.9 * state[0] - 0.1 * grad);
        param.copy_from(param + state[0]);
    }
};
struct Custom : Optimizer {
    using Rule = std::function<void(Array&, const Array&, std::span<Array>)>;
    using State = std::function<std::vector<Array>(const Array&)>;
    Custom(Rule r, State s) : Optimizer({"s"}), rule(std::move(r)), make(std::move(s)) {}
    void update_one(Array& param, const Array& grad, std::span<Array> state) override {
        rule(param, grad, state);
    }
    std::vector<Array> init_state(const Array& param) override { return make(param); }
    Rule rule;
    State make;
};

}  // namespace

TEST_CASE("an update rule on arrays gives what the plugin's gives") {
    optimizers::MomentumSGD built_in(0.1, 0.9);
    for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::float16, Dtype::bfloat16}) {
        CAPTURE(name(dtype));
        const auto learned = [&](Optimizer& optimizer) {
            const links::Parameter p(Array::from({1.F, -2.F, 0.3F}, {3}).astype(dtype));
            const Array memory = p.W.data();
            optimizer.setup(p);
            for (int i = 0; i < 5; ++i) {
                p.W.set_grad(
                    Array::from({0.5F, -0.25F, 0.1F * static_cast<float>(i)}, {3}).astype(dtype));
                optimizer.update();
            }
            CHECK(p.W.data().body() == memory.body());  // written in place
            return p.W.data().to_vector<double>();
        };
        const double epsilon = dtype == Dtype::float64 ? 1e-15 : 1e-6;
        const auto expected = learned(built_in);
        Assigning assigning;
        InPlace in_place;
        const auto first = learned(assigning), second = learned(in_place);
        CHECK(first == second);
        for (std::size_t i = 0; i < 3; ++i)
            CHECK(first[i] == doctest::Approx(expected[i]).epsilon(epsilon));
    }
}

TEST_CASE("update_one is called for each gradient, on its device, with the number of the step") {
    const Device second = Device::get("cpu:1");
    Two two;
    PlainSgd sgd;
    sgd.setup(two);
    two.set_grad();
    sgd.update();
    two.to(second);
    two.set_grad();
    sgd.update();
    CHECK(sgd.steps == std::vector<std::int64_t>{1, 2});
    CHECK(sgd.devices == std::vector<Device>{Device::get("cpu:0"), second});
    CHECK(two.values() == std::vector<float>{0.5F, -1.75F});
    CHECK(two.grads() == std::vector<float>{0.5F, -0.25F});
    CHECK_THROWS_AS(sgd.set_rate(1), UnsupportedError);
}

TEST_CASE("rules for each kind of device: here the host's") {
    struct Split : Optimizer {
        Split() : Optimizer({"s"}) {}
        void update_one_cpu(Array& param, const Array& grad, std::span<Array> state) override {
            param = param - grad * state[0];
        }
        void update_one_gpu(Array&, const Array&, std::span<Array>) override { FAIL("the host"); }
        std::vector<Array> init_state_cpu(const Array& param) override {
            return {Array::full(param.shape(), 2)};
        }
        std::vector<Array> init_state_gpu(const Array&) override { return {}; }
    } split;
    const Two two;
    split.setup(two);
    two.set_grad();
    split.update();
    CHECK(two.values() == std::vector<float>{0, -1.5F});
}

TEST_CASE("update rules that are wrong") {
    struct None : Optimizer {
    } none;
    const Two two;
    none.setup(two);
    two.set_grad();
    contains(error_of<UnsupportedError>([&] { none.update(); }),
             "expected a subclass with step(), update_one() or update_one_cpu(), got none of them");
    CHECK(none.t() == 0);

    const auto zeros = [](const Array& param) {
        return std::vector<Array>{Array::zeros(param.shape())};
    };
    Custom shape([](Array& param, const Array&, std::span<Array>) { param = Array::ones({3}); },
                 zeros);
    shape.setup(two);
    contains(error_of<InvalidError>([&] { shape.update(); }),
             "[update] the parameter of p: expected (2,) float32 from update_one(), got (3,)");
    Custom dtype(
        [](Array&, const Array&, std::span<Array> s) { s[0] = s[0].astype(Dtype::float64); },
        zeros);
    dtype.setup(two);
    contains(error_of<InvalidError>([&] { dtype.update(); }),
             "[update] s of p: expected (2,) float32 from update_one(), got (2,) float64");
    CHECK(dtype.t() == 0);
    CHECK(two.values() == std::vector<float>{1, -2});
    Custom empty([](Array& param, const Array&, std::span<Array>) { param = Array(); }, zeros);
    empty.setup(two);
    contains(error_of<InvalidError>([&] { empty.update(); }), "got none");

    const Custom::Rule nothing = [](Array&, const Array&, std::span<Array>) {};
    Custom few(nothing, [](const Array&) { return std::vector<Array>(); });
    contains(error_of<InvalidError>([&] { few.setup(two); }),
             "[setup] p: expected 1 arrays from init_state(), got 0");
    Custom missing(nothing, [](const Array&) { return std::vector<Array>(1); });
    CHECK_THROWS_AS(missing.setup(two), InvalidError);
}

TEST_CASE("state has memory of its own") {
    // init_state() and update_one() may return arrays with other handles: parameters, gradients.
    Custom last(
        [](Array& param, const Array& grad, std::span<Array> s) {
            param = param + s[0];
            s[0] = grad;
        },
        [](const Array& param) { return std::vector<Array>{param}; });
    const Two two;
    last.setup(two);
    two.set_grad();
    last.update();
    CHECK(two.values() == std::vector<float>{2, -4});
    last.zero_grads();
    last.update();
    CHECK(two.values() == std::vector<float>{2.5F, -4.25F});
}

TEST_CASE("compute_grads_norm: of all dtypes and devices, in double") {
    struct Three : Link {
        Parameter a{Array::zeros({3})};
        Parameter b{Array::zeros({2}, Dtype::float64)};
        Parameter c{Array::zeros({2, 1}, Dtype::float16)};
        Parameter d{Array::zeros({1}, Dtype::float32, Device::get("cpu:1"))};
        Parameter none{Array::ones({4})};
        void visit(Visitor& v) override { v("a", a)("b", b)("c", c)("d", d)("none", none); }
    } three;
    optimizers::SGD sgd;
    CHECK(sgd.compute_grads_norm() == 0);
    sgd.setup(three);
    CHECK(sgd.compute_grads_norm() == 0);
    three.a.set_grad(Array::from({0.1F, -2.5F, 1e-3F}, {3}));
    three.b.set_grad(Array::from({1e-9, 3.25}, {2}));
    three.c.set_grad(Array::from({0.5, -1.5}, {2, 1}).astype(Dtype::float16));
    three.d.set_grad(Array::from({4.F}, {1}).to(Device::get("cpu:1")));
    double sum = 0;
    for (const double g : {double{0.1F}, -2.5, double{1e-3F}, 1e-9, 3.25, 0.5, -1.5, 4.0}) {
        sum += g * g;
    }
    CHECK(sgd.compute_grads_norm() == doctest::Approx(std::sqrt(sum)).epsilon(1e-15));
    // Squares outside the range of float32, and many small squares that a float32 sum would lose.
    three.cleargrads();
    three.a.set_grad(Array::from({3e30F, 4e30F, 0.F}, {3}));
    CHECK(sgd.compute_grads_norm() == doctest::Approx(5e30).epsilon(1e-6));
    three.a.set_grad(Array::from({3e-30F, 4e-30F, 0.F}, {3}));
    CHECK(sgd.compute_grads_norm() == doctest::Approx(5e-30).epsilon(1e-6));
    const links::Parameter wide(Array::ones({1 << 20}));
    sgd.setup(wide);
    std::vector<float> small(1 << 20, 1e-4F);
    small[0] = 1;
    wide.W.set_grad(Array::from(small, {1 << 20}));
    const double tiny = double{1e-4F} * double{1e-4F};
    CHECK(sgd.compute_grads_norm() ==
          doctest::Approx(std::sqrt(1 + tiny * ((1 << 20) - 1))).epsilon(1e-10));
}

TEST_CASE("clip_grads: not below the limit, to the limit above it") {
    const Two two;
    optimizers::SGD sgd;
    sgd.setup(two);
    two.p.set_grad(Array::from({3.F, 0.F}, {2}));
    two.q.set_grad(Array::from({-4.F}, {1}));
    const auto before = two.p.grad().body();
    for (const double limit : {5.0, 5.0000001, 1e9, HUGE_VAL}) {
        sgd.clip_grads(limit);
        CHECK(two.p.grad().body() == before);
        CHECK(two.grads() == std::vector<float>{3, 0});
        CHECK(two.q.grad().item<float>() == -4);
    }
    sgd.clip_grads(2.5);
    CHECK(two.grads() == std::vector<float>{1.5F, 0});
    CHECK(two.q.grad().item<float>() == -2);
    sgd.clip_grads(0.25);
    CHECK(two.grads()[0] == doctest::Approx(0.15).epsilon(1e-7));
    CHECK(two.q.grad().item<float>() == doctest::Approx(-0.2).epsilon(1e-7));
    CHECK(sgd.compute_grads_norm() == doctest::Approx(0.25).epsilon(1e-7));
    two.q.cleargrad();
    sgd.clip_grads(0.1);
    CHECK_FALSE(two.q.grad());
    CHECK(two.grads()[0] == doctest::Approx(0.1).epsilon(1e-7));
    // A NaN norm is not above any limit; a NaN or negative limit is refused.
    two.p.set_grad(Array::from({1.F, std::nanf("")}, {2}));
    sgd.clip_grads(0.5);
    CHECK(two.grads()[0] == 1);
    two.set_grad();
    CHECK_THROWS_AS(sgd.clip_grads(-1), InvalidError);
    CHECK_THROWS_AS(sgd.clip_grads(std::nan("")), InvalidError);
    CHECK(two.grads() == std::vector<float>{0.5F, -0.25F});
    sgd.clip_grads(0);
    CHECK(two.grads() == std::vector<float>{0, 0});
}

TEST_CASE("weight_decay adds decay * parameter, also where there is no gradient") {
    const Two two;
    optimizers::SGD sgd(1);
    sgd.setup(two);
    two.set_grad();
    sgd.weight_decay(0.25);
    CHECK(two.grads() == std::vector<float>{0.5F + 0.25F, -0.25F - 0.5F});
    CHECK(two.q.grad().to_vector<float>() == std::vector<float>{1.25F});
    CHECK(two.values() == std::vector<float>{1, -2});
    CHECK(two.q.grad().body() != two.q.data().body());
    two.q.cleargrad();
    two.p.cleargrad();
    sgd.weight_decay(1);
    sgd.update();  // p -= p
    CHECK(two.values() == std::vector<float>{0, 0});
    CHECK(two.q.data().item<float>() == 0);
}

TEST_CASE("accumulate_grads from a model on another device") {
    const Device second = Device::get("cpu:1");
    const Two here;
    Two there = deep_copy(here);
    there.to(second);
    optimizers::SGD sgd;
    sgd.setup(here);
    sgd.accumulate_grads(there.gradients());  // both are missing
    CHECK_FALSE(here.p.grad());
    there.set_grad();
    sgd.accumulate_grads(there.gradients());  // here's are missing
    CHECK(here.p.device() == Device::get("cpu:0"));
    CHECK(here.p.grad().device() == Device::get("cpu:0"));
    CHECK(here.grads() == std::vector<float>{0.5F, -0.25F});
    CHECK_FALSE(here.q.grad());
    here.q.set_grad(Array::from({3.F}, {1}));
    sgd.accumulate_grads(there.gradients());  // there.q.grad is missing
    CHECK(here.grads() == std::vector<float>{1, -0.5F});
    CHECK(here.q.grad().item<float>() == 3);
    CHECK(there.p.grad().device() == second);
    CHECK(there.grads() == std::vector<float>{0.5F, -0.25F});
    there.p.grad().fill(9);  // memory is not shared
    CHECK(here.grads() == std::vector<float>{1, -0.5F});
}

TEST_CASE("gradients that do not fit are refused as a whole") {
    const Array good = Array::ones({2});
    const std::vector<Array> bad{Array::ones({2}), Array::ones({1}, Dtype::float64),
                                 Array::ones({1}, Dtype::int32)};
    for (const bool present : {false, true}) {
        const Two two;
        optimizers::SGD sgd;
        sgd.setup(two);
        if (present) two.zerograds();
        for (const Array& wrong : bad) {
            const std::vector<Array> gradients{good, wrong};
            contains(error_of<Error>([&] { sgd.accumulate_grads(gradients); }), "q: expected");
            CHECK(static_cast<bool>(two.p.grad()) == present);
            CHECK(static_cast<bool>(two.q.grad()) == present);
            if (present) CHECK(two.grads() == std::vector<float>{0, 0});
            // The same by add_gradients().
            if (!is_floating(wrong.dtype())) continue;
            Two source;
            source.q = Parameter(wrong.copy());
            source.p.set_grad(good.copy());
            source.q.set_grad(wrong.copy());
            contains(error_of<Error>([&] { two.add_gradients(source); }), "q: expected");
            CHECK(static_cast<bool>(two.p.grad()) == present);
            CHECK(static_cast<bool>(two.q.grad()) == present);
            if (present) CHECK(two.grads() == std::vector<float>{0, 0});
        }
    }
}

TEST_CASE("no gradients, zeros: what update() does with them") {
    const Two two;
    optimizers::MomentumSGD momentum(1, 0.5);
    CHECK(momentum.t() == 0);
    contains(error_of<InvalidError>([&] { momentum.update(); }),
             "[update] parameters: expected setup() first, got none");
    CHECK(momentum.t() == 0);
    momentum.setup(two);
    CHECK(momentum.t() == 0);
    two.set_grad();
    momentum.update();
    CHECK(two.values() == std::vector<float>{0.5F, -1.75F});
    momentum.cleargrads();
    CHECK_FALSE(two.p.grad());
    CHECK_FALSE(two.q.grad());
    momentum.update();  // without gradients, only t advances
    CHECK(momentum.t() == 2);
    CHECK(two.values() == std::vector<float>{0.5F, -1.75F});
    momentum.zero_grads();
    CHECK(two.grads() == std::vector<float>{0, 0});
    CHECK(two.q.grad().to_vector<float>() == std::vector<float>{0});
    momentum.update();  // the momentum of the first step is still there
    CHECK(momentum.t() == 3);
    CHECK(two.values() == std::vector<float>{0.25F, -1.625F});
    CHECK(two.q.data().item<float>() == 5);
    const Array held = two.p.grad();
    held.fill(3);
    momentum.zero_grads();  // does not write memory that has another handle
    CHECK(held.to_vector<float>() == std::vector<float>{3, 3});
    CHECK(two.grads() == std::vector<float>{0, 0});
}

TEST_CASE("a step that fails does not count") {
    struct Failing : Optimizer {
        PluginFunction step() override { throw InvalidError("mine"); }
    } failing;
    failing.setup(Two());
    CHECK_THROWS_AS(failing.update(), InvalidError);
    CHECK(failing.t() == 0);
    Two two;
    optimizers::Adam adam;
    adam.setup(two);
    two.set_grad();
    adam.update();
    const auto before = two.values();
    two.p.set_data(two.p.data().astype(Dtype::float64));
    two.p.set_grad(Array::ones({2}, two.p.dtype(), two.p.device()));
    contains(error_of<InvalidError>([&] { adam.update(); }),
             "[update] p: expected (2,) float32 as at setup(), got (2,) float64");
    CHECK(adam.t() == 1);
    CHECK(two.values() == before);
}

TEST_CASE("arguments that cannot learn are refused by name, at once and when they are changed") {
    using namespace optimizers;
    const double nan = std::nan("");
    const auto refused = [](const char* name, const auto& make) {
        contains(error_of<InvalidError>(make), std::string("attribute '") + name + "': expected 0");
    };
    for (const double bad : {nan, HUGE_VAL, -1e-3}) {
        refused("lr", [&] { SGD{bad}; });
        refused("lr", [&] { MomentumSGD{bad}; });
        refused("lr", [&] { AdaGrad{bad}; });
        refused("eps", [&] { AdaGrad(0.1, bad); });
        refused("eps", [&] { AdaDelta(0.9, bad); });
        refused("lr", [&] { RMSprop{bad}; });
        refused("eps", [&] { RMSprop(0.1, 0.9, bad); });
        refused("alpha", [&] { Adam{bad}; });
        refused("eps", [&] { Adam(0.1, 0.9, 0.9, bad); });
    }
    for (const double bad : {nan, 1.0, 2.0, -1e-9}) {
        refused("momentum", [&] { MomentumSGD(0.1, bad); });
        refused("rho", [&] { AdaDelta{bad}; });
        refused("alpha", [&] { RMSprop(0.1, bad); });
        refused("beta1", [&] { Adam(0.1, bad); });
        refused("beta2", [&] { Adam(0.1, 0.9, bad); });
    }
    CHECK_THROWS_AS(AdaBound(0.1, 0.9, 0.9, 0.1, /*gamma=*/1.5), InvalidError);
    CHECK_NOTHROW(Adam(0, 0, 0, 0));
    CHECK_NOTHROW(SGD(1e300));

    const Two two;
    SGD sgd;
    sgd.setup(two);
    two.set_grad();
    sgd.lr = nan;
    refused("lr", [&] { sgd.update(); });
    CHECK(sgd.t() == 0);
    CHECK(two.values() == std::vector<float>{1, -2});
    refused("rate", [&] { sgd.weight_decay(nan); });
    refused("rate", [&] { sgd.weight_decay(-0.5); });
    CHECK(two.grads() == std::vector<float>{0.5F, -0.25F});
}

TEST_CASE("Adam::lr is the step size of the last update") {
    optimizers::Adam adam(0.5, 0.75, 0.5);
    const double first = 0.5 * std::sqrt(0.5) / 0.25;
    CHECK(adam.lr() == doctest::Approx(first));
    Two two;
    adam.setup(two);
    adam.update();
    CHECK(adam.lr() == doctest::Approx(first));
    adam.update();
    CHECK(adam.lr() == doctest::Approx(0.5 * std::sqrt(0.75) / (1 - 0.5625)));
    // The step at constant moments: m / sqrt(v) is 1.
    optimizers::Adam plain(0.01, 0, 0, 0);
    plain.setup(two);
    two.p.set_grad(Array::ones({2}));
    const float before = two.values()[0];
    plain.update();
    CHECK(plain.lr() == 0.01);
    CHECK(two.values()[0] == doctest::Approx(before - 0.01));
}

TEST_CASE("Adam: lam of Chainer 1, and amsgrad after setup()") {
    optimizers::Adam adam(0.1, 0.5, 0.5);
    adam.lam = 0.5;  // beta1 is 0.5, then 0.25: m is g / 2, then 0.75 g + 0.25 m
    const Two two;
    adam.setup(two);
    two.p.set_grad(Array::ones({2}));
    adam.update();
    adam.update();
    const double second = 0.1 * std::sqrt(0.75) / 0.75 * 0.875 / std::sqrt(0.75);
    CHECK(two.values()[0] == doctest::Approx(1 - 0.1 - second));
    adam.lam = 1.5;
    CHECK_THROWS_AS(adam.update(), InvalidError);
    adam.lam = 1;
    adam.amsgrad = true;
    contains(error_of<InvalidError>([&] { adam.update(); }),
             "[catena.adam_update] vhat: expected an array with amsgrad, got none");
    CHECK(adam.t() == 2);
}

TEST_CASE("hooks change gradients in place, but never memory that someone else holds") {
    const Two two;
    optimizers::SGD sgd;
    sgd.setup(two);
    two.p.set_grad(Array::from({3.F, 4.F}, {2}));
    const auto* body = two.p.grad().body();
    sgd.clip_grads(2.5);
    CHECK(two.grads() == std::vector<float>{1.5F, 2});
    CHECK(two.p.grad().body() == body);
    sgd.weight_decay(0.5);
    CHECK(two.grads() == std::vector<float>{2, 1});
    CHECK(two.p.grad().body() == body);

    const Array held = two.p.grad();
    sgd.clip_grads(1);
    CHECK(held.to_vector<float>() == std::vector<float>{2, 1});
    CHECK(two.grads() != std::vector<float>{2, 1});
    // A gradient that is a view, and one array that is the gradient of two parameters.
    const Array both = Array::from({3.F, 4.F}, {2, 1});
    two.p.set_grad(both.reshape({2}));
    sgd.weight_decay(1);
    CHECK(two.grads() == std::vector<float>{4, 2});
    CHECK(both.to_vector<float>() == std::vector<float>{3, 4});
    links::Linear a(2, 1, 1, 0, true);
    links::Linear b(2, 1, 1, 0, true);
    Array one = Array::from({3.F, 4.F}, {1, 2});
    a.W.set_grad(one);
    b.W.set_grad(one);
    one = {};
    sgd.setup({{"a", a.W}, {"b", b.W}});
    sgd.clip_grads(std::sqrt(50.0) / 2);
    CHECK(a.W.grad().to_vector<float>()[0] == doctest::Approx(1.5));
    CHECK(b.W.grad().to_vector<float>()[1] == doctest::Approx(2));
}
