// Tests of pins: a pinned plugin takes precedence over priorities, for kernels and for extensions.
#include "toys.hpp"

#include "graph/call.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

namespace {

double gradient(const Variable& y, const Variable& x) {
    x.cleargrad();
    y.backward();
    return values(x.grad())[0];
}

const int numbers[] = {0, 1, 2, 3};
std::vector<int> tables(const char* id, const char* device = "toy") {
    std::vector<int> found;
    for (const void* table : Device::get(device).extensions(id)) {
        found.push_back(*static_cast<const int*>(table));
    }
    return found;
}

}  // namespace

TEST_CASE("a pin wins over the variant of a call that was made before it") {
    toys::Plugin a("toys.saver"), b("toys.wished");
    a.function("toy.pinned", {{"x"}}, {{"y"}}, toys::infer_same);
    auto& forward = a.kernel("toy.pinned", say<1>);
    auto& backward = a.kernel("toy.pinned", say_back<1>, CATENA_PHASE_BACKWARD);
    forward.variant = backward.variant = "own";
    forward.priority = backward.priority = 300;
    a.kernel("toy.pinned", say_back<10>, CATENA_PHASE_BACKWARD);
    a.add();
    b.kernel("toy.pinned", say_back<2>, CATENA_PHASE_BACKWARD);
    b.add();
    const Variable x(floats({0}));
    const Variable y = PluginFunction("toy.pinned").first({&x});
    CHECK(gradient(y, x) == 1);
    pin_kernels("toy.pinned", "toys.wished");
    CHECK(gradient(y, x) == 2);
    CHECK(gradient(PluginFunction("toy.pinned").first({&x}), x) == 2);
    pin_kernels("toy.pinned", "toys.saver");
    CHECK(gradient(y, x) == 1);  // the backward kernel of the call's own variant
    pin_kernels("toy.pinned", "");
    CHECK(gradient(y, x) == 1);
    CHECK(gradient(PluginFunction("toy.pinned").first({&x}), x) == 1);
}

TEST_CASE("a kernel that declines leaves the gradient to be added to") {
    toys::Plugin a("toys.adds"), b("toys.declines");
    a.function("toy.declined", {{"x"}}, {{"y"}}, toys::infer_same);
    a.kernel("toy.declined", say<1>);
    const auto counting = [](catena_ctx* ctx, const catena_call* c) {
        toys::seen("toy.declined").adds += c->req[0] == CATENA_REQ_ADD;
        return say_back<5>(ctx, c);
    };
    a.kernel("toy.declined", counting, CATENA_PHASE_BACKWARD).flags |= CATENA_KERNEL_ADDS;
    a.add();
    auto& unwilling = b.kernel("toy.declined", say_back<2>, CATENA_PHASE_BACKWARD);
    unwilling.flags |= CATENA_KERNEL_ADDS;
    unwilling.priority = 300;
    unwilling.supports = [](catena_ctx*, const catena_call*) -> std::int32_t { return 0; };
    b.add();
    const Variable x(floats({0}));
    const Variable y = PluginFunction("toy.declined").first({&x});
    toys::seen("toy.declined").clear();
    y.backward();
    y.backward();
    CHECK(values(x.grad()) == Values{10});
    CHECK(toys::seen("toy.declined").adds == 1);
}

