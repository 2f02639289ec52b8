// Whichever allocation on the heap fails, in calls, backward, updates and files: there is an exception, nothing
// is lost, and the next try works.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace F = catena::functions;
using namespace catena;

namespace {

std::atomic<long> left{0};  // allocations until the one that fails; 0: none will
std::atomic<bool> lasts{false};
std::atomic<bool> happened{false};

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool fails = false;  // the sanitizer has its own operator new
#else
constexpr bool fails = true;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // inlined, they look unrelated
#endif
// Those of this process's libraries and plugins too.
void* operator new(std::size_t bytes) {
    if ((lasts && happened) || (left > 0 && left.fetch_sub(1) == 1)) {
        happened = true;
        throw std::bad_alloc();
    }
    if (void* block = std::malloc(bytes ? bytes : 1)) return block;
    throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
#endif

namespace {

struct Net : Chain {
    Net() : l1(40, 30), bn(30), l2(30, 10) {}
    Variable operator()(const Variable& x) override { return l2(F::relu(bn(l1(x)))); }
    void visit(Visitor& v) override { v("l1", l1)("bn", bn)("l2", l2); }
    links::Linear l1;
    links::BatchNormalization bn;
    links::Linear l2;
};

// What a user does with a net; returns the loss.
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
            const Variable y = model(x);  // forgotten before backward
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

double predict() {
    const no_backprop_mode scope;
    const using_named_config setting("use_cudnn", 0);
    const Array big = Array::full({300, 100}, 2);
    Array copy = big.copy();
    copy = copy.astype(Dtype::float64);
    return F::sum(F::concat({Variable(copy), Variable(copy)}, 1)).item();
}

// A function of the user's own, on variables.
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

// Replicas side by side; failures hit any of the threads.
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

// Not safetensors: a JSON library's destructors take memory.
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

// In a thread that has done nothing yet, each time from the same start.
Outcome fail_once(const std::function<double()>& body, long n, bool from_then_on) {
    Outcome outcome;
    std::thread([&] {
        happened = false;
        lasts = from_then_on;
        left = n;
        try {
            outcome.value = body();
        } catch (const std::bad_alloc&) {
            outcome.failed = true;
        } catch (const Error&) {
            outcome.failed = true;
        }
        lasts = false;
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
            if (!outcome.failed) CHECK(outcome.value == expected);  // it did without
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

// The numbers are some of the allocations that there are: less would mean that the test sees none.
TEST_CASE("training survives each failed allocation" * doctest::skip(!fails)) { check(train, 100); }
TEST_CASE("gradients of gradients do" * doctest::skip(!fails)) { check(differentiate_twice, 20); }
TEST_CASE("calls without a graph do" * doctest::skip(!fails)) { check(predict, 20); }
TEST_CASE("functions of the user's own do" * doctest::skip(!fails)) {
    check(call_own_function, 20);
}
TEST_CASE("files do" * doctest::skip(!fails)) {
    const TemporaryFolder folder;
    check([&] { return save_and_load(folder.path / "net.npz"); }, 100);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}
TEST_CASE("several devices do" * doctest::skip(!fails)) { check(learn_on_two_devices, 20); }
TEST_CASE("errors do" * doctest::skip(!fails)) { check(fail_on_purpose, 20); }
