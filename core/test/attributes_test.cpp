// Tests of attributes: conversion, checks, and the values that a kernel receives.
#include "toys.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>

#include <doctest/doctest.h>

#include <cmath>

using namespace catena;
using toys::floats;

namespace {

// The attribute values that the last kernel of toy.options received.
struct Options {
    std::int64_t count;
    double rate;
    bool flag;
    std::string mode;
    std::vector<std::int64_t> axes;
    std::vector<double> weights;
    std::string dtype;
} options;

const char* const modes[] = {"fast", "exact", nullptr};
const std::int64_t default_axes[] = {-1, 2};

[[maybe_unused]] const bool registered = [] {
    static toys::Plugin plugin("toys.options");
    auto& f = plugin.function("toy.options", {{"x"}}, {{"y"}}, toys::infer_same);
    auto& count = plugin.attribute(f, "count", CATENA_ATTR_INT);
    count.flags = CATENA_ATTR_RANGED;
    count.def.v.i = 3;
    count.lo = toys::integer(1);
    count.hi = toys::integer(10);
    auto& rate = plugin.attribute(f, "rate", CATENA_ATTR_FLOAT);
    rate.flags = CATENA_ATTR_RANGED;
    rate.def.v.f = 0.5;
    rate.lo = toys::number(0);
    rate.hi = toys::number(1);
    plugin.attribute(f, "flag", CATENA_ATTR_BOOL).def.v.i = 1;
    auto& mode = plugin.attribute(f, "mode", CATENA_ATTR_STRING);
    mode.def.v.s = "fast";
    mode.choices = modes;
    auto& axes = plugin.attribute(f, "axes", CATENA_ATTR_INTS);
    axes.flags = CATENA_ATTR_RANGED;
    axes.lo = toys::integer(-4);
    axes.hi = toys::integer(4);
    axes.def.n = 2;
    axes.def.v.ints = default_axes;
    plugin.attribute(f, "weights", CATENA_ATTR_FLOATS);
    plugin.attribute(f, "dtype", CATENA_ATTR_DTYPE);
    plugin.kernel("toy.options", [](catena_ctx*, const catena_call* c) -> catena_status {
        const catena_value* a = c->attrs;
        options = {a[0].v.i,
                   a[1].v.f,
                   a[2].v.i != 0,
                   a[3].v.s,
                   {a[4].v.ints, a[4].v.ints + a[4].n},
                   {a[5].v.floats, a[5].v.floats + a[5].n},
                   name(a[6].v.dtype)};
        for (std::int64_t i = 0; i < toys::count(*c->y[0]); ++i) toys::put(*c->y[0], i, 0);
        return CATENA_OK;
    });
    auto& g = plugin.function("toy.required", {{"x"}}, {{"y"}}, toys::infer_same);
    plugin.attribute(g, "size", CATENA_ATTR_INTS).flags = CATENA_ATTR_REQUIRED;
    plugin.add();
    return true;
}();

Options call(std::initializer_list<Attribute> attributes) {
    const Variable x(floats({1}));
    (void)PluginFunction("toy.options", attributes).first({&x});
    return options;
}

std::string refusal(std::initializer_list<Attribute> attributes, const char* f = "toy.options") {
    try {
        const PluginFunction function(f, attributes);
    } catch (const InvalidError& error) {
        return error.what();
    }
    return "nothing";
}

}  // namespace

TEST_CASE("defaults are filled in") {
    const Options o = call({});
    CHECK(o.count == 3);
    CHECK(o.rate == 0.5);
    CHECK(o.flag);
    CHECK(o.mode == "fast");
    CHECK(o.axes == std::vector<std::int64_t>{-1, 2});
    CHECK(o.weights.empty());
    CHECK(o.dtype == "float32");
}

TEST_CASE("values arrive in the order of the schema, whatever the order of the call") {
    const Options o = call({{"dtype", Dtype::int64},
                            {"weights", std::vector<double>{0.5, 2}},
                            {"axes", std::vector<std::int64_t>{1}},
                            {"mode", "exact"},
                            {"flag", false},
                            {"rate", 0.25},
                            {"count", 7}});
    CHECK(o.count == 7);
    CHECK(o.rate == 0.25);
    CHECK_FALSE(o.flag);
    CHECK(o.mode == "exact");
    CHECK(o.axes == std::vector<std::int64_t>{1});
    CHECK(o.weights == std::vector<double>{0.5, 2});
    CHECK(o.dtype == "int64");
}

