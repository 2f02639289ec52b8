// Tests of calls that run on another device than their arrays, which requires a fallback.
#include "toys.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

namespace {

catena_status doubled(catena_ctx*, const catena_call* c) {
    for (std::int64_t i = 0; i < toys::count(*c->y[0]); ++i)
        put(*c->y[0], i, 2 * get(*c->x[0], i), c->req[0]);
    return CATENA_OK;
}
catena_status doubled_back(catena_ctx*, const catena_call* c) {
    for (std::int64_t i = 0; i < toys::count(*c->gx[0]); ++i)
        put(*c->gx[0], i, 2 * get(*c->gy[0], i), c->req[0]);
    return CATENA_OK;
}
// y = x^2; saves x for the backward kernel.
catena_status square_saving(catena_ctx*, const catena_call* c) {
    for (std::int64_t i = 0; i < toys::count(*c->y[0]); ++i) {
        const double x = get(*c->x[0], i);
        put(*c->y[0], i, x * x);
        put(*c->saved[0], i, x);
    }
    return CATENA_OK;
}
catena_status square_back(catena_ctx*, const catena_call* c) {
    for (std::int64_t i = 0; i < toys::count(*c->gx[0]); ++i)
        put(*c->gx[0], i, 2 * get(*c->saved[0], i) * get(*c->gy[0], i));
    return CATENA_OK;
}
catena_status refuse(catena_ctx* ctx, const catena_call*) {
    return toys::fail(ctx, CATENA_E_VALUE, "[toy.refusing] x: expected another");
}
catena_status count_up(catena_ctx*, const catena_call* c) {
    for (std::int64_t i = 0; i < toys::count(*c->x[0]); ++i) {
        auto& x = *const_cast<catena_tensor*>(c->x[0]);
        put(x, i, get(x, i) + 1);
        put(*c->y[0], i, 0);
    }
    return CATENA_OK;
}
// Returns two elements; the function has no inputs.
catena_status infer_pair(catena_ctx*, const catena_value*, const catena_meta* const*, std::uint32_t,
                         catena_meta* const* y, std::uint32_t) {
    y[0]->ndim = 1;
    y[0]->shape[0] = 2;
    y[0]->dtype = to_abi(Dtype::float32);
    return CATENA_OK;
}

Device vault() { return Device::get("vault:0"); }

// "toy.away": kernels only on "toy". "toy.half": forward on both devices, backward only on "toy".
void add_functions() {
    static const bool done = [] {
        toys::Plugin plugin("toys.fallback");
        for (const char* name : {"toy.away", "toy.half", "toy.saving", "toy.refusing"})
            plugin.function(name, {{"x"}}, {{"y"}}, toys::infer_same);
        plugin.function("toy.counter", {{"x", CATENA_PORT_MUTATED}}, {{"y"}}, toys::infer_same)
            .flags |= CATENA_FUNCTION_NOT_DIFFERENTIABLE;
        for (const char* name : {"toy.away", "toy.half"}) {
            plugin.kernel(name, doubled).flags |= CATENA_KERNEL_ADDS;
            plugin.kernel(name, doubled_back, CATENA_PHASE_BACKWARD).flags |= CATENA_KERNEL_ADDS;
        }
        plugin.kernel("toy.half", doubled, CATENA_PHASE_FORWARD, "vault");
        catena_kernel& forward = plugin.kernel("toy.saving", square_saving);
        catena_kernel& backward = plugin.kernel("toy.saving", square_back, CATENA_PHASE_BACKWARD);
        forward.n_saved = backward.n_saved = 1;
        forward.variant = backward.variant = "v";
        forward.plan = [](catena_ctx*, const catena_call* call, catena_plan* plan) {
            catena_meta& m = *plan->saved[0];
            m.ndim = call->x[0]->dl.ndim;
            m.dtype = call->x[0]->dl.dtype;
            for (int d = 0; d < m.ndim; ++d) m.shape[d] = call->x[0]->dl.shape[d];
            return catena_status{CATENA_OK};
        };
        plugin.kernel("toy.refusing", refuse);
        plugin.function("toy.pair", {}, {{"y"}}, infer_pair).flags |=
            CATENA_FUNCTION_NOT_DIFFERENTIABLE;
        plugin.kernel("toy.pair", toys::say<7>);
        plugin.function("toy.made_pair", {{"x"}}, {{"y"}}, toys::infer_same).gradient =
            [](catena_ctx* ctx, const catena_gradient_call* c) {
                c->gx[0] = toys::call(ctx, "toy.pair", {});
                return c->gx[0] ? catena_status{CATENA_OK} : catena_status{CATENA_E_INTERNAL};
            };
        plugin.kernel("toy.made_pair", doubled);
        plugin.kernel("toy.counter", count_up);
        plugin.add();
        return true;
    }();
    (void)done;
}

Variable on_vault(std::initializer_list<float> numbers) {
    add_functions();
    return Variable(floats(numbers).to(vault()));
}
void backward(const Variable& y, float gy) {
    y.set_grad(Array::full(y.shape(), gy, Dtype::float32, vault()));
    y.backward();
}

}  // namespace

