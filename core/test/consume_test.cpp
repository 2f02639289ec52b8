// Tests of backward() on a temporary variable: which arrays it frees, when, and which it keeps.
#include "toys.hpp"

#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

namespace {

// The size of the tests' arrays, in bytes. The allocator does not round it up.
constexpr std::int64_t bytes = 1 << 16;
MemoryStats stats() { return Device::get("toy:0").memory(); }
std::int64_t live() { return stats().in_use / bytes; }
Array big(double value = 1) { return Array::full({bytes / 4}, value); }

// Returns the sum of x^2^n. Each call retains its input.
Variable squares(const Variable& x, int n) {
    Variable y = x;
    for (int i = 0; i < n; ++i) y = mul.first({&y, &y});
    return sum.first({&y});
}

// The number of live arrays at each call of toy.watch's gradient().
std::vector<std::int64_t> watched;
Variable watch(const Variable& x) {
    static const PluginFunction function = [] {
        toys::Plugin plugin("toys.watch");
        auto& f = plugin.function("toy.watch", {{"x"}}, {{"y"}}, toys::infer_same);
        f.retain_x = 1;
        f.gradient = [](catena_ctx*, const catena_gradient_call* g) -> catena_status {
            watched.push_back(live());
            g->gx[0] = g->gy[0];
            return CATENA_OK;
        };
        plugin.kernel("toy.watch", [](catena_ctx*, const catena_call* c) -> catena_status {
            for (std::int64_t i = 0; i < toys::count(*c->y[0]); ++i) {
                toys::put(*c->y[0], i, toys::get(*c->x[0], i));
            }
            return CATENA_OK;
        });
        plugin.add();
        return PluginFunction("toy.watch");
    }();
    return function.first({&x});
}

}  // namespace

TEST_CASE("a temporary frees as it goes; the same variable kept does not") {
    const Variable x(big());
    const std::int64_t before = live();
    squares(x, 6).backward();
    CHECK(values(x.grad())[0] == 64);
    CHECK(live() == before + 1);  // x.grad
    x.cleargrad();
    Variable loss = squares(x, 6);
    CHECK(live() == before + 5);
    SUBCASE("moved from") {
        std::move(loss).backward();
        CHECK(live() == before + 1);
        CHECK(loss.data().item<float>() == bytes / 4);  // the value stays
        CHECK(values(loss.grad()) == Values{1});
        CHECK_THROWS_WITH_AS(
            loss.backward(),
            "[toy.sum] backward: expected its graph, got one that an earlier backward() consumed",
            GraphError);
        CHECK_THROWS_AS(std::move(loss).backward(), GraphError);
        const Variable further = twice.first({&loss});
        CHECK_THROWS_AS(further.backward(), GraphError);
        CHECK_THROWS_AS(grad({further}, {x}), GraphError);
        loss.unchain_backward();
        CHECK(loss.creator() == nullptr);
        CHECK(values(x.grad())[0] == 64);
    }
    SUBCASE("kept") {
        loss.backward();
        CHECK(live() == before + 6);
        loss.backward();
        CHECK(values(x.grad())[0] == 128);
    }
    SUBCASE("kept by a copy") {
        const Variable copy = loss;
        std::move(loss).backward();
        CHECK(live() == before + 6);
        copy.backward();
        CHECK(values(x.grad())[0] == 128);
    }
    SUBCASE("const") {
        const Variable& same = loss;
        std::move(same).backward();
        loss.backward();
        CHECK(values(x.grad())[0] == 128);
    }
}

TEST_CASE("arrays go in the order in which their calls ran") {
    const Variable x(big());
    const auto chain = [&] {
        Variable y = twice.first({&x});
        for (int i = 0; i < 4; ++i) {
            y = watch(y);
            y = twice.first({&y});
        }
        return sum.first({&y});
    };
    const std::int64_t before = live();
    watched.clear();
    chain().backward();
    // At first four retained arrays and the gradient being passed on; each call frees one array.
    CHECK(watched == std::vector<std::int64_t>{before + 5, before + 4, before + 3, before + 2});
    x.cleargrad();
    watched.clear();
    const Variable kept = chain();
    kept.backward();
    CHECK(watched == std::vector<std::int64_t>(4, before + 5));
}

TEST_CASE("the peak falls: gradients take the place of what calls kept") {
    constexpr int n = 20;
    std::vector<Variable> w;
    for (int i = 0; i < n; ++i) w.emplace_back(big());
    const auto product = [&] {
        Variable y = w[0];
        for (int i = 1; i < n; ++i) y = mul.first({&y, &w[static_cast<std::size_t>(i)]});
        return sum.first({&y});
    };
    // Returns how many arrays step() allocates at its peak in addition to the live ones.
    const auto peak = [&](auto&& step) {
        for (const Variable& v : w) v.cleargrad();
        std::vector<Array> ballast;  // fills memory up to the highest peak so far
        while (live() < stats().peak / bytes) ballast.push_back(big());
        const std::int64_t before = live();
        step();
        return stats().peak / bytes - before;
    };
    const std::int64_t consumed = peak([&] { product().backward(); });
    const std::int64_t kept = peak([&] {
        const Variable y = product();
        y.backward();
    });
    CHECK(kept >= 2 * n - 2);  // the results, and the gradients of all w
    CHECK(consumed <= n + 4);
}

