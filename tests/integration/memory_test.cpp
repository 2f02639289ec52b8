// Tests that training steps and calls allocate no memory from the system after warm-up.
#include <catena/catena.hpp>

#include <doctest/doctest.h>
#include <catena_test/allocations.hpp>

#include <unistd.h>

#include <atomic>
#include <fstream>

namespace F = catena::functions;
using namespace catena;

namespace {
std::atomic<long> heap_calls{0};
constexpr bool counts = catena_test::sees_allocations;
}  // namespace

void catena_test::on_allocation() { heap_calls.fetch_add(1, std::memory_order_relaxed); }

namespace {

struct Mlp : Chain {
    explicit Mlp(std::int64_t units) : l1(784, units), l2(units, units), l3(units, 10) {}
    Variable operator()(const Variable& x) override {
        return l3(F::dropout(F::relu(l2(F::relu(l1(x)))), 0.2));
    }
    void visit(Visitor& v) override { v("l1", l1)("l2", l2)("l3", l3); }
    links::Linear l1, l2, l3;
};

struct Work {
    Work(std::int64_t units, Optimizer& how) : model(units), optimizer(how) {
        optimizer.setup(model);
        const Array images = Array::full({100, 784}, 0.25);
        const Array labels = Array::full({100}, 3, Dtype::int32);
        x = as_variable(images);
        t = as_variable(labels);
    }
    void step() {
        optimizer.cleargrads();
        loss = F::softmax_cross_entropy(model(x), t);
        loss.backward();
        optimizer.update();
    }
    Mlp model;
    Optimizer& optimizer;
    Variable x, t, loss;
};

struct Cost {
    long heap;
    std::int64_t system;
    std::int64_t in_use;
};

Cost cost(Work& work, int steps) {
    for (int i = 0; i < 20; ++i) work.step();
    const MemoryStats before = Device::current().memory();
    const long heap = heap_calls;
    for (int i = 0; i < steps; ++i) work.step();
    const long heap_after = heap_calls;
    const MemoryStats after = Device::current().memory();
    return {heap_after - heap, after.system_calls - before.system_calls,
            after.in_use - before.in_use};
}

std::int64_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::int64_t pages = 0;
    statm >> pages >> pages;
    return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("a training step allocates no array memory from the system and no heap memory" *
          doctest::skip(!counts)) {
    optimizers::SGD sgd(0.01);
    optimizers::Adam adam(0.001);
    for (Optimizer* optimizer : std::initializer_list<Optimizer*>{&sgd, &adam}) {
        for (const std::int64_t units : {20, 300}) {
            CAPTURE(units);
            Work work(units, *optimizer);
            const Cost c = cost(work, 20);
            CHECK(c.system == 0);
            CHECK(c.heap == 0);
            CHECK(c.in_use == 0);
        }
    }
}

TEST_CASE("a call allocates no heap memory" * doctest::skip(!counts)) {
    const Variable a(Array::ones({1})), b(Array::ones({1}));
    const Variable wide(Array::ones({64, 64}));
    const auto calls = [&] {
        Variable y = F::add(a, b);
        y = F::mul(y, a);
        y.backward();
        Variable z = F::add(wide, a);  // broadcast
        z = F::matmul(z, wide);
        z = F::reshape(z, {-1});
        z = F::sum(F::mul_constant(F::softmax(F::reshape(z, {64, 64})), 2));
        z.backward();
        const no_backprop_mode scope;
        z = F::exp(F::linear(wide, wide));
    };
    for (int i = 0; i < 5; ++i) calls();
    const long before = heap_calls;
    for (int i = 0; i < 100; ++i) calls();
    const long after = heap_calls;
    CHECK(after - before == 0);
}

TEST_CASE("the process does not grow during ten thousand steps" * doctest::skip(!counts)) {
    optimizers::SGD sgd(0.01);
    Work work(8, sgd);
    for (int i = 0; i < 500; ++i) work.step();
    const std::int64_t before = resident_bytes();
    for (int i = 0; i < 10'000; ++i) work.step();
    CHECK(resident_bytes() - before <= 128 << 10);
}

TEST_CASE("the array memory of a training step is freed with its variables") {
    const std::int64_t before = Device::current().memory().in_use;
    {
        optimizers::Adam adam;
        Work work(50, adam);
        for (int i = 0; i < 3; ++i) work.step();
        CHECK(Device::current().memory().in_use > before);
    }
    CHECK(Device::current().memory().in_use == before);
}
