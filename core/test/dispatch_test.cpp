// Tests of kernel selection, and of the errors of calls without a kernel.
#include "toys.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/diagnostics/kernels.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

namespace {

double ran_back(const char* function) {
    const Variable x(floats({1}));
    PluginFunction(function).first({&x}).backward();
    return values(x.grad())[0];
}

}  // namespace

TEST_CASE("priority, then the plugin loaded first, then the pin before both") {
    toys::Plugin first("toys.first"), second("toys.second"), third("toys.third");
    declare(first, "toy.choice");
    first.kernel("toy.choice", say<1>);
    first.add();
    second.kernel("toy.choice", say<2>);
    second.kernel("toy.choice", say<20>).priority = 200;
    CHECK(ran("toy.choice") == 1);
    second.add();
    CHECK(ran("toy.choice") == 20);  // plugins added later are used at once
    third.kernel("toy.choice", say<3>).priority = 200;
    third.add();
    CHECK(ran("toy.choice") == 20);
    pin_kernels("toy.choice", "toys.first");
    CHECK(ran("toy.choice") == 1);
    pin_kernels("toy.choice", "toys.third");
    CHECK(ran("toy.choice") == 3);
    pin_kernels("toy.choice", "toys.nobody");  // a pin to an unknown plugin has no effect
    CHECK(ran("toy.choice") == 20);
    pin_kernels("toy.choice", "");
    CHECK(ran("toy.choice") == 20);
    CHECK_THROWS_AS(pin_kernels("toy.none", "toys.first"), PluginError);
}

namespace {

bool read_only(const catena_tensor* t) { return t->flags & CATENA_TENSOR_READONLY; }
catena_status look(catena_ctx* ctx, const catena_call* c) {
    const bool forward = c->phase == CATENA_PHASE_FORWARD;
    bool right = true;
    for (std::uint32_t i = 0; i < c->n_x; ++i) {
        const bool mutated = forward && (c->function->inputs[i]->flags & CATENA_PORT_MUTATED);
        right = right && (!c->x[i] || read_only(c->x[i]) != mutated);
        right = right && (forward || !c->gx[i] || !read_only(c->gx[i]));
    }
    for (std::uint32_t i = 0; i < c->n_y; ++i) {
        right = right && (!c->y[i] || read_only(c->y[i]) != forward);
        right = right && (forward || !c->gy[i] || read_only(c->gy[i]));
    }
    for (std::uint32_t i = 0; i < c->n_saved; ++i) {
        right = right && read_only(c->saved[i]) != forward;
    }
    if (!right) return toys::fail(ctx, CATENA_E_INTERNAL, "a flag is wrong");
    if (forward) {
        for (std::uint32_t i = 0; i < c->n_y; ++i) toys::put(*c->y[i], 0, 1);
    } else {
        for (std::uint32_t i = 0; i < c->n_x; ++i) {
            if (c->gx[i]) toys::put(*c->gx[i], 0, 1, c->req[i]);
        }
    }
    return CATENA_OK;
}

}  // namespace

TEST_CASE("kernels see as read-only what is not theirs to write") {
    toys::Plugin plugin("toys.flags");
    auto& f = plugin.function("toy.flags", {{"x"}, {"z"}}, {{"y"}}, toys::infer_same);
    f.retain_x = 3;
    f.retain_y = 1;
    auto& forward = plugin.kernel("toy.flags", look);
    auto& backward = plugin.kernel("toy.flags", look, CATENA_PHASE_BACKWARD);
    backward.flags |= CATENA_KERNEL_ADDS;
    forward.variant = backward.variant = "v";
    forward.n_saved = backward.n_saved = 1;
    forward.plan = [](catena_ctx*, const catena_call*, catena_plan* plan) -> catena_status {
        plan->saved[0]->ndim = 0;
        plan->saved[0]->dtype = to_abi(Dtype::int32);
        return CATENA_OK;
    };
    auto& update = plugin.function("toy.flags_update", {{"p", CATENA_PORT_MUTATED}, {"g"}}, {},
                                   toys::infer_same);
    update.flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE;
    plugin.kernel("toy.flags_update", look);
    plugin.add();
    const PluginFunction flags("toy.flags");
    const Variable x(floats({1})), z(Array::zeros({1}).copy());
    const Variable shared(x.data().reshape({1}));
    const Variable h = flags.first({&x, &z});
    const Variable y = flags.first({&h, &shared});
    y.backward();
    y.backward();  // accumulates
    h.set_grad(x.grad());
    h.backward();
    const std::vector<Array> of_update = {x.data(), x.grad()};
    PluginFunction("toy.flags_update").forward(of_update);
    PluginFunction("toy.flags_update").forward(of_update);
    flags.first({&x, &x}).backward();
    CHECK(x.grad().item<float>() == 5);
}

