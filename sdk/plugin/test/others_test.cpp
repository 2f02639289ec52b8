// Kernels for functions that other plugins describe, in one line each.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

namespace {

World& world() {
    static World all(OTHERS);
    return all;
}
const Array x = Array::of<float>({4}, {-2, -1, 0, 3});

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
    // Of float32, of float64, of both halves.
    CHECK(mine == 3 * 2 * world().isas("catena.relu").size());
    CHECK(check(world(), {.function = "catena.relu",
                          .inputs = {Array::of<double>({3}, {-1, 0.5, 2})},
                          .expected = {Array::of<double>({3}, {0, 0.5, 2})}}) == "");
}

TEST_CASE("a kernel that supports() some calls leaves the others to the next") {
    CHECK(who("catena.leaky_relu", {set("slope", 0.2)}) == "org.catena.activation");
    CHECK(who("catena.leaky_relu", {set("slope", 0.75)}) == "org.example.others");
    CHECK(check(world(), {.function = "catena.leaky_relu",
                          .inputs = {Array::of<double>({2}, {-1, 2})},
                          .attrs = {set("slope", 0.5)},
                          .expected = {Array::of<double>({2}, {-0.5, 2})}}) == "");
}

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
