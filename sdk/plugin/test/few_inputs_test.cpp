// Tests functions without inputs, and functions whose first input is missing.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

using namespace catena::testing;

namespace {

const Array two = Array::from<double>({3, 4}, {2});

// Returns the error text of a call without the input a, or "none".
std::string refusal(const std::string& function, bool backward = false) {
    World world(FEW_INPUTS);
    try {
        const auto y = world.forward(function, {Array(), two});
        if (backward) world.gradient(function, {Array(), two}, y, {two});
    } catch (const Failure& failure) {
        CHECK(failure.status() == CATENA_E_INTERNAL);
        return failure.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("a function without inputs: its dtype and its shape come from attributes") {
    World world(FEW_INPUTS);
    CHECK(check(world, {.function = "org.example.ramp",
                        .attrs = {set("n", 4), set("dtype", dtype_of<double>()), set("step", 0.5)},
                        .expected = {Array::from<double>({0, 0.5, 1, 1.5}, {4})}}) == "");
    const auto y = world.forward("org.example.ramp", {}, {set("n", 3)});
    CHECK((y.at(0) == Array::from<float>({0, 1, 2}, {3})));
    const auto half =
        world.forward("org.example.ramp", {}, {set("n", 2), set("dtype", dtype_of<Float16>())});
    CHECK(half.at(0).at(1) == 1);
    CHECK(check(world, {.function = "org.example.ramp",
                        .attrs = {set("n", -1)},
                        .error = "[org.example.ramp] n: expected 0 or more, got -1"}) == "");
    CHECK(conform(world, "org.example.ramp").failures() == "");
}

TEST_CASE("without inputs the type of device stays what the host has put there") {
    World world(FEW_INPUTS);
    const catena_function& f = world.function("org.example.ramp");
    const std::vector<catena_value> attrs = {value_of(2), value_of(1.0),
                                             value_of(dtype_of<float>())};
    catena_ctx ctx{&world, {}, {}};
    catena_meta y = {};
    y.device_type = 2;
    catena_meta* const list[] = {&y};
    CHECK(f.infer(&ctx, attrs.data(), nullptr, 0, list, 1) == CATENA_OK);
    CHECK(y.device_type == 2);
    CHECK(y.ndim == 1);
    CHECK(y.shape[0] == 2);
}

TEST_CASE("a first input that is missing") {
    World world(FEW_INPUTS);
    const char* const scaled = "org.example.scaled";
    CHECK(check(world, {.function = scaled, .inputs = {Array(), two}, .expected = {two}}) == "");
    CHECK(check(world, {.function = scaled,
                        .inputs = {two, two},
                        .expected = {Array::from<double>({9, 16}, {2})}}) == "");
    CHECK((world.backward(scaled, {Array(), two}, {two}, {two}).at(1) == two));
    CHECK((world.gradient(scaled, {Array(), two}, {two}, {two}).at(1) == two));
    // The outputs are on the device of the first input that is not missing.
    catena_ctx ctx{&world, {}, {}};
    catena_meta b = two.meta(), y = {};
    b.device_type = 2;
    const catena_meta* const x[] = {nullptr, &b};
    catena_meta* const list[] = {&y};
    CHECK(world.function(scaled).infer(&ctx, nullptr, x, 2, list, 1) == CATENA_OK);
    CHECK(y.device_type == 2);
    CHECK(conform(world, scaled).failures() == "");
}

TEST_CASE("who asks a missing input for its shape or dtype is told so") {
    CHECK(refusal("org.example.y_dtype") ==
          "[org.example.y_dtype] infer: y(0, shape): expected a dtype as well, for there is no "
          "x(0), got none");
    const std::string which = "expected inputs that has() says are there, got x(0)";
    CHECK(refusal("org.example.shape") == "[org.example.shape] infer: " + which);
    CHECK(refusal("org.example.dtype") == "[org.example.dtype] infer: " + which);
    CHECK(refusal("org.example.gradient_shape", true) ==
          "[org.example.gradient_shape] gradient: " + which);
    CHECK(refusal("org.example.gradient", true) == "[org.example.gradient] gradient: " + which);
}
