// Tests plugins built with a released ABI minor in the current core. CATENA_KEPT: their folder.
#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/loader/plugins.hpp>
#include <catena/plugin/philox.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

using namespace catena;

namespace {

const std::filesystem::path& kept() {
    static const std::filesystem::path folder = [] {
        const char* named = std::getenv("CATENA_KEPT");
        REQUIRE_MESSAGE(named, "CATENA_KEPT: expected the folder of the kept plugins");
        load_plugins(named);
        return std::filesystem::path(named);
    }();
    return folder;
}

template <class T>
Variable ramp(std::int64_t n, double from, double step) {
    std::vector<T> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(from + step * static_cast<double>(i));
    return Variable(Array::from(values, {n}));
}
double at(const Array& a, std::size_t i) { return a.to_vector<double>()[i]; }

Variable call(std::string_view name, std::initializer_list<const Variable*> inputs,
              std::initializer_list<Attribute> attributes = {}) {
    kept();
    return PluginFunction(name, attributes)(inputs)[0];
}

// Checks w = x * y + z and its gradients, with enough elements for several threads.
template <class T>
void check_mul_add(std::string_view name, double tolerance) {
    CAPTURE(name);
    const std::int64_t n = 40000;
    const Variable x = ramp<T>(n, -1, 1e-4), y = ramp<T>(n, 2, -2e-4), z = ramp<T>(n, 0.5, 3e-4);
    const Variable w = call(name, {&x, &y, &z});
    const Variable gw = ramp<T>(n, 1, 1e-4);
    w.set_grad(gw);
    w.backward();
    const auto vx = x.data().to_vector<double>(), vy = y.data().to_vector<double>(),
               vz = z.data().to_vector<double>(), vg = gw.data().to_vector<double>();
    const auto vw = w.data().to_vector<double>(), gx = x.grad().to_vector<double>(),
               gy = y.grad().to_vector<double>(), gz = z.grad().to_vector<double>();
    double worst = 0;
    for (std::size_t i = 0; i < vx.size(); ++i) {
        for (const double error : {vw[i] - (vx[i] * vy[i] + vz[i]), gx[i] - vg[i] * vy[i],
                                   gy[i] - vg[i] * vx[i], gz[i] - vg[i]})
            worst = std::max(worst, std::abs(error));
    }
    CHECK(worst <= tolerance);
}

}  // namespace

TEST_CASE("a kept composition has values and gradients of any order") {
    const Variable x0 = ramp<double>(3, 1, 2), x1 = ramp<double>(3, 0, 0.5);
    const Variable y = call("org.example.c.squared_error", {&x0, &x1});
    const auto ones = as_variable(Array::ones({3}, Dtype::float64));
    const Variable gx = grad({y}, {x0}, {ones}, {}, {.enable_double_backprop = true})[0];
    const Variable ggx = grad({gx}, {x1}, {ones})[0];
    for (std::size_t i = 0; i < 3; ++i) {
        const double d = 1 + 1.5 * static_cast<double>(i);
        CHECK(at(y.data(), i) == d * d);
        CHECK(at(gx.data(), i) == 2 * d);
        CHECK(at(ggx.data(), i) == -2);
    }
}

TEST_CASE("every kept plugin is loaded, none is refused") {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(kept()))
        files += entry.path().extension() == ".catena";
    std::size_t loaded = 0;
    for (const LoadedPlugin& plugin : plugin_report().loaded)
        loaded += plugin.path.parent_path() == kept();
    CHECK(files >= 6);
    CHECK(loaded == files);
    INFO(to_string(plugin_report()));
    CHECK(plugin_report().refused.empty());
}

TEST_CASE("mul_add in C and in C++: values and gradients") {
    check_mul_add<float>("org.example.c.mul_add", 1e-5);
    check_mul_add<float>("org.example.mul_add", 1e-5);
    check_mul_add<double>("org.example.mul_add", 1e-13);
    const Variable x = ramp<float>(3, 0, 1), y = ramp<float>(2, 0, 1);
    CHECK_THROWS_WITH(call("org.example.c.mul_add", {&x, &x, &y}),
                      doctest::Contains("expected equal shapes, got different ones"));
}

