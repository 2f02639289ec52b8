// Tests of plugin errors outside its table: kernels that fit no function, sizes that exceed any memory.
#include "toys.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/core/tables.hpp>
#include <catena/diagnostics/kernels.hpp>
#include <catena/loader/plugins.hpp>

#include <doctest/doctest.h>

using namespace catena;
using namespace toys;

TEST_CASE("kernels that came before their function and do not fit it are left out") {
    toys::Plugin kernels("toys.early-misfits"), functions("toys.late-fit");
    auto& rows = kernels.kernel("toy.misfit", say<1>);
    rows.priority = 300;
    kernels.types(rows, toys::Types(17, {Dtype::float32}));  // one type variable has 16 dtypes
    auto& retains = kernels.kernel("toy.misfit", say<2>);
    retains.priority = 200;
    retains.variant = "v";
    retains.retain_x = 2;  // the function has only one input
    kernels.kernel("toy.misfit", say<3>);
    kernels.add();
    declare(functions, "toy.misfit");
    functions.add();
    CHECK(ran("toy.misfit") == 3);
    CHECK(kernels_of("toy.misfit").size() == 1);
}

TEST_CASE("kernels for a function that no plugin has are in the report, with what was meant") {
    const auto reported = [](const std::string& plugin) {
        for (const KernelsWithoutFunction& k : plugin_report().kernels_without_function)
            if (k.plugin == plugin) return to_string(k);
        return std::string("nothing");
    };
    toys::Plugin kernels("toys.slip"), functions("toys.meant");
    declare(functions, "toy.winding");
    functions.add();
    kernels.kernel("toy.windnig", say<4>);
    kernels.kernel("toy.windnig", say_back<4>, CATENA_PHASE_BACKWARD);
    kernels.add();
    CHECK(reported("toys.slip") ==
          "toys.slip: it has kernels for toy.windnig, a function that no plugin has; did you mean "
          "toy.winding?");
    CHECK(to_string(plugin_report()).find(reported("toys.slip")) != std::string::npos);
    CHECK(what<UnsupportedError>([] { ran("toy.winding"); }) ==
          "[toy.winding] kernel: expected one for x (2,) float32 on toy:0, got none; there is:\n"
          "  toys.slip has kernels for toy.windnig, a function that no plugin has");
    toys::Plugin late("toys.late-slip");
    declare(late, "toy.windnig");
    late.add();
    CHECK(reported("toys.slip") == "nothing");
}

TEST_CASE("sizes of a plan that no memory has are told, not rounded") {
    static std::uint64_t scratch;
    static catena_dtype saved;
    static std::int64_t extent;
    const auto plan = [](catena_ctx*, const catena_call*, catena_plan* p) -> catena_status {
        p->scratch_bytes = scratch;
        if (p->n_saved == 0) return CATENA_OK;
        p->saved[0]->ndim = 1;
        p->saved[0]->shape[0] = extent;
        p->saved[0]->dtype = saved;
        return CATENA_OK;
    };
    toys::Plugin plugin("toys.plans");
    declare(plugin, "toy.planned");
    auto& forward = plugin.kernel("toy.planned", say<1>);
    forward.plan = plan;
    forward.n_saved = 1;
    auto& backward = plugin.kernel("toy.planned", say_back<1>, CATENA_PHASE_BACKWARD);
    backward.n_saved = 1;
    backward.plan = plan;
    forward.variant = backward.variant = "v";
    plugin.add();
    const auto call = [](std::uint64_t bytes, catena_dtype dtype, std::int64_t n) {
        scratch = bytes;
        saved = dtype;
        extent = n;
        return what<Error>([] { ran("toy.planned"); });
    };
    const catena_dtype float32 = to_abi(Dtype::float32);
    CHECK(call(64, float32, 2) == "nothing");
    const std::string most =
        "[toy.planned] plan(): scratch_bytes: expected at most 1152921504606846976, got ";
    CHECK(call(~std::uint64_t{0}, float32, 2) == most + "18446744073709551615");
    CHECK(call(~std::uint64_t{0} - 62, float32, 2) == most + "18446744073709551553");
    CHECK(call((std::uint64_t{1} << 60) + 1, float32, 2) == most + "1152921504606846977");
    CHECK(call(std::uint64_t{1} << 60, float32, 2).find("toy:0 is full") != std::string::npos);
    CHECK(call(0, {CATENA_CODE_FLOAT, 4, 1}, 2) ==
          "[toy.planned] saved: expected a dtype of 8 to 64 bits, got dtype(code 2, 4 bits, 1 "
          "lanes)");
    CHECK(call(0, {CATENA_CODE_UINT, 16, 1}, 2) == "nothing");  // not an array dtype, but allowed
    CHECK(call(0, {CATENA_CODE_FLOAT, 248, 1}, 2).find("saved: expected a dtype") !=
          std::string::npos);
    CHECK(call(0, to_abi(Dtype::float64), std::int64_t{1} << 59) ==
          "[toy:0] memory: expected at most 1152921504606846976 bytes, got 4611686018427387904");

    scratch = 0;
    saved = float32;
    extent = 2;
    const Variable x(floats({1, 2}));
    const Variable y = PluginFunction("toy.planned").first({&x});
    y.set_grad(floats({1, 1}));
    scratch = ~std::uint64_t{0};
    CHECK(what<MemoryError>([&] { y.backward(); }) == most + "18446744073709551615");
    scratch = 0;
    y.backward();
    CHECK(values(x.grad()) == Values{1, 1});
}

TEST_CASE("an inference cannot move its outputs to another device") {
    toys::Plugin plugin("toys.moves");
    plugin.function("toy.moves", {{"x"}}, {{"y"}},
                    [](catena_ctx*, const catena_value*, const catena_meta* const* x, std::uint32_t,
                       catena_meta* const* y, std::uint32_t) -> catena_status {
                        y[0]->dtype = x[0]->dtype;
                        y[0]->ndim = 0;
                        y[0]->device_type = 999;
                        return CATENA_OK;
                    });
    plugin.kernel("toy.moves", say<1>);
    plugin.add();
    const Array y = PluginFunction("toy.moves").forward({{floats({1})}})[0];
    CHECK(y.body()->meta.device_type == floats({1}).body()->meta.device_type);
}