TEST_CASE("kernels may come before their function") {
    toys::Plugin kernels("toys.early"), functions("toys.late");
    kernels.kernel("toy.awaited", say<4>);
    kernels.add();
    declare(functions, "toy.awaited");
    functions.add();
    CHECK(ran("toy.awaited") == 4);
}

TEST_CASE("dtypes choose the kernel") {
    toys::Plugin plugin("toys.dtypes");
    declare(plugin, "toy.typed");
    plugin.types(plugin.kernel("toy.typed", say<32>), {{Dtype::float32}});
    plugin.types(plugin.kernel("toy.typed", say<64>), {{Dtype::float64}, {Dtype::int64}});
    plugin.add();
    CHECK(ran("toy.typed") == 32);
    CHECK(ran("toy.typed", doubles({1})) == 64);
    CHECK(ran("toy.typed", Array::zeros({1}, Dtype::int64)) == 64);
    CHECK(what<DtypeError>([] {
              ran("toy.typed", Array::zeros({2, 3}, Dtype::int32));
          }) == "[toy.typed] x: expected float32, float64 or int64, got int32");
}

TEST_CASE("a call without a kernel names the dtype that is wrong, or what goes together") {
    toys::Plugin plugin("toys.pairs");
    const auto declare_pair = [&](const char* name) {
        plugin.function(name, {{"x"}, {"i", 0, "S"}}, {{"y"}}, toys::infer_same);
    };
    const auto kernel = [&](const char* name, const toys::Types& rows, const char* isa = nullptr) {
        auto& k = plugin.kernel(name, say<1>);
        plugin.types(k, rows);
        k.isa = isa;
    };
    const Dtype f4 = Dtype::float32, f8 = Dtype::float64, i4 = Dtype::int32, i8 = Dtype::int64;
    declare_pair("toy.indexed");  // a product of dtypes, also for an instruction set
    for (const char* isa : {"", "toy-v2"}) {
        kernel("toy.indexed", {{f4, i4}, {f8, i8}}, isa);
        kernel("toy.indexed", {{f4, i8}, {f8, i4}}, isa);
    }
    declare_pair("toy.diagonal");
    kernel("toy.diagonal", {{f4, i4}, {f8, i8}, {f8, i4}, {i4, i4}});
    declare_pair("toy.far");
    kernel("toy.far", {{f4, i4}}, "toy-v3");
    plugin.add();
    const auto run = [](const char* name, Dtype x, Dtype i) {
        return [=] {
            (void)PluginFunction(name).forward({{Array::zeros({1}, x), Array::zeros({1}, i)}});
        };
    };
    run("toy.indexed", f4, i8)();
    CHECK(what<DtypeError>(run("toy.indexed", f4, f4)) ==
          "[toy.indexed] i: expected int32 or int64, got float32");
    CHECK(what<DtypeError>(run("toy.indexed", Dtype::float16, f4)) ==
          "[toy.indexed] x: expected float32 or float64, got float16");
    // The error lists the dtypes of one input that have a kernel for the dtype of the other.
    CHECK(what<DtypeError>(run("toy.diagonal", f8, Dtype::uint8)) ==
          "[toy.diagonal] i: expected int32 or int64, got uint8");
    CHECK(what<DtypeError>(run("toy.diagonal", Dtype::uint8, i8)) ==
          "[toy.diagonal] x: expected float64, got uint8");
    CHECK(
        what<UnsupportedError>(run("toy.diagonal", f4, i8)) ==
        "[toy.diagonal] kernel: expected one for x (1,) float32, i (1,) int64 on toy:0, got none; "
        "there is:\n  toy toys.pairs: T=float32|float64|int32, S=int32 or T=float64, S=int64");
    CHECK(what<UnsupportedError>(run("toy.far", f4, i4)) ==
          "[toy.far] kernel: expected one for x (1,) float32, i (1,) int32 on toy:0, got none; "
          "there is:\n  toy toys.pairs: T=float32, S=int32 (needs toy-v3)");
    const auto text = [](const char* name) {
        return dtypes_to_string(function_descriptor(name), kernels_of(name));
    };
    CHECK(text("toy.indexed") == "T=float32|float64, S=int32|int64");
}

