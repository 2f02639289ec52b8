// Tests of several threads at once: each has its own variables, all share the parameters.
#include "toys.hpp"

#include <catena/core/config.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/diagnostics/kernels.hpp>

#include <doctest/doctest.h>

#include <thread>

using namespace catena;
using namespace toys;

namespace {

void in_threads(int n, const auto& body) {
    std::vector<std::thread> threads;
    for (int i = 0; i < n; ++i) threads.emplace_back([&body, i] { body(i); });
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("threads share parameters that want no gradient, and functions") {
    const Variable w(doubles({2, 3}));
    w.set_requires_grad(false);
    const PluginFunction mul("toy.mul"), sum("toy.sum"), scale("toy.scale", {{"factor", 0.5}});
    std::atomic<int> wrong{0};
    in_threads(6, [&](int id) {
        for (int i = 0; i < 300; ++i) {
            const Variable x(doubles({id + 1.0, 1}));
            Variable y = mul.first({&x, &w});
            y = mul.first({&y, &w});
            y = scale.first({&y});
            y = sum.first({&y});
            y.backward();
            wrong += values(x.grad()) != Values{2, 4.5};
            wrong += y.data().item<double>() != (id + 1) * 2 + 4.5;
        }
    });
    CHECK(wrong == 0);
    CHECK_FALSE(w.grad());
}

TEST_CASE("threads with a variable each over the same array") {
    const Array shared = doubles({5});
    const PluginFunction cube("toy.cube");
    std::atomic<int> wrong{0};
    in_threads(4, [&](int) {
        const Variable mine(shared);
        for (int i = 0; i < 200; ++i) {
            const Variable y = cube.first({&mine});
            mine.cleargrad();
            y.backward(false, true);
            const Variable gx = mine.grad_variable();
            mine.cleargrad();
            gx.backward();
            wrong += values(mine.grad()) != Values{30};
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("threads that only look at a variable of a graph") {
    const Variable x(doubles({5}));
    const Variable y = PluginFunction("toy.cube").first({&x});
    const PluginFunction mul("toy.mul");
    in_threads(4, [&](int) {
        const no_backprop_mode scope;
        for (int i = 0; i < 300; ++i) {
            const Variable copy = y;
            const Variable z = mul.first({&copy, &y});
            CHECK(values(z.data())[0] == 125.0 * 125.0);
        }
    });
    y.backward();
    CHECK(values(x.grad()) == Values{75});
}

TEST_CASE("first uses of functions, dtypes and devices race without harm") {
    toys::Plugin plugin("toys.racing");
    plugin.function("toy.racing", {{"x"}}, {{"y"}}, toys::infer_same);
    plugin.kernel("toy.racing", [](catena_ctx*, const catena_call* c) -> catena_status {
        toys::put(*c->y[0], 0, 1);
        return CATENA_OK;
    });
    plugin.add();
    std::atomic<int> right{0};
    in_threads(8, [&](int id) {
        const using_device scope(id % 2 ? "toy:1" : "toy:0");
        for (int i = 0; i < 20; ++i) {
            const using_config exact(&Config::deterministic, i % 2);
            const Array x = id % 3 ? Array::zeros({1}) : Array::zeros({1}, Dtype::float64);
            right += PluginFunction("toy.racing").forward({{x}})[0].item<double>() == 1;
            (void)kernels_of("toy.racing");
            if (id == 7) pin_kernels("toy.racing", i % 2 ? "toys.racing" : "");
        }
    });
    CHECK(right == 160);
}

TEST_CASE("plugins may arrive while others compute") {
    const PluginFunction mul("toy.mul");
    std::atomic<int> wrong{0};
    in_threads(4, [&](int id) {
        for (int i = 0; i < 100; ++i) {
            if (id == 0 && i % 10 == 0) {
                toys::Plugin plugin("toys.arriving-" + std::to_string(i));
                plugin
                    .kernel("toy.mul",
                            [](catena_ctx* ctx, const catena_call*) {
                                return toys::fail(ctx, CATENA_E_INTERNAL, "never chosen");
                            })
                    .priority = -1;
                plugin.add();
            }
            const Variable x(doubles({3}));
            const Variable y = mul.first({&x, &x});
            y.backward();
            wrong += values(x.grad()) != Values{6};
        }
    });
    CHECK(wrong == 0);
}

TEST_CASE("a graph built in one thread is walked and freed in another") {
    const PluginFunction mul("toy.mul");
    Variable x(doubles({1}));
    Variable y = x;
    std::thread([&] {
        for (int i = 0; i < 1000; ++i) y = mul.first({&y, &x});
    }).join();
    std::thread([&] {
        y.backward();
        y = Variable();
    }).join();
    CHECK(values(x.grad()) == Values{1001});
}
