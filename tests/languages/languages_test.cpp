// Tests mul_add in another language than C and C++, written against the ABI alone. CATENA_LANGUAGE:
// the language; CATENA_LANGUAGE_PLUGIN: the plugin's file.
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/loader/plugins.hpp>
#include <catena/testing.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace {

std::string from_environment(const char* name) {
    const char* value = std::getenv(name);
    REQUIRE_MESSAGE(value != nullptr, name);
    return value;
}
std::string module() { return from_environment("CATENA_LANGUAGE_PLUGIN"); }
std::string id() { return "org.example." + from_environment("CATENA_LANGUAGE") + ".mul_add"; }

template <class T>
catena::Variable ramp(std::int64_t n, double from, double step) {
    std::vector<T> values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(from + step * static_cast<double>(i));
    return catena::Variable(catena::Array::from(values, {n}));
}

// Checks values and gradients in the core, with enough elements for several threads.
template <class T>
void check_in_core(double tolerance) {
    const std::int64_t n = 100003;
    const catena::Variable x = ramp<T>(n, -1, 1e-5), y = ramp<T>(n, 2, -2e-5),
                           z = ramp<T>(n, 0.5, 3e-5), gw = ramp<T>(n, 1, 1e-5);
    const catena::Variable w = catena::PluginFunction(id())({&x, &y, &z})[0];
    w.set_grad(gw);
    w.backward();
    double worst = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const auto at = [&](const catena::Array& a) {
            return static_cast<double>(a.host<T>()[static_cast<std::size_t>(i)]);
        };
        const double vx = at(x.data()), vy = at(y.data()), vz = at(z.data()), g = at(gw.data());
        for (const double error : {at(w.data()) - (vx * vy + vz), at(x.grad()) - g * vy,
                                   at(y.grad()) - g * vx, at(z.grad()) - g})
            worst = std::max(worst, std::abs(error));
    }
    CHECK(worst <= tolerance);
}

}  // namespace

TEST_CASE("catena::testing: all that is expected of a function; values; errors") {
    using namespace catena::testing;
    World world({module()});
    CHECK(conform(world, id()).failures() == "");
    for (const int threads : {1, 4}) {
        world.threads = threads;
        const std::vector<Array> x = {Array::random<double>({2, 40000}, 1),
                                      Array::random<double>({2, 40000}, 2),
                                      Array::random<double>({2, 40000}, 3)};
        const Array w = world.forward(id(), x)[0];
        const Array gw = Array::random<double>({2, 40000}, 4);
        const std::vector<Array> gx = world.backward(id(), x, {w}, {gw});
        int wrong = 0;
        for (std::int64_t i = 0; i < 80000; ++i) {
            wrong += std::abs(w.at(i) - (x[0].at(i) * x[1].at(i) + x[2].at(i))) > 1e-15;
            wrong += gx[0].at(i) != gw.at(i) * x[1].at(i);
            wrong += gx[1].at(i) != gw.at(i) * x[0].at(i);
            wrong += gx[2].at(i) != gw.at(i);
        }
        CHECK(wrong == 0);
    }
    const Array a = Array::random<float>({2, 3}, 1), b = Array::random<float>({3}, 1);
    CHECK_THROWS_WITH(world.forward(id(), {a, a, b}), doctest::Contains(("[" + id()).c_str()));
}

TEST_CASE("the core: loaded, found, called; gradients; errors") {
    using namespace catena;
    load_plugin(module());
    CHECK(read_manifest(module()).id == id());
    CHECK(read_manifest(module()).version == "1.0.0");
    check_in_core<float>(1e-6);
    check_in_core<double>(1e-15);
    const PluginFunction mul_add(id());
    const Variable a(Array::ones({2, 3})), b(Array::ones({3, 2})), none(Array::ones({0, 3}));
    CHECK_THROWS_AS(mul_add({&a, &a, &b}), ShapeError);
    CHECK_THROWS_WITH(mul_add({&a, &a, &b}), doctest::Contains(("[" + id()).c_str()));
    CHECK(mul_add({&none, &none, &none})[0].size() == 0);
    const Variable scalar(Array::full({}, 3));
    CHECK(mul_add({&scalar, &scalar, &scalar})[0].data().item<float>() == 12);
}