TEST_CASE("many dtypes and settings: more than the cache of a function holds") {
    toys::Plugin plugin("toys.many");
    declare(plugin, "toy.many");
    for (int i = 0; i < dtype_count; ++i) {
        if (static_cast<Dtype>(i) == Dtype::float16 || static_cast<Dtype>(i) == Dtype::bfloat16 ||
            static_cast<Dtype>(i) == Dtype::uint8 || static_cast<Dtype>(i) == Dtype::bool8) {
            continue;  // toy kernels cannot write these dtypes
        }
        for (const char* device : {"toy", "vault"}) {
            plugin.types(plugin.kernel("toy.many", say<1>, CATENA_PHASE_FORWARD, device),
                         {{static_cast<Dtype>(i)}});
        }
    }
    plugin.add();
    for (int round = 0; round < 50; ++round) {
        const using_config scope(&Config::deterministic, round % 2);
        for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::int32, Dtype::int64}) {
            for (const char* device : {"toy:0", "vault:0", "toy:1"}) {
                const Array x = Array::zeros({1}, dtype, Device::get(device));
                CHECK(values(PluginFunction("toy.many").forward({{x}})[0]) == Values{1});
            }
        }
    }
    FunctionEntry& entry = PluginFunction("toy.many").entry();
    const Selection& once =
        entry.select(selection_key(1, false, static_cast<std::uint64_t>(Dtype::float32)),
                     *Device::get("toy").state());
    const Selection& again =
        entry.select(selection_key(1, false, static_cast<std::uint64_t>(Dtype::float32)),
                     *Device::get("toy").state());
    CHECK(&once == &again);
}

TEST_CASE("an instruction set that the device lacks is not chosen") {
    toys::Plugin plugin("toys.isa");
    declare(plugin, "toy.isa");
    plugin.kernel("toy.isa", say<1>);
    plugin.kernel("toy.isa", say<2>).isa = "toy-v2";
    plugin.kernel("toy.isa", say<3>).isa = "toy-v3";
    plugin.add();
    CHECK(ran("toy.isa") == 1);  // equal priority: the plugin's first kernel
    const auto list = kernels_of("toy.isa");
    REQUIRE(list.size() == 3);
    CHECK(list[1].isa == "toy-v2");
    CHECK(list[1].plugin == "toys.isa");
    CHECK(list[1].dtypes == std::vector<std::vector<std::string>>{{"float32"}, {"float64"}});
    toys::Plugin faster("toys.isa-faster");
    auto& v2 = faster.kernel("toy.isa", say<2>);
    v2.isa = "toy-v2";
    v2.priority = 101;
    auto& v3 = faster.kernel("toy.isa", say<3>);
    v3.isa = "toy-v3";
    v3.priority = 102;
    faster.add();
    CHECK(ran("toy.isa") == 2);
}

TEST_CASE("versions: a kernel for another version of the function is not chosen") {
    toys::Plugin plugin("toys.versions");
    plugin.function("toy.version", {{"x"}}, {{"y"}}, toys::infer_same).version = 3;
    const auto kernel = [&](auto run, std::uint32_t from, std::uint32_t to, int priority) {
        auto& k = plugin.kernel("toy.version", run);
        k.version_min = from;
        k.version_max = to;
        k.priority = priority;
    };
    kernel(say<1>, 1, 2, 300);
    kernel(say<2>, 4, 9, 200);
    kernel(say<3>, 2, 3, 100);
    plugin.add();
    CHECK(ran("toy.version") == 3);
}