TEST_CASE("numbers convert where nothing is lost") {
    CHECK(call({{"count", 4.0}}).count == 4);
    CHECK(call({{"count", 4u}}).count == 4);
    CHECK(call({{"rate", 1}}).rate == 1.0);
    CHECK(call({{"rate", 0.5f}}).rate == 0.5);
    CHECK_FALSE(call({{"flag", 0}}).flag);
    CHECK(call({{"axes", 3}}).axes == std::vector<std::int64_t>{3});
    CHECK(call({{"axes", std::vector<std::int64_t>{}}}).axes.empty());
    CHECK(call({{"weights", 2.5}}).weights == std::vector<double>{2.5});
    CHECK(call({{"weights", 2}}).weights == std::vector<double>{2});
    CHECK(call({{"weights", std::vector<std::int64_t>{1, 2}}}).weights ==
          std::vector<double>{1, 2});
    CHECK(call({{"mode", std::string("exact")}}).mode == "exact");
}

TEST_CASE("wrong values name function, attribute, what was expected, what came") {
    CHECK(refusal({{"count", 2.5}}) ==
          "[toy.options] attribute 'count': expected an integer, got 2.5");
    CHECK(refusal({{"count", true}}) ==
          "[toy.options] attribute 'count': expected an integer, got true");
    CHECK(refusal({{"count", 11}}) == "[toy.options] attribute 'count': expected 1 to 10, got 11");
    CHECK(refusal({{"count", 0}}) == "[toy.options] attribute 'count': expected 1 to 10, got 0");
    CHECK(refusal({{"rate", -0.5}}) == "[toy.options] attribute 'rate': expected 0 to 1, got -0.5");
    CHECK(refusal({{"rate", NAN}}) == "[toy.options] attribute 'rate': expected 0 to 1, got nan");
    CHECK(refusal({{"rate", "much"}}) ==
          "[toy.options] attribute 'rate': expected a number, got 'much'");
    CHECK(refusal({{"flag", 2}}) == "[toy.options] attribute 'flag': expected a bool, got 2");
    CHECK(refusal({{"mode", "slow"}}) ==
          "[toy.options] attribute 'mode': expected one of fast, exact, got 'slow'");
    CHECK(refusal({{"mode", 1}}) == "[toy.options] attribute 'mode': expected a string, got 1");
    CHECK(refusal({{"axes", std::vector<std::int64_t>{0, 9}}}) ==
          "[toy.options] attribute 'axes': expected -4 to 4, got [0, 9]");
    CHECK(refusal({{"axes", std::vector<double>{0.5}}}) ==
          "[toy.options] attribute 'axes': expected a list of integers, got [0.5]");
    CHECK(refusal({{"weights", "heavy"}}) ==
          "[toy.options] attribute 'weights': expected a list of numbers, got 'heavy'");
    CHECK(refusal({{"dtype", 3}}) == "[toy.options] attribute 'dtype': expected a dtype, got 3");
    CHECK(
        refusal({{"colour", 3}}) ==
        "[toy.options] attribute 'colour': expected one of count, rate, flag, mode, axes, weights, "
        "dtype");
    CHECK(refusal({{"rate", 0.1}, {"rate", 0.2}}) ==
          "[toy.options] attribute 'rate': expected once, got twice");
    CHECK(refusal({{"x", 3}}, "toy.add") == "[toy.add] attribute 'x': it has none");
    CHECK(refusal({}, "toy.required") ==
          "[toy.required] attribute 'size': expected a list of integers, got nothing");
}

TEST_CASE("attributes belong to the function object and are copied with it") {
    std::vector<std::int64_t> axes{1, 2};
    std::string mode = "exact";
    PluginFunction original("toy.options", {{"axes", axes}, {"mode", mode}});
    axes = {4, 4};
    mode = "xxxxx";
    PluginFunction copy("toy.add");
    {
        const PluginFunction between = original;
        original = PluginFunction("toy.options");
        copy = between;
    }
    const PluginFunction& self = copy;
    copy = self;
    const Variable x(floats({1}));
    (void)copy.first({&x});
    CHECK(options.axes == std::vector<std::int64_t>{1, 2});
    CHECK(options.mode == "exact");
    CHECK(copy.name() == "toy.options");
}

TEST_CASE("the same function with other attributes is checked like a new one") {
    const PluginFunction original("toy.options", {{"mode", "exact"}, {"count", 4}});
    const PluginFunction other = original.with({{"count", 7}});
    CHECK(&other.entry() == &original.entry());
    const Variable x(floats({1}));
    (void)other.first({&x});
    CHECK(options.count == 7);
    CHECK(options.mode != "exact");
    (void)original.first({&x});
    CHECK(options.count == 4);
    CHECK_THROWS_AS((void)original.with({{"nothing", 1}}), InvalidError);
}

TEST_CASE("attributes outlive the function object as long as a graph needs them") {
    const Variable x(floats({3}));
    Variable y;
    {
        const PluginFunction scale("toy.scale", {{"factor", 4}});
        y = scale.first({&x});
    }
    y.backward();
    CHECK(toys::values(x.grad()) == toys::Values{4});
}