TEST_CASE("swish in C++: an attribute, a gradient of second order") {
    const double beta = 0.7, v = 1.3;
    const Variable x(Array::from({v}, {1}));
    const Variable y = call("org.example.swish", {&x}, {{"beta", beta}});
    const double s = 1 / (1 + std::exp(-beta * v)), ds = beta * s * (1 - s);
    CHECK(at(y.data(), 0) == doctest::Approx(v * s).epsilon(1e-14));
    const GradOptions twice{.enable_double_backprop = true};
    const Variable gx = grad({y}, {x}, {}, {}, twice)[0];
    CHECK(at(gx.data(), 0) == doctest::Approx(s + v * ds).epsilon(1e-13));
    const Variable ggx = grad({gx}, {x})[0];
    const double dds = beta * ds * (1 - 2 * s);
    CHECK(at(ggx.data(), 0) == doctest::Approx(2 * ds + v * dds).epsilon(1e-12));
}

TEST_CASE("dropout: the state that forward saves, the numbers that a seed gives, the train flag") {
    const std::int64_t n = 1001;
    const Variable x = ramp<float>(n, 1, 0.01);
    seed(7);
    const auto [key, offset] = random_state(Device::current());
    const Variable y = call("org.example.c.dropout", {&x}, {{"ratio", 0.25}});
    CHECK(random_state(Device::current()).offset == offset + (n + 3) / 4);
    y.set_grad(Array::ones({n}));
    y.backward();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const std::uint32_t draw = plugin::philox(key, offset + i / 4).v[i % 4];
        const float factor = draw * 0x1p-32 >= 0.25 ? static_cast<float>(1 / 0.75) : 0;
        wrong += y.data().host<float>()[i] != x.data().host<float>()[i] * factor;
        wrong += x.grad().host<float>()[i] != factor;
    }
    CHECK(wrong == 0);
    const using_config test(&Config::train, false);
    CHECK(call("org.example.c.dropout", {&x}).data().to_vector<float>() ==
          x.data().to_vector<float>());
    CHECK_THROWS_WITH(call("org.example.c.dropout", {&x}, {{"ratio", 0.95}}),
                      doctest::Contains("ratio"));
}

TEST_CASE("square: a gradient that is composed of the host's functions") {
    const Variable x = ramp<float>(5, -1, 0.5);
    const Variable y = call("org.example.c.square", {&x});
    const Variable gx = grad({y}, {x}, {}, {}, {.enable_double_backprop = true})[0];
    const Variable ggx = grad({gx}, {x})[0];
    for (std::size_t i = 0; i < 5; ++i) {
        const double v = at(x.data(), i);
        CHECK(at(y.data(), i) == v * v);
        CHECK(at(gx.data(), i) == 2 * v);
        CHECK(at(ggx.data(), i) == 2);
    }
}

TEST_CASE("extensions: formulas, compiler, random numbers, compiled kernels") {
    const Variable x = ramp<float>(40000, -1, 1e-4);
    const Variable cube = call("org.example.c.formula_cube", {&x});
    const Variable twice = call("org.example.c.compiled_twice", {&x});
    const auto [key, offset] = random_state(Device::current());
    const Variable moved = call("org.example.c.reserved", {&x});
    CHECK(random_state(Device::current()).offset == offset + 8);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < 40000; ++i) {
        const float v = x.data().host<const float>()[i];
        wrong += cube.data().host<const float>()[i] != v * v * v;
        wrong += twice.data().host<const float>()[i] != 2 * v;
        wrong += moved.data().host<const float>()[i] != v + static_cast<float>(offset);
    }
    CHECK(wrong == 0);
    CHECK_THROWS_WITH(call("org.example.c.shipped", {&x}),
                      doctest::Contains("folder of compiled kernels /nowhere/kernels"));
    CHECK_THROWS_AS(pin_kernels("catena.kernels.draft/1", "org.catena.kernels"), PluginError);
}

TEST_CASE("a device: its memory, its kernel, its table for others") {
    kept();
    const Device device = Device::get("kept:1");
    const auto tables = device.extensions("org.example.blocks/1");
    REQUIRE(tables.size() == 1);
    struct Blocks {
        std::uint32_t struct_size, reserved;
        std::int64_t (*blocks)();
    };
    const auto* blocks = static_cast<const Blocks*>(tables[0]);
    REQUIRE(blocks->struct_size >= sizeof(Blocks));
    const Array host = Array::from({1.0, -2.5, 1e300}, {3});
    const Array x = host.to(device);
    CHECK(blocks->blocks() > 0);
    CHECK(x.device().name() == "kept:1");
    const Array y = PluginFunction("org.example.c.twice").forward(std::span(&x, 1))[0];
    CHECK(y.to_vector<double>() == std::vector<double>{2, -5, 2e300});
    CHECK_THROWS_AS(Device::get("kept:2"), DeviceError);
}