TEST_CASE("under deterministic only deterministic kernels are chosen") {
    toys::Plugin plugin("toys.deterministic");
    declare(plugin, "toy.exact");
    plugin.kernel("toy.exact", say<1>);
    auto& fast = plugin.kernel("toy.exact", say<2>);
    fast.flags = 0;
    fast.priority = 200;
    plugin.kernel("toy.exact", say_back<1>, CATENA_PHASE_BACKWARD);
    auto& fast_back = plugin.kernel("toy.exact", say_back<2>, CATENA_PHASE_BACKWARD);
    fast_back.flags = 0;
    fast_back.priority = 200;
    plugin.add();
    CHECK(ran("toy.exact") == 2);
    CHECK(ran_back("toy.exact") == 2);
    const Variable x(floats({1}));
    const Variable before = PluginFunction("toy.exact").first({&x});
    const using_config scope(&Config::deterministic, true);
    CHECK(ran("toy.exact") == 1);
    CHECK(ran_back("toy.exact") == 1);
    before.backward();
    CHECK(values(x.grad()) == Values{1});
}

TEST_CASE("supports() and plan() may decline: the next kernel takes over, and starts clean") {
    toys::Plugin plugin("toys.decline");
    declare(plugin, "toy.decline");
    auto& small = plugin.kernel("toy.decline", say<1>);
    small.priority = 400;
    small.supports = [](catena_ctx* ctx, const catena_call* c) -> std::int32_t {
        if (c->x[0]->dl.shape[0] == 1) return 1;
        return toys::fail(ctx, CATENA_E_SHAPE, "too large for me") == CATENA_OK;
    };
    auto& planned = plugin.kernel("toy.decline", say<2>);
    planned.priority = 300;
    planned.variant = "planned";
    planned.n_saved = 1;
    planned.plan = [](catena_ctx* ctx, const catena_call* c, catena_plan* plan) -> catena_status {
        if (c->x[0]->dl.shape[0] > 2) return toys::fail(ctx, CATENA_E_UNSUPPORTED, "nor for me");
        plan->saved[0]->ndim = 0;
        plan->saved[0]->dtype = to_abi(Dtype::float32);
        return CATENA_OK;
    };
    auto& last =
        plugin.kernel("toy.decline", [](catena_ctx* ctx, const catena_call* c) -> catena_status {
            if (c->n_saved || c->scratch) return toys::fail(ctx, CATENA_E_INTERNAL, "left over");
            if (c->x[0]->dl.shape[0] > 3) return toys::fail(ctx, CATENA_E_VALUE, "x: what I say");
            return say<3>(ctx, c);
        });
    last.priority = 0;
    auto& planned_back = plugin.kernel("toy.decline", say_back<2>, CATENA_PHASE_BACKWARD);
    planned_back.variant = "planned";
    planned_back.n_saved = 1;
    plugin.kernel(
        "toy.decline",
        [](catena_ctx* ctx, const catena_call* c) -> catena_status {
            if (c->n_saved) return toys::fail(ctx, CATENA_E_INTERNAL, "left over");
            return say_back<3>(ctx, c);
        },
        CATENA_PHASE_BACKWARD);
    plugin.add();
    CHECK(ran("toy.decline", floats({1})) == 1);
    CHECK(ran("toy.decline", floats({1, 2})) == 2);
    CHECK(ran("toy.decline", floats({1, 2, 3})) == 3);
    const Variable x(floats({1, 2, 3}));
    const Variable y = PluginFunction("toy.decline").first({&x});
    y.set_grad(floats({1, 1, 1}));
    y.backward();
    CHECK(values(x.grad()) == Values{3, 3, 3});
    CHECK_THROWS_WITH_AS(ran("toy.decline", floats({1, 2, 3, 4})),
                         "[toy.decline] x: what I say (x (4,) float32)", ValueError);
}

