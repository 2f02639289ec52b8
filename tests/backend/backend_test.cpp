// Tests a third party's device: kernels run on it; missing ones are refused by name, or run on the
// CPU if the program requests that, with the same results.
#include <catena/catena.hpp>
#include <catena/loader/plugins.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>

using namespace catena;
namespace F = catena::functions;
namespace L = catena::links;

namespace {

Device island(int ordinal = 0) {
    load_plugin(DEVICE_PLUGIN);
    return Device::get("island:" + std::to_string(ordinal));
}

struct Mlp : Chain {
    L::Linear l1{8, 16}, l2{16, 3};
    void visit(Visitor& v) override { v("l1", l1)("l2", l2); }
    Variable operator()(const Variable& x) override { return l2(F::relu(l1(x))); }
};

Array numbers(const Shape& shape, std::uint64_t seed_value, Dtype dtype = Dtype::float32) {
    seed(seed_value);
    return initializers::Uniform(1)(shape, dtype);
}
Array labels() { return Array::from<std::int32_t>({0, 2, 1, 1, 2, 0}, {6}); }

// Returns the parameters after five training steps on the device.
std::vector<Array> trained(Device device, Optimizer& optimizer) {
    seed(1);
    Mlp model;
    model.to(device);
    optimizer.setup(model);
    const Variable x = as_variable(numbers({6, 8}, 2).to(device));
    const Variable t = as_variable(labels().to(device));
    for (int step = 0; step < 5; ++step) {
        optimizer.cleargrads();
        F::softmax_cross_entropy(model(x), t).backward();
        optimizer.update();
    }
    std::vector<Array> result;
    for (const Variable& p : model.parameters()) {
        CHECK(p.data().device() == device);
        CHECK(p.grad().device() == device);
        result.push_back(p.data());
    }
    return result;
}

void check_close(const Array& a, const Array& b, double tolerance) {
    const std::vector<double> x = a.to_vector<double>();
    const std::vector<double> y = b.to_vector<double>();
    REQUIRE(x.size() == y.size());
    for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(x[i] == doctest::Approx(y[i]).epsilon(tolerance));
}

template <class Body>
std::string refusal(const Body& body) {
    try {
        body();
    } catch (const UnsupportedError& error) {
        return error.what();
    }
    return "not refused";
}
void check_refused(const std::string& text, const std::string& function) {
    INFO(text);
    CHECK(text.find("[catena." + function + "] kernel: expected one for ") == 0);
    CHECK(text.find(" on island:0, got none") != std::string::npos);
    CHECK(text.find("org.catena.") != std::string::npos);  // lists plugins with kernels
}

}  // namespace

TEST_CASE("memory of its own: arrays go there and back, and the host cannot look in") {
    const Device device = island();
    CHECK_FALSE(device.host_accessible());
    const Array x = numbers({3, 5}, 3);
    const Array there = x.to(device);
    CHECK(there.device() == device);
    CHECK(there.to_vector<float>() == x.to_vector<float>());
    CHECK(there.to(island(1)).to(Device::get("cpu")).to_vector<float>() == x.to_vector<float>());
    CHECK(there.copy().reshape({5, 3}).to_vector<float>() == x.to_vector<float>());
    CHECK(Array::full({2}, 7, Dtype::float64, device).to_vector<double>() ==
          std::vector<double>{7, 7});
    CHECK(Array::empty({0, 4}, Dtype::float32, device).to_vector<float>().empty());
    CHECK_THROWS_WITH_AS(there.host<float>(),
                         "[array] host(): expected a device that the host can reach, got island:0; "
                         "copy it with to()",
                         DeviceError);
}

TEST_CASE("its own kernels run there, forward and backward") {
    const Device device = island();
    const Variable x(numbers({4, 8}, 4).to(device));
    const Variable y = F::relu(x);
    CHECK(y.data().device() == device);
    y.set_grad(Array::ones({4, 8}, Dtype::float32, device));
    y.backward();
    const Variable host_x(x.data().to(Device::get("cpu")));
    const Variable host_y = F::relu(host_x);
    host_y.set_grad(Array::ones({4, 8}));
    host_y.backward();
    CHECK(y.data().to_vector<float>() == host_y.data().to_vector<float>());
    CHECK(x.grad().device() == device);
    CHECK(x.grad().to_vector<float>() == host_x.grad().to_vector<float>());
}