TEST_CASE("a call without a kernel is refused, or runs on the device of the scope") {
    const Variable x = on_vault({1, 2});
    const PluginFunction away("toy.away");
    CHECK(what<UnsupportedError>([&] { away.first({&x}); }) ==
          "[toy.away] kernel: expected one for x (2,) float32 on vault:0, got none; there is:\n"
          "  toy toys.fallback: float32, float64\n"
          "  CATENA_FALLBACK=toy or using_fallback runs such calls there");
    const using_fallback scope("toy:1");
    const Variable y = away.first({&x});
    CHECK(y.data().device() == vault());
    CHECK(values(y.data()) == Values{2, 4});
    backward(y, 3);
    CHECK(x.grad().device() == vault());
    CHECK(values(x.grad()) == Values{6, 6});
}

TEST_CASE("gradients add to what is there, on the device of the variable") {
    const Variable x = on_vault({1, 2});
    const using_fallback scope("toy:0");
    const PluginFunction away("toy.away");
    backward(away.first({&x}), 1);
    backward(away.first({&x}), 10);
    CHECK(values(x.grad()) == Values{22, 22});
    const Variable y = away.first({&x});
    x.cleargrad();
    backward(away.first({&y}), 1);
    CHECK(values(x.grad()) == Values{4, 4});
}

TEST_CASE("a backward alone without a kernel runs elsewhere, too") {
    const Variable x = on_vault({1, 2});
    const Variable y = PluginFunction("toy.half").first({&x});  // runs on the vault itself
    CHECK(what<NotDifferentiableError>([&] {
              backward(y, 1);
          }).find("[toy.half] backward: no kernel for it on vault:0") == 0);
    const using_fallback scope("toy:0");
    backward(y, 5);
    CHECK(x.grad().device() == vault());
    CHECK(values(x.grad()) == Values{10, 10});
}

TEST_CASE("saved state stays where it was made") {
    const Variable x = on_vault({1, 2, 3});
    Variable y;
    {
        const using_fallback scope("toy:1");
        y = PluginFunction("toy.saving").first({&x});
        CHECK(values(y.data()) == Values{1, 4, 9});
    }
    backward(y, 1);  // uses the call's device: no fallback is set now
    CHECK(values(x.grad()) == Values{2, 4, 6});
}

TEST_CASE("what a call writes in place comes back") {
    const Variable x = on_vault({1, 2});
    const using_fallback scope("toy:0");
    PluginFunction("toy.counter").first({&x});
    CHECK(values(x.data()) == Values{2, 3});
}

TEST_CASE("a call without inputs is made on the current device") {
    add_functions();
    const PluginFunction pair("toy.pair");
    {
        const using_device scope("toy:1");
        const Array y = pair.first({}).data();
        CHECK(y.device() == Device::get("toy:1"));
        CHECK(y.body()->meta.device_type == y.body()->tensor.dl.device_type);
        CHECK(values(y) == Values{7, 7});
        CHECK(pair.forward(std::span<const Array>()).at(0).device() == Device::get("toy:1"));
    }
    const using_device scope(vault());
    CHECK(what<UnsupportedError>([&] {
              pair.first({});
          }).find("[toy.pair] kernel: expected one for no inputs on vault:0, got none") == 0);
    const using_fallback elsewhere("toy:0");
    const Array y = pair.first({}).data();
    CHECK(y.device() == vault());
    CHECK(values(y) == Values{7, 7});
    CHECK(Device::current() == vault());
}

TEST_CASE("a call without inputs in a gradient is made on the gradient's device") {
    add_functions();
    const Variable x(floats({1, 2}).to(Device::get("toy:0")));
    const Variable y = PluginFunction("toy.made_pair").first({&x});
    y.set_grad(y.data());
    const using_device scope("toy:1");
    y.backward();
    CHECK(x.grad().device() == Device::get("toy:0"));
    CHECK(values(x.grad()) == Values{7, 7});
}

TEST_CASE("a kernel's refusal is the call's, also from elsewhere") {
    const Variable x = on_vault({1, 2});
    const using_fallback scope("toy:0");
    CHECK(what<ValueError>([&] {
              PluginFunction("toy.refusing").first({&x});
          }).find("[toy.refusing] x: expected another") == 0);
    const using_fallback nowhere("vault:1");  // has no kernel either
    CHECK(what<UnsupportedError>([&] {
              PluginFunction("toy.away").first({&x});
          }).find("[toy.away] kernel: expected one for x (2,) float32 on vault:") == 0);
}

TEST_CASE("random numbers are drawn from the device of the arrays") {
    const Variable x = on_vault({1, 2});
    const Device other = Device::get("toy:1");
    const RandomState unused = random_state(other);
    const using_fallback scope(other);
    set_random_state(vault(), {77, 0});
    const PluginFunction noise("toy.noise");
    CHECK(values(noise.first({&x}).data()) == Values{77, 77});
    CHECK(random_state(vault()).offset == 1);
    CHECK(values(noise.first({&x}).data()) == Values{78, 78});
    CHECK(random_state(other).offset == unused.offset);
    const Variable there(floats({1}).to(other));
    CHECK(values(noise.first({&there}).data())[0] ==
          static_cast<double>(unused.seed % 1000) + static_cast<double>(unused.offset));
    seed(0);
}