TEST_CASE("when all decline, the call says what there was") {
    toys::Plugin plugin("toys.none");
    declare(plugin, "toy.unwilling");
    plugin.kernel("toy.unwilling", say<1>).supports = [](catena_ctx*, const catena_call*) {
        return 0;
    };
    declare(plugin, "toy.bodiless");
    plugin.add();
    CHECK(what<UnsupportedError>([] { ran("toy.unwilling"); }) ==
          "[toy.unwilling] kernel: expected one for x (2,) float32 on toy:0, got none whose "
          "supports() says yes; there is:\n  toy toys.none: float32, float64");
    CHECK(what<UnsupportedError>([] { ran("toy.bodiless"); }) ==
          "[toy.bodiless] kernel: expected one for x (2,) float32 on toy:0, got none; there is: "
          "nothing");
    const Array hidden = floats({1}).to(Device::get("vault"));
    CHECK(what<UnsupportedError>([&] { ran("toy.twice", hidden); })
              .find("expected one for x (1,) float32 on vault:0, got none; there is:\n  toy "
                    "toys.functions: ") != std::string::npos);
}

TEST_CASE("a variant pairs with the backward of the same plugin, whatever the priorities") {
    toys::Plugin a("toys.variant-a"), b("toys.variant-b");
    declare(a, "toy.paired");
    const auto pair = [](toys::Plugin& plugin, auto forward, auto backward, int priority) {
        auto& f = plugin.kernel("toy.paired", forward);
        f.variant = "same name";
        f.priority = priority;
        auto& g = plugin.kernel("toy.paired", backward, CATENA_PHASE_BACKWARD);
        g.variant = "same name";
        g.priority = 300 - priority;
    };
    pair(a, say<1>, say_back<1>, 100);
    pair(b, say<2>, say_back<2>, 200);
    a.add();
    CHECK(ran_back("toy.paired") == 1);
    b.add();
    CHECK(ran("toy.paired") == 2);
    CHECK(ran_back("toy.paired") == 2);
    pin_kernels("toy.paired", "toys.variant-a");
    CHECK(ran("toy.paired") == 1);
    CHECK(ran_back("toy.paired") == 1);
    // A kernel whose variant has no backward kernel only runs in calls without a gradient.
    toys::Plugin c("toys.variant-c");
    auto& alone = c.kernel("toy.paired", say<3>);
    alone.variant = "alone";
    alone.priority = 900;
    c.add();
    pin_kernels("toy.paired", "");
    CHECK(ran("toy.paired") == 3);
    CHECK(ran_back("toy.paired") == 2);
}

TEST_CASE("a variant's saved tensors and retained sets reach its backward") {
    const Variable x(doubles({1, -2, 3}));
    const Variable y = PluginFunction("toy.gate").first({&x});
    CHECK(values(y.data()) == Values{1, 0, 3});
    y.set_grad(doubles({10, 20, 30}));
    toys::seen("toy.gate").clear();
    y.backward();
    CHECK(toys::seen("toy.gate").n_saved == 1);
    CHECK(values(x.grad()) == Values{10, 0, 30});
    y.backward();  // the saved tensor is kept
    CHECK(values(x.grad()) == Values{20, 0, 60});

    toys::Plugin plugin("toys.retaining");
    declare(plugin, "toy.retaining");  // the function itself retains nothing
    auto& forward = plugin.kernel("toy.retaining", say<2>);
    auto& backward = plugin.kernel(
        "toy.retaining",
        [](catena_ctx*, const catena_call* c) -> catena_status {
            for (std::int64_t i = 0; i < toys::count(*c->gx[0]); ++i) {
                toys::put(*c->gx[0], i, toys::get(*c->x[0], i) + toys::get(*c->y[0], i), c->req[0]);
            }
            return CATENA_OK;
        },
        CATENA_PHASE_BACKWARD);
    forward.variant = backward.variant = "both";
    forward.retain_x = backward.retain_x = 1;
    forward.retain_y = backward.retain_y = 1;
    plugin.add();
    const Variable v(doubles({5}));
    PluginFunction("toy.retaining").first({&v}).backward();
    CHECK(values(v.grad()) == Values{7});
}