TEST_CASE("what it cannot do is refused by name: forward, backward, gradients that meet, updates") {
    const Device device = island();
    Mlp model;
    model.to(device);
    optimizers::SGD optimizer(0.1);
    optimizer.setup(model);
    const Variable x = as_variable(numbers({6, 8}, 5).to(device));
    const Variable y = model(x);  // the device has linear and relu
    CHECK(y.data().device() == device);
    const Variable t = as_variable(labels().to(device));
    check_refused(refusal([&] { F::softmax_cross_entropy(y, t); }), "softmax_cross_entropy");
    y.set_grad(Array::ones({6, 3}, Dtype::float32, device));
    check_refused(refusal([&] { y.backward(); }), "matmul");  // linear's gradient calls matmul
    const Variable z(numbers({2, 3}, 6).to(device));
    check_refused(refusal([&] { z + z; }), "add");
    const Variable w = F::relu(z);
    w.set_grad(Array::ones({2, 3}, Dtype::float32, device));
    w.backward();
    check_refused(refusal([&] { w.backward(); }), "add");  // to accumulate into x.grad
    for (const Variable& p : model.parameters())
        p.set_grad(Array::ones(p.shape(), p.dtype(), device));
    check_refused(refusal([&] { optimizer.update(); }), "sgd_update");
    // The refused calls did not change the net.
    CHECK(model(x).data().to_vector<float>() == y.data().to_vector<float>());
}

TEST_CASE("on request the rest runs on the CPU: the net trains to the same parameters") {
    const Device device = island();
    const using_fallback scope("cpu:0");
    const auto compare = [&](auto make) {
        auto here = make();
        auto there = make();
        const std::vector<Array> expected = trained(Device::get("cpu"), here);
        const std::vector<Array> got = trained(device, there);
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) check_close(got[i], expected[i], 1e-5);
    };
    compare([] { return optimizers::SGD(0.1); });
    compare([] { return optimizers::Adam(); });
}

TEST_CASE("calls with saved state, in place, random, of higher order") {
    const Device device = island();
    const Device cpu = Device::get("cpu");
    const using_fallback scope(cpu);
    const Array image = numbers({2, 3, 6, 6}, 7);
    const auto gradient_of = [&](const auto& function, Device d) {
        const Variable x(image.to(d));
        const Variable y = function(x);
        CHECK(y.data().device() == d);
        F::sum(y * y).backward();
        CHECK(x.grad().device() == d);
        return x.grad();
    };
    const auto compare = [&](const auto& function) {
        check_close(gradient_of(function, device), gradient_of(function, cpu), 1e-5);
    };
    compare([](const Variable& x) {
        return F::max_pooling_2d(x, {2, 2});
    });  // saves the positions of the maxima
    compare([](const Variable& x) {
        const Array like = x.data();
        const auto full = [&](double v) {
            return as_variable(Array::full({3}, v, Dtype::float32, like.device()));
        };
        return F::batch_normalization(x, full(1.5), full(0.5));
    });
    compare([](const Variable& x) {
        seed(11);
        return F::dropout(x, 0.5);
    });
    compare([](const Variable& x) { return F::reshape(x, {6, 36}); });  // reshape needs no kernel

    // Gradients of gradients.
    const auto second = [&](Device d) {
        const Variable x(image.to(d));
        const Variable y = F::sum(F::exp(x) * x);
        const Variable g = grad({y}, {x}, {}, {}, {.enable_double_backprop = true})[0];
        F::sum(g * g).backward();
        CHECK(x.grad().device() == d);
        return x.grad();
    };
    check_close(second(device), second(cpu), 1e-5);
}

TEST_CASE("in-place updates come back to the device that holds the array") {
    const Device device = island();
    const using_fallback scope("cpu");
    L::BatchNormalization layer(3);
    layer.to(device);
    const Variable x(numbers({4, 3}, 8).to(device));
    const std::vector<float> before = layer.avg_mean.to_vector<float>();
    layer(x);
    CHECK(layer.avg_mean.device() == device);
    CHECK(layer.avg_mean.to_vector<float>() != before);
}

TEST_CASE("the wish ends with its scope, and is the thread's own") {
    const Device device = island();
    const Variable x(numbers({2, 3}, 9).to(device));
    {
        const using_fallback outer("cpu");
        CHECK(Device::fallback() == Device::get("cpu"));
        CHECK_NOTHROW(F::exp(x));
        {
            const using_fallback none{Device()};
            check_refused(refusal([&] { F::exp(x); }), "exp");
        }
        CHECK_NOTHROW(F::exp(x));
        std::string other;
        std::thread([&] { other = refusal([&] { F::exp(x); }); }).join();
        check_refused(other, "exp");
        // The device itself cannot be its own fallback.
        const using_fallback same(device);
        check_refused(refusal([&] { F::exp(x); }), "exp");
    }
    check_refused(refusal([&] { F::exp(x); }), "exp");
    CHECK_THROWS_AS(using_fallback("nowhere"), DeviceError);
}

TEST_CASE("inputs on two devices are an error, fallback or not") {
    const using_fallback scope("cpu");
    const Variable x(numbers({2, 3}, 10).to(island()));
    const Variable y(numbers({2, 3}, 11));
    CHECK_THROWS_AS(x + y, DeviceError);
}

TEST_CASE("the environment names the fallback of all threads") {
    const Variable x(numbers({2, 3}, 12).to(island()));
    CHECK(Device::fallback() == Device::get("cpu:0"));
    CHECK(F::exp(x).data().device() == x.data().device());
    std::string other;
    std::thread([&] { other = refusal([&] { F::exp(x); }); }).join();
    CHECK(other == "not refused");
}