TEST_CASE("what another variable leads to stays") {
    const Variable x(big(2));
    Variable left, right;
    std::int64_t before = live();
    {
        Variable trunk = x;
        for (int i = 0; i < 3; ++i) trunk = mul.first({&trunk, &trunk});  // x^8
        left = sum.first({&trunk});
        const Variable more = mul.first({&trunk, &trunk});
        right = sum.first({&more});
    }
    CHECK(live() == before + 3);  // x^2, x^4, x^8
    std::move(left).backward();
    CHECK(values(x.grad())[0] == 8 * 128);
    CHECK(live() == before + 4);
    std::move(right).backward();
    CHECK(values(x.grad())[0] == 8 * 128 + 16 * 32768);
    CHECK(live() == before + 1);
}

TEST_CASE("a handle in the middle keeps what is below it") {
    const Variable x(big(2));
    const Variable h = mul.first({&x, &x});
    Variable y;
    {
        const Variable k = mul.first({&h, &h});
        const Variable l = mul.first({&k, &k});
        y = sum.first({&l});
    }
    const std::int64_t before = live();
    std::move(y).backward();
    CHECK(live() == before);  // k was freed, x.grad was allocated
    CHECK(values(x.grad())[0] == 8 * 128);
    const Variable other = sum.first({&h});
    other.backward();
    CHECK(values(x.grad())[0] == 8 * 128 + 4);
    CHECK(values(h.data())[0] == 4);
}

TEST_CASE("outputs of one call: a sister keeps it") {
    const Variable x(floats({1}));
    auto parts = PluginFunction("toy.split")({&x});
    std::move(parts[0]).backward();
    CHECK(values(x.grad()) == Values{2});
    parts[1].backward();
    CHECK(values(x.grad()) == Values{5});
    parts[0] = Variable();
    std::move(parts[1]).backward();
    CHECK(values(x.grad()) == Values{8});
    CHECK_THROWS_AS(parts[1].backward(), GraphError);
}

TEST_CASE("a graph that branches and meets again is walked as ever") {
    const Variable x(floats({2}));
    const auto build = [&] {
        const Variable m = mul.first({&x, &x});
        const Variable a = twice.first({&m});
        const Variable b = mul.first({&m, &a});
        const auto parts = PluginFunction("toy.split")({&b});
        const Variable c = mul.first({&parts[0], &parts[1]});
        return add.first({&c, &x});
    };
    build().backward();
    const Array consumed = x.grad();
    x.cleargrad();
    const Variable kept = build();
    kept.backward();
    CHECK(values(x.grad()) == values(consumed));
}

TEST_CASE("retain_grad and double backprop") {
    const Variable x(floats({3}));
    const Variable h = mul.first({&x, &x});
    mul.first({&h, &x}).backward(true);
    CHECK(values(h.grad()) == Values{3});
    x.cleargrad();
    mul.first({&h, &x}).backward(false, true);  // x.grad's graph retains h
    const Variable gx = x.grad_variable();
    CHECK(values(gx.data()) == Values{27});
    CHECK(values(grad({gx}, {x})[0].data()) == Values{18});
    Variable y = mul.first({&x, &x});
    std::move(y).backward(false, true);
    y.backward();
}

TEST_CASE("an error in the middle of a consuming pass leaves nothing on its way") {
    const Variable x(big(2));
    const std::int64_t before = live();
    {
        const Variable h = mul.first({&x, &x});
        Variable y;
        {
            const Variable a = PluginFunction("toy.fragile").first({&h});
            const Variable b = mul.first({&h, &h});
            const Variable c = mul.first({&a, &b});
            y = sum.first({&c});
        }
        toys::fail_backward = true;
        CHECK_THROWS_AS(std::move(y).backward(), ValueError);
        CHECK_THROWS_AS(y.backward(), GraphError);
        CHECK(live() == before + 1);  // h; all arrays of later calls were freed
        x.cleargrad();
        sum.first({&h}).backward();
        CHECK(values(x.grad())[0] == 4);
    }
    x.cleargrad();
    CHECK(live() == before);
}

TEST_CASE("a long chain is consumed without recursion") {
    const Variable x(Array::ones({}));
    Variable y = x;
    for (int i = 0; i < toys::many; ++i) y = add.first({&y, &x});
    std::move(y).backward();
    CHECK(x.grad().item<float>() == toys::many + 1);
    Variable start(Array::ones({}), false);
    std::move(start).backward();  // a leaf gets its own gradient
    CHECK(start.grad().item<float>() == 1);
}