TEST_CASE("wrong inputs: function, argument, expected, got") {
    const Variable a(floats({1, 2})), b(floats({1})), none;
    const Variable d(doubles({1, 2}));
    const Variable half(a.data().astype(Dtype::float16));
    const Variable far(a.data().to(Device::get("toy:1")));
    const auto call = [](const char* f, std::vector<const Variable*> inputs) {
        return [f, inputs] { (void)PluginFunction(f).first(inputs); };
    };
    CHECK(what<InvalidError>(call("toy.mul", {&a})) == "[toy.mul] inputs: expected 2, got 1");
    CHECK(what<InvalidError>(call("toy.mul", {&a, &a, &a})) ==
          "[toy.mul] inputs: expected 2, got 3");
    CHECK(what<InvalidError>(call("toy.affine", {&a})) ==
          "[toy.affine] inputs: expected 2 to 3, got 1");
    CHECK(what<InvalidError>(call("toy.total", {&a})) ==
          "[toy.total] inputs: expected 2 or more, got 1");
    CHECK(what<InvalidError>(call("toy.mul", {&a, &none})) ==
          "[toy.mul] b: expected an array, got none");
    CHECK(what<InvalidError>(call("toy.mul", {nullptr, &a})) ==
          "[toy.mul] a: expected an array, got none");
    CHECK(what<InvalidError>(call("toy.total", {&a, &a, &none})) ==
          "[toy.total] rest[1]: expected an array, got none");
    CHECK(what<DtypeError>(call("toy.mul", {&a, &d})) ==
          "[toy.mul] b: expected float32 as a, got float64");
    CHECK(what<DtypeError>(call("toy.total", {&d, &d, &a})) ==
          "[toy.total] rest[1]: expected float64 as first, got float32");
    CHECK(what<DeviceError>(call("toy.mul", {&a, &far})) ==
          "[toy.mul] b: expected toy:0 as a, got toy:1");
    CHECK(what<ShapeError>(call("toy.mul", {&a, &b})) ==
          "[toy.mul] input 1: expected shape (2,), got (1,) (a (2,) float32, b (1,) float32)");
    CHECK(what<DtypeError>(call("toy.mul", {&half, &half})).find("[toy.mul] a: expected float32") ==
          0);
    CHECK(what<InvalidError>([&] { (void)PluginFunction("toy.mul").forward({{a.data()}}); }) ==
          "[toy.mul] inputs: expected 2, got 1");
    CHECK(what<InvalidError>([&] {
              (void)PluginFunction("toy.mul").forward({{a.data(), Array()}});
          }) == "[toy.mul] b: expected an array, got none");
    CHECK(
        what<ShapeError>([&] {
            (void)PluginFunction("toy.view", {{"shape", std::vector<std::int64_t>{5}}}).first({&a});
        }) == "[toy.view] y: expected a shape of 2 elements as in x (2,) float32, got (5,)");
    toys::fail_forward = true;
    CHECK(what<ValueError>(call("toy.fragile", {&a})) ==
          "[toy.fragile] x: it broke (x (2,) float32)");
}

TEST_CASE("a function without outputs mutates its input") {
    const Variable w(floats({1, 2}));
    const Array memory = w.data();
    const Variable g = as_variable(floats({10, 20}));
    CHECK(PluginFunction("toy.update", {{"lr", 0.5}})({&w, &g}).empty());
    CHECK(values(memory) == Values{-4, -8});
    CHECK(PluginFunction("toy.update", {{"lr", 0.5}}).forward({{memory, g.data()}}).empty());
    CHECK(values(w.data()) == Values{-9, -18});
    CHECK(what<InvalidError>([&] {
              (void)PluginFunction("toy.update", {{"lr", 1}}).first({&w, &g});
          }) == "[toy.update] first(): expected an output, it has none");
}

TEST_CASE("calls work on every device") {
    const using_device scope("vault:1");
    const Variable x(doubles({3}));
    CHECK(x.device().name() == "vault:1");
    const Variable y = PluginFunction("toy.mul").first({&x, &x});
    y.backward();
    CHECK(y.device().name() == "vault:1");
    CHECK(values(x.grad()) == Values{6});
    const Variable z = PluginFunction("toy.add").first({&y, &x});
    z.backward();  // accumulates: x gets gradients from y and from z
    CHECK(values(x.grad()) == Values{6 + 7});
    CHECK(x.grad().device().name() == "vault:1");
}

