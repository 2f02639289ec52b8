// Tests of bitwise reproducibility: for a fixed number of threads; if deterministic, for any.
#include <catena/catena.hpp>

#include <doctest/doctest.h>

#include <cstring>

namespace F = catena::functions;
using namespace catena;

namespace {

struct Mlp : Chain {
    explicit Mlp(std::int64_t units) : l1(784, units), l2(units, units), l3(units, 10) {}
    Variable operator()(const Variable& x) override {
        return l3(F::dropout(F::relu(l2(F::sigmoid(l1(x)))), 0.5));
    }
    void visit(Visitor& v) override { v("l1", l1)("l2", l2)("l3", l3); }
    links::Linear l1, l2, l3;
};

// Returns the parameters after some training steps.
std::vector<float> train(std::uint64_t start, int threads, std::int64_t units, int steps) {
    const Device device = Device::current();
    device.set_threads(threads);
    seed(start);
    Mlp model(units);
    optimizers::Adam adam(0.01);
    adam.setup(model);
    for (int step = 0; step < steps; ++step) {
        const Array images = Array::empty({100, 784});
        const Array labels = Array::empty({100}, Dtype::int32);
        const auto pixels = images.host<float>();
        for (std::size_t i = 0; i < pixels.size(); ++i) {
            pixels[i] =
                static_cast<float>((i * 7919 + static_cast<std::size_t>(step) * 104729) % 256) /
                256;
        }
        const auto classes = labels.host<std::int32_t>();
        for (std::size_t i = 0; i < classes.size(); ++i)
            classes[i] = static_cast<std::int32_t>(i % 10);
        model.cleargrads();
        const Variable loss =
            F::softmax_cross_entropy(model(as_variable(images)), as_variable(labels));
        loss.backward();
        adam.update();
    }
    device.set_threads(0);
    std::vector<float> all;
    for (const Variable& p : model.parameters()) {
        const auto values = p.data().to_vector<float>();
        all.insert(all.end(), values.begin(), values.end());
    }
    return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("the same seed and number of threads: the same bits") {
    for (const int threads : {1, 2, 3}) {
        const auto first = train(1, threads, 100, 5);
        for (int repeat = 0; repeat < 3; ++repeat)
            CHECK(same_bits(first, train(1, threads, 100, 5)));
        CHECK_FALSE(same_bits(first, train(2, threads, 100, 5)));
    }
}

TEST_CASE("deterministic: the same bits for any number of threads") {
    const using_config scope(&Config::deterministic, true);
    for (const std::int64_t units : {50, 300}) {
        const auto first = train(1, 1, units, 3);
        for (const int threads : {2, 3, 5}) CHECK(same_bits(first, train(1, threads, units, 3)));
    }
}
