// Tests kernels for functions that other plugins describe.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <limits>

using namespace catena::testing;

namespace {

World& world() {
    static World all(OTHERS);
    return all;
}
const Array x = Array::from<float>({-2, -1, 0, 3}, {4});

std::string who(const char* function, const Attrs& attrs = {}, const Options& options = {}) {
    world().forward(function, {x}, attrs, options);
    return world().ran();
}
std::string refusal(const char* function, const std::vector<Array>& inputs,
                    const Attrs& attrs = {}) {
    static World wrong(MISDESCRIBED);
    try {
        wrong.forward(function, inputs, attrs);
    } catch (const Failure& failure) {
        return failure.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("a formula replaces another plugin's: every dtype and instruction set, both phases") {
    CHECK(who("catena.relu") == "org.example.others");
    for (const char* isa : world().isas("catena.relu")) {
        Options options;
        options.isa = isa;
        CHECK(who("catena.relu", {}, options) == "org.example.others");
    }
    world().forget_runs();
    CHECK(conform(world(), "catena.relu").failures() == "");
    std::size_t mine = 0;
    std::size_t phases[2] = {};
    for (const catena_kernel* k : world().kernels_run())
        if (world().under_test(*k)) {
            ++mine;
            ++phases[k->phase];
            CHECK(k->priority >= CATENA_PRIORITY_TUNED);
            CHECK(k->name != nullptr);
        }
    CHECK(phases[0] == phases[1]);
    // Kernels per phase and instruction set: float32, float64, and one for both half dtypes.
    CHECK(mine == 3 * 2 * world().isas("catena.relu").size());
    CHECK(check(world(), {.function = "catena.relu",
                          .inputs = {Array::from<double>({-1, 0.5, 2}, {3})},
                          .expected = {Array::from<double>({0, 0.5, 2}, {3})}}) == "");
}

TEST_CASE("a kernel that supports() some calls leaves the others to the next") {
    CHECK(who("catena.leaky_relu", {set("slope", 0.2)}) == "org.catena.activation");
    CHECK(who("catena.leaky_relu", {set("slope", 0.75)}) == "org.example.others");
    CHECK(check(world(), {.function = "catena.leaky_relu",
                          .inputs = {Array::from<double>({-1, 2}, {2})},
                          .attrs = {set("slope", 0.5)},
                          .expected = {Array::from<double>({-0.5, 2}, {2})}}) == "");
}

TEST_CASE("supports() of a plugin with the default rows: every dtype, halves on copies, too") {
    const Array four = Array::from<double>({-1, 0, 0.5, 2}, {4}),
                one = Array::from<double>({1}, {1});
    const Array expected = Array::from<double>({0.3679, 1, 1.6487, 7.3891}, {4});
    for (const catena_dtype dtype : {dtype_of<float>(), dtype_of<double>(), dtype_of<Float16>()}) {
        const Array y = world().forward("catena.exp", {four.to(dtype)})[0];
        CHECK(world().ran() == "org.example.others");
        CHECK(compare(y, expected.to(dtype), {2e-3, 2e-3}) == "");
        world().forward("catena.exp", {one.to(dtype)});
        CHECK(world().ran() == "org.catena.math");
    }
}

TEST_CASE("a mistake in supports() is an error, and no kernel that is never asked again") {
    const auto run = [](catena_dtype dtype) -> std::string {
        try {
            world().forward("catena.log", {Array::from<double>({1, 2, 3, 4}, {4}).to(dtype)});
            return world().ran();
        } catch (const Failure& failure) {
            return failure.what();
        }
    };
    CHECK(run(dtype_of<double>()) ==
          "[catena.log] x: expected float32 for call.x<T>(0), got float64");
    CHECK(run(dtype_of<Float16>()) ==
          "[catena.log] x: expected float32 for call.x<T>(0), got float16");
    CHECK(run(dtype_of<float>()) == "org.example.others");
}

TEST_CASE("a gradient is NaN where a value is") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Array at = Array::from<double>({nan, -1}, {2}), one = Array::from<double>({1, 1}, {2});
    const auto gx =
        world().backward("catena.relu", {at}, world().forward("catena.relu", {at}), {one});
    CHECK(world().ran() == "org.example.others");
    CHECK(gx[0] == Array::from<double>({nan, 0}, {2}));
}

#if defined(OTHERS_CUDA)
TEST_CASE("on CUDA kernels ask supports() and the description, too: before they need a GPU") {
    World world(OTHERS_CUDA);
    const auto kernel = [&](const std::string& function) -> const catena_kernel& {
        for (const catena_kernel* k : world.kernels())
            if (k->function == function && k->run != nullptr) return *k;
        throw std::runtime_error("no kernel of " + function);
    };
    catena_ctx ctx{&world, {}, {}};
    catena_tensor tensor = Array(x).tensor();
    catena_tensor* const tensors[] = {&tensor, &tensor};
    const std::uint8_t requests[] = {CATENA_REQ_WRITE};
    catena_call call = {};
    call.struct_size = sizeof call;
    call.n_x = call.n_y = 1;
    call.x = call.y = tensors;
    call.req = requests;
    const auto supports = [&](double slope) {
        const catena_value attr = value_of(slope);
        call.attrs = &attr;
        call.function = &world.function("catena.leaky_relu");
        const catena_kernel& k = kernel("catena.leaky_relu");
        return k.supports != nullptr && k.supports(&ctx, &call) != 0;
    };
    CHECK_FALSE(supports(0.2));
    CHECK(supports(0.5));
    call.function = &world.function("catena.sub");
    call.n_x = 2;
    const catena_kernel& k = kernel("catena.sub");
    CHECK((!k.supports || k.supports(&ctx, &call) == 1));  // run() then says why
    CHECK(k.run(&ctx, &call) == CATENA_E_INTERNAL);
    CHECK(ctx.error == "[catena.sub] kernels_for(): inputs: expected 2, got 3");
}
#endif

TEST_CASE("what is not how the function is described is an error, not a wrong number") {
    CHECK(refusal("catena.mul_constant", {x}, {set("value", 2.0)}) ==
          "[catena.mul_constant] kernels_for(): attribute 0: expected value, got values");
    CHECK(refusal("catena.add_constant", {x}, {set("value", 2.0)})
              .find("[catena.add_constant] kernels_for(): the kind of attribute 0: expected ") ==
          0);
    CHECK(refusal("catena.sub", {x, x}) == "[catena.sub] kernels_for(): inputs: expected 2, got 1");
    CHECK(refusal("catena.add", {x, x}) ==
          "[catena.add] kernels_for(): type variables of ports 0 and 1: expected one, got another");
    CHECK(refusal("catena.tanh", {x}) ==
          "[catena.tanh] kernels_for(): backward reads inputs: expected those that it retains, got "
          "others too");
}