TEST_CASE("statuses that a plugin invents still become errors") {
    toys::Plugin plugin("toys.statuses");
    declare(plugin, "toy.status");
    plugin.kernel("toy.status", [](catena_ctx* ctx, const catena_call* c) -> catena_status {
        const auto status = static_cast<catena_status>(toys::get(*c->x[0], 0));
        return c->x[0]->dl.shape[0] == 2 ? toys::fail(ctx, status, "[elsewhere] told") : status;
    });
    plugin.add();
    CHECK(what<Error>([] { ran("toy.status", floats({77})); }) ==
          "[toy.status] failed with status 77 (x (1,) float32) (status 77)");
    CHECK(what<NotDifferentiableError>([] {
              ran("toy.status", floats({8, 0}));
          }) == "[elsewhere] told (x (2,) float32)");
    CHECK(what<InternalError>([] { ran("toy.status", floats({7})); }) ==
          "[toy.status] failed with status 7 (x (1,) float32)");
    CHECK(what<MemoryError>([] { ran("toy.status", floats({5})); }) != "nothing");
    CHECK(what<InvalidError>([] { ran("toy.status", floats({1})); }) != "nothing");
}

TEST_CASE("an inference that gives a type_var two dtypes is told, not obeyed") {
    toys::Plugin plugin("toys.bad-inference");
    plugin.function("toy.two_types", {{"x"}}, {{"a", 0, "U"}, {"b", 0, "U"}},
                    [](catena_ctx*, const catena_value*, const catena_meta* const*, std::uint32_t,
                       catena_meta* const* y, std::uint32_t) -> catena_status {
                        y[0]->ndim = y[1]->ndim = 0;
                        y[0]->dtype = to_abi(Dtype::float32);
                        y[1]->dtype = to_abi(Dtype::int32);
                        return CATENA_OK;
                    });
    plugin.function("toy.strange_type", {{"x"}}, {{"a", 0, "U"}},
                    [](catena_ctx*, const catena_value*, const catena_meta* const*, std::uint32_t,
                       catena_meta* const* y, std::uint32_t) -> catena_status {
                        y[0]->ndim = 0;
                        y[0]->dtype = {CATENA_CODE_FLOAT, 8, 1};
                        return CATENA_OK;
                    });
    plugin.add();
    CHECK(what<DtypeError>([] {
              (void)PluginFunction("toy.two_types").forward({{floats({1})}});
          }) == "[toy.two_types] b: expected float32 as a, got int32");
    CHECK(what<DtypeError>(
              [] { (void)PluginFunction("toy.strange_type").forward({{floats({1})}}); }) ==
          "[toy.strange_type] a: expected a dtype of catena, got dtype(code 2, 8 bits, 1 lanes)");
}

TEST_CASE("an inference that gives an impossible shape is told, not obeyed") {
    toys::Plugin plugin("toys.bad-shapes");
    auto& f =
        plugin.function("toy.bad_shape", {{"x"}}, {{"y"}},
                        [](catena_ctx*, const catena_value* attrs, const catena_meta* const* x,
                           std::uint32_t, catena_meta* const* y, std::uint32_t) -> catena_status {
                            y[0]->dtype = x[0]->dtype;
                            y[0]->ndim = static_cast<std::int32_t>(attrs[0].v.i);
                            for (auto& extent : y[0]->shape) extent = attrs[1].v.i;
                            return CATENA_OK;
                        });
    plugin.attribute(f, "ndim", CATENA_ATTR_INT);
    plugin.attribute(f, "extent", CATENA_ATTR_INT);
    plugin.kernel("toy.bad_shape", say<1>);
    plugin.add();
    const auto call = [](std::int64_t ndim, std::int64_t extent) {
        return what<ShapeError>([&] {
            (void)PluginFunction("toy.bad_shape", {{"ndim", ndim}, {"extent", extent}})
                .forward({{floats({1})}});
        });
    };
    const std::string begin = "[toy.bad_shape] y: expected a shape that an array can have, got ";
    CHECK(call(1, -3) == begin + "(-3,) (x (1,) float32)");
    CHECK(call(2, -1) == begin + "(-1, -1) (x (1,) float32)");
    CHECK(call(-1, 1) == begin + "-1 axes (x (1,) float32)");
    CHECK(call(17, 1) == begin + "17 axes (x (1,) float32)");
    CHECK(call(2, std::int64_t{1} << 40) ==
          begin + "(1099511627776, 1099511627776) (x (1,) float32)");
    CHECK(call(16, 1) == "nothing");
    CHECK(call(3, 0) == "nothing");
}
