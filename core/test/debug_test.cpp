// Tests of debug mode: a NaN raises an error that names the function, the port and the caller.
#include "toys.hpp"

#include <catena/core/extend/diagnostics.hpp>

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <thread>

using namespace catena;
using namespace toys;

namespace {

const float nan32 = std::nanf("");
const double infinite = HUGE_VAL;

std::string error_of(const auto& body) { return toys::what<ValueError>(body); }

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace

// Functions that stack traces name: one exported, the other found in the symbol table only.
__attribute__((noinline)) Variable place_in_sight(const PluginFunction& f, const Variable& x) {
    Variable y = f.first({&x});
    asm volatile("" ::: "memory");  // prevents a tail call
    return y;
}
static __attribute__((noinline)) Variable place_behind_the_scenes(const PluginFunction& f,
                                                                  const Variable& x) {
    Variable y = place_in_sight(f, x);
    asm volatile("" ::: "memory");
    return y;
}

TEST_CASE("off: NaN goes its way") {
    CHECK_FALSE(config().debug);
    const Variable x(floats({nan32}));
    const Variable y = mul.first({&x, &x});
    y.backward();
    CHECK(std::isnan(x.grad().item<float>()));
    CHECK(y.creator()->created_at().empty());
}

TEST_CASE("forward: the function, the port, how many, and the place") {
    const using_config scope(&Config::debug, true);
    const Variable x(doubles({1, infinite, -infinite}));
    const Variable zero(doubles({0, 0, 0}));
    const std::string text = error_of([&] { (void)mul.first({&x, &zero}); });
    INFO(text);
    CHECK(text.find("[toy.mul] forward: y: expected numbers, got NaN in 2 of 3 elements; the call "
                    "was made at\n  ") == 0);
    CHECK_FALSE(has(text, "already"));
    const Variable bad(floats({1, nan32}));
    const std::string place =
        error_of([&] { (void)place_behind_the_scenes(PluginFunction("toy.scale"), bad); });
    INFO(place);
    CHECK(place.find("[toy.scale] forward: y (NaN was in x already): expected numbers, got NaN in "
                     "1 of 2 elements; the call was made at\n  place_in_sight(") == 0);
    CHECK(has(place, "\n  place_behind_the_scenes(catena::PluginFunction const&"));
    CHECK_FALSE(has(place, "libcatena-core"));
    CHECK(has(place, " in core-test+0x"));
    // Calls without a graph, parameters written in place, integers and infinities.
    const std::vector<Array> arrays = {x.data(), zero.data()};
    CHECK(has(error_of([&] { (void)mul.forward(arrays); }), "[toy.mul] forward: y"));
    const std::vector<Array> update = {doubles({1, 2}), doubles({std::nan(""), 0})};
    CHECK(has(error_of([&] {
                  PluginFunction("toy.update", {{"lr", 1.0}}).forward(update);
              }),
              "[toy.update] forward: param (NaN was in grad already): expected numbers, got NaN in "
              "1 of 2 elements"));
    CHECK_NOTHROW(mul.first({&x, &x}));
    CHECK_NOTHROW(PluginFunction("toy.largest")({&x}));
}

TEST_CASE("backward: the call whose gradient it is, and where that was made") {
    const using_config scope(&Config::debug, true);
    // y = 1/x is finite for infinite x; its gradient -y^2 gy is NaN where gy is infinite too.
    const Variable x(doubles({infinite, 1}));
    for (const bool composed : {false, true}) {
        const Variable y = place_in_sight(PluginFunction("toy.reciprocal"), x);
        y.set_grad(doubles({infinite, 1}));
        const std::string text = error_of([&] { y.backward(false, composed); });
        INFO(text);
        CHECK(text.find("[toy.mul] forward: y: expected numbers, got NaN in 1 of 2 elements") == 0);
        CHECK(has(text,
                  "\nin the backward of toy.reciprocal; the call was made at\n  "
                  "place_in_sight("));
        CHECK_FALSE(x.grad());
    }
    // The gradient by a kernel.
    const Variable a(floats({0, 1}));
    const Variable big(floats({HUGE_VALF, 1}));
    const Variable one(floats({1, 1}));
    const Variable z = mul.first({&one, &a});
    const Variable h = mul.first({&z, &one});
    h.set_grad(floats({0, 1}));
    CHECK_NOTHROW(h.backward());
    const Variable w = place_in_sight(PluginFunction("toy.cube"), one);
    CHECK(has(w.creator()->created_at(), "place_in_sight"));
    const Variable bad = mul.first({&one, &big});
    bad.set_grad(floats({0, 1}));
    const std::string text = error_of([&] { bad.backward(); });
    INFO(text);
    CHECK(text.find("[toy.mul] backward: gradient of a: expected numbers, got NaN in 1 of 2 "
                    "elements; the call was made at\n  ") == 0);
    CHECK(has(error_of([&] {
                  grad({bad}, {one}, {Variable(floats({0, 1}))});
              }),
              "[toy.mul] backward: gradient of a"));
}

TEST_CASE("backward: gradients that were bad before it began") {
    const using_config scope(&Config::debug, true);
    const Variable x(floats({1, 2}));
    const Variable y = mul.first({&x, &x});
    y.set_grad(floats({1, nan32}));
    CHECK(error_of([&] { y.backward(); }) ==
          "[backward] grad of the start: expected numbers, got NaN in 1 of 2 elements");
    y.set_grad(floats({1, 1}));
    x.set_grad(floats({nan32, nan32}));  // not cleared
    CHECK(has(error_of([&] { y.backward(); }),
              "[toy.mul] backward: gradient of a before it is added to: expected numbers, got NaN "
              "in 2 of 2 elements"));
    CHECK(values(grad({y}, {x})[0].data()) == Values{2, 4});  // grad() does not use x.grad
    x.cleargrad();
    y.backward();
    CHECK(values(x.grad()) == Values{2, 4});
}

TEST_CASE("devices that the host cannot read, and all floating dtypes") {
    const using_config scope(&Config::debug, true);
    const Device vault = Device::get("vault");
    const Variable x(floats({1, HUGE_VALF}).to(vault));
    const Variable zero(floats({1, 0}).to(vault));
    CHECK_NOTHROW(mul.first({&x, &x}));
    CHECK(has(error_of([&] {
                  (void)mul.first({&x, &zero});
              }),
              "[toy.mul] forward: y: expected numbers, got NaN in 1 of 2 elements"));
    const PluginFunction view("toy.view", {{"shape", std::vector<std::int64_t>{3}}});
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64}) {
        const Variable good(doubles({1, -infinite, infinite}).astype(dtype));
        CHECK_NOTHROW(view.first({&good}));
        const Variable bad(doubles({1, std::nan(""), -std::nan("")}).astype(dtype));
        CHECK(has(error_of([&] { (void)view.first({&bad}); }), "got NaN in 2 of 3 elements"));
    }
    const Variable empty(Array::zeros({0}));
    CHECK_NOTHROW(mul.first({&empty, &empty}));
}

TEST_CASE("the trace of a stripped or unknown place is still a line") {
    CHECK(diagnostics().to_string({}).empty());
    void* const nowhere[] = {reinterpret_cast<void*>(0x11)};
    CHECK(diagnostics().to_string(nowhere) == "\n  +0x10");
}

// The next test case runs this one in a separate process.
TEST_CASE("debug mode is on from the start" * doctest::skip()) {
    CHECK(config().debug);
    bool elsewhere = false;
    std::thread([&] { elsewhere = config().debug; }).join();
    CHECK(elsewhere);
}

TEST_CASE("CATENA_DEBUG") {
    const auto passes = [](const char* value) {
        return toys::run_alone("debug mode is on from the start", "CATENA_DEBUG", value) == 0;
    };
    CHECK(passes("1"));
    CHECK_FALSE(passes("0"));
    CHECK_FALSE(passes(""));
}