TEST_CASE("extensions: a pinned plugin's table comes first, lists handed out stay") {
    static const char id[] = "toy.wheel/1";
    CHECK_THROWS_WITH_AS(pin_kernels(id, "toys.wheel-2"),
                         doctest::Contains("no plugin has the function or extension toy.wheel/1"),
                         PluginError);
    CHECK(tables(id).empty());
    toys::Plugin a("toys.wheel-1"), b("toys.wheel-2"), c("toys.wheel-3");
    a.extension(id, "toy", 300, &numbers[1]);
    b.extension(id, "toy", 200, &numbers[2]);
    b.extension(id, "vault", 100, &numbers[2]);
    c.extension(id, "toy", 200, &numbers[3]);
    c.extension(id, "vault", 200, &numbers[3]);
    a.add();
    b.add();
    const auto before = Device::get("toy").extensions(id);
    const void* const* raw = [] {
        catena_ctx ctx;
        ctx.device = Device::get("toy").state();
        return host_table().extensions(&ctx, id);
    }();
    CHECK(before.data() == raw);
    CHECK(tables(id) == std::vector<int>{1, 2});
    pin_kernels(id, "toys.wheel-2");
    CHECK(tables(id) == std::vector<int>{2, 1});
    CHECK(before.size() == 2);
    CHECK(before[0] == &numbers[1]);  // the list returned earlier is unchanged
    CHECK(raw[2] == nullptr);
    c.add();
    CHECK(tables(id) == std::vector<int>{2, 1, 3});
    CHECK(tables(id, "vault") == std::vector<int>{2, 3});
    pin_kernels(id, "toys.wheel-3");  // the pin holds for every device
    CHECK(tables(id) == std::vector<int>{3, 1, 2});
    CHECK(tables(id, "vault") == std::vector<int>{3, 2});
    pin_kernels(id, "toys.nobody");
    CHECK(tables(id) == std::vector<int>{1, 2, 3});
    pin_kernels(id, "");
    CHECK(tables(id) == std::vector<int>{1, 2, 3});
    CHECK_THROWS_AS((void)Device().extensions(id), InvalidError);
}

// The next test case runs this one in a separate process.
TEST_CASE("pins of the environment" * doctest::skip()) {
    toys::Plugin early("toys.early"), late("toys.late"), functions("toys.owner");
    early.kernel("toy.wish", say<1>);
    early.extension("toy.wish/1", "toy", 300, &numbers[1]);
    early.add();
    functions.function("toy.wish", {{"x"}}, {{"y"}}, toys::infer_same);
    functions.add();
    const Variable x(floats({0}));
    CHECK(values(PluginFunction("toy.wish").first({&x}).data()) == Values{1});
    late.kernel("toy.wish", say<2>).priority = 0;
    late.extension("toy.wish/1", "toy", 100, &numbers[2]);
    late.add();
    CHECK(values(PluginFunction("toy.wish").first({&x}).data()) == Values{2});
    CHECK(tables("toy.wish/1") == std::vector<int>{2, 1});
    pin_kernels("toy.wish", "");
    CHECK(values(PluginFunction("toy.wish").first({&x}).data()) == Values{1});
    toys::Plugin other("toys.other"), pinned("toys.pinned");
    other.function("catena.wish", {{"x"}}, {{"y"}}, toys::infer_same);
    other.kernel("catena.wish", say<1>).priority = 300;
    other.add();
    pinned.kernel("catena.wish", say<2>);
    pinned.add();
    CHECK(values(PluginFunction("catena.wish").first({&x}).data()) == Values{2});
}

TEST_CASE("CATENA_PIN: in any order, what fits nothing is said once") {
    std::string output;
    CHECK(toys::run_alone("pins of the environment", "CATENA_PIN",
                          "toy.wish/1=toys.late,,toy.wish=toys.late,nonsense,toy.add=toys.nobody,"
                          "toy.mul=toys.functions,toy.mul=toys.devices,wish=toys.pinned",
                          &output) == 0);
    INFO(output);
    const auto times = [&](const std::string& text) {
        int n = 0;
        for (std::size_t at = 0; (at = output.find(text, at)) != output.npos; ++at) ++n;
        return n;
    };
    CHECK(times("catena warning: CATENA_PIN: nonsense: expected FUNCTION=PLUGIN or "
                "EXTENSION=PLUGIN") == 1);
    CHECK(times("CATENA_PIN: toy.add=toys.nobody: no plugin of that id is loaded so far") == 1);
    CHECK(times("CATENA_PIN: toy.wish=toys.late: no plugin so far has a function or an extension "
                "of that name") == 1);
    CHECK(times("CATENA_PIN: toy.mul=toys.devices: that plugin has nothing for it so far") == 1);
    CHECK(times("CATENA_PIN: ") == 6);
}
