// Makes each heap allocation fail in turn. The tested code must throw, leak no array memory, and
// succeed when it is run again.
#include <catena/catena.hpp>

#include <catena_test/allocations.hpp>

#include "temporary.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <thread>
#include <vector>

namespace F = catena::functions;
using namespace catena;

namespace {

std::atomic<long> left{0};         // allocations until one fails; 0: none fails
std::atomic<bool> lasting{false};  // all later ones fail too
std::atomic<bool> happened{false};
constexpr bool fails = catena_test::sees_allocations;

}  // namespace

void catena_test::on_allocation() {
    if ((lasting && happened) || (left > 0 && left.fetch_sub(1) == 1)) {
        happened = true;
        throw std::bad_alloc();
    }
}

namespace {

struct Net : Chain {
    Net() : l1(40, 30), bn(30), l2(30, 10) {}
    Variable operator()(const Variable& x) override { return l2(F::relu(bn(l1(x)))); }
    void visit(Visitor& v) override { v("l1", l1)("bn", bn)("l2", l2); }
    links::Linear l1;
    links::BatchNormalization bn;
    links::Linear l2;
};

// Trains a net, as a program does. Returns the loss.
double train() {
    seed(3);
    Net model;
    optimizers::Adam optimizer;
    optimizer.setup(model);
    const Variable x(Array::full({100, 40}, 0.25));
    const Variable t(Array::full({100}, 3, Dtype::int32));
    double last = 0;
    for (int step = 0; step < 2; ++step) {
        model.cleargrads();
        Variable loss;
        {
            const Variable y = model(x);  // no handle remains at backward()
            loss = F::softmax_cross_entropy(F::dropout(y * 2 + 1, 0.1), t);
        }
        loss.backward();
        optimizer.update();
        last = loss.item();
    }
    return last;
}

double differentiate_twice() {
    const Variable x(Array::full({40, 60}, 0.5));
    const Variable y = F::sum(F::tanh(F::reshape(x * x, {60, 40})));
    const auto gradients = grad({y}, {x}, {}, {}, {.enable_double_backprop = true});
    const Variable z = F::sum(gradients.at(0) * gradients.at(0));
    z.backward();
    return z.item();
}

// Runs backward() on a new thread.
double go_backward_elsewhere() {
    const Variable x(Array::full({30, 40}, 0.5));
    const Variable y = F::sum(F::tanh(x));
    std::async(std::launch::async, [&] { y.backward(); }).get();
    return x.grad().to_vector<float>().at(7);
}

double predict() {
    const no_backprop_mode scope;
    const using_named_config setting("use_cudnn", 0);
    const Array big = Array::full({300, 100}, 2);
    Array copy = big.copy();
    copy = copy.astype(Dtype::float64);
    return F::sum(F::concat({Variable(copy), Variable(copy)}, 1)).item();
}

// A user-defined function.
class Cube : public FunctionNode {
public:
    std::vector<Array> forward(std::span<const Array> x) override {
        retain_inputs({0});
        return {x[0] * x[0] * x[0]};
    }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable> gy) override {
        const Variable x = get_retained_inputs()[0];
        return {3 * x * x * gy[0]};
    }
};

double call_own_function() {
    const Variable x(Array::full({30, 100}, 2));
    const Variable y = F::sum(apply<Cube>({x})[0]);
    y.backward();
    return x.grad().to_vector<float>().at(7);
}

// Allocations fail on either device's thread.
double learn_on_two_devices() {
    DeviceThreads threads({Device::get("cpu:0"), Device::get("cpu:1")});
    double sum[2] = {};
    threads.run([&](std::size_t i) {
        const Variable x(Array::full({64, 40}, 0.5));
        for (const std::int64_t width : {10, 70, 30}) {
            const Variable w(Array::full({width, 40}, 0.25));
            F::sum(F::linear(x, w)).backward();
            sum[i] += w.grad().to_vector<float>().at(7);
        }
    });
    return sum[0] + sum[1];
}

// Uses .npz, because with .safetensors the destructors of the JSON library allocate.
double save_and_load(const std::filesystem::path& file) {
    const Net saved;
    Net loaded;
    save_npz(file, saved);
    load_npz(file, loaded);
    return F::sum(loaded.l1.W * saved.l1.W).item() > 0 ? 1 : 0;
}

double fail_on_purpose() {
    try {
        (void)F::linear(Array::ones({2, 3}), Array::ones({4, 5}));
    } catch (const ShapeError&) {
        return 1;
    }
    return 0;
}

struct Outcome {
    bool happened = false;
    bool failed = false;
    double value = 0;
};

// Runs on a new thread, so that each attempt starts with empty caches.
Outcome fail_once(const std::function<double()>& body, long n, bool from_then_on) {
    Outcome outcome;
    std::thread([&] {
        happened = false;
        lasting = from_then_on;
        left = n;
        try {
            outcome.value = body();
        } catch (const std::bad_alloc&) {
            outcome.failed = true;
        } catch (const Error&) {
            outcome.failed = true;
        }
        lasting = false;
        left = 0;
        outcome.happened = happened;
    }).join();
    return outcome;
}

void check(const std::function<double()>& body, int least) {
    const double expected = body();
    CHECK(expected != 0);
    const std::int64_t in_use = Device::current().memory().in_use;
    for (const bool from_then_on : {false, true}) {
        CAPTURE(from_then_on);
        for (long n = 1;; ++n) {
            CAPTURE(n);
            const Outcome outcome = fail_once(body, n, from_then_on);
            if (!outcome.failed) CHECK(outcome.value == expected);  // the memory was optional
            CHECK(Device::current().memory().in_use == in_use);
            if (outcome.happened) continue;
            CHECK_FALSE(outcome.failed);
            CHECK(n > least);
            break;
        }
        CHECK(body() == expected);
    }
}

}  // namespace

// The numbers are lower bounds that show that the test counts allocations.
TEST_CASE("training survives each failed allocation" * doctest::skip(!fails)) { check(train, 100); }
TEST_CASE("double backward survives each failed allocation" * doctest::skip(!fails)) {
    check(differentiate_twice, 20);
}
TEST_CASE("backward on a new thread survives each failed allocation" * doctest::skip(!fails)) {
    check(go_backward_elsewhere, 20);
}
TEST_CASE("calls without a graph survive each failed allocation" * doctest::skip(!fails)) {
    check(predict, 20);
}
TEST_CASE("a user's function survives each failed allocation" * doctest::skip(!fails)) {
    check(call_own_function, 20);
}
TEST_CASE("saving and loading survive each failed allocation" * doctest::skip(!fails)) {
    const TemporaryFolder folder;
    check([&] { return save_and_load(folder.path / "net.npz"); }, 100);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}
TEST_CASE("two devices survive each failed allocation" * doctest::skip(!fails)) {
    check(learn_on_two_devices, 20);
}
TEST_CASE("errors survive each failed allocation" * doctest::skip(!fails)) {
    check(fail_on_purpose, 20);
}
