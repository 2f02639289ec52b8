// Tests plugins built with a released ABI minor in the hosts of catena::testing: with the current
// headers and with those of an invented next minor. CATENA_KEPT: the folder of the plugins.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>
#include <cstdlib>

#include "entry.hpp"

using namespace catena::testing;

namespace {

std::string kept(const char* name) {
    const char* folder = std::getenv("CATENA_KEPT");
    REQUIRE_MESSAGE(folder != nullptr, "CATENA_KEPT: expected the folder of the kept plugins");
    return std::string(folder) + "/" + name + ".catena";
}
World& world() {
    static World all({kept("mul_add"), kept("mul_add_c"), kept("squared_error_c"), kept("swish"),
                      kept("state"), kept("device"), MATH_PLUGIN, ARRAY_PLUGIN, ACTIVATION_PLUGIN});
    return all;
}

}  // namespace

TEST_CASE("what is expected of any function, of each of theirs") {
    for (const char* name :
         {"org.example.mul_add", "org.example.c.mul_add", "org.example.c.squared_error",
          "org.example.swish", "org.example.c.dropout", "org.example.c.square"}) {
        INFO(name);
        CHECK(conform(world(), name).failures() == "");
    }
}

TEST_CASE("values") {
    const std::vector<Array> inputs = {Array::random<float>({5, 3}, 1),
                                       Array::random<float>({5, 3}, 2),
                                       Array::random<float>({5, 3}, 3)};
    for (const char* name : {"org.example.mul_add", "org.example.c.mul_add"}) {
        const Array w = world().forward(name, inputs)[0];
        const Array gw = Array::random<float>({5, 3}, 4);
        const std::vector<Array> gx = world().backward(name, inputs, {w}, {gw});
        for (std::int64_t i = 0; i < 15; ++i) {
            CHECK(w.at(i) == doctest::Approx(inputs[0].at(i) * inputs[1].at(i) + inputs[2].at(i)));
            CHECK(gx[0].at(i) == doctest::Approx(gw.at(i) * inputs[1].at(i)));
            CHECK(gx[1].at(i) == doctest::Approx(gw.at(i) * inputs[0].at(i)));
            CHECK(gx[2].at(i) == gw.at(i));
        }
    }
    const Array x = Array::random<double>({40}, 5, -3, 3);
    const Array y = world().forward("org.example.swish", {x}, {set("beta", 0.5)})[0];
    for (std::int64_t i = 0; i < 40; ++i)
        CHECK(y.at(i) == doctest::Approx(x.at(i) / (1 + std::exp(-0.5 * x.at(i)))));
}

TEST_CASE("a plugin of several units returns the same table each time") {
    const auto entry = entry_of(MATH_PLUGIN);
    REQUIRE((entry != nullptr));
    const catena_plugin* table = entry(&World::host(), nullptr);
    REQUIRE(table != nullptr);
    CHECK(entry(&World::host(), nullptr) == table);
}

#if defined(NEXT_PLUGIN)
TEST_CASE("a plugin of the next minor uses the new service where it is there") {
    World all({NEXT_PLUGIN, NEEDED_PLUGIN});
    const Array x = Array::from<double>({1, -2, 5}, {3});
    CHECK(all.forward("org.example.next", {x})[0] == x);
    catena_host host = World::host();
    host.next = [](catena_ctx*, std::int64_t value) { return 10 * value; };
    const auto entry = entry_of(NEXT_PLUGIN);
    REQUIRE((entry != nullptr));
    REQUIRE(entry(&host, nullptr) != nullptr);
    const Array y = all.forward("org.example.next", {x})[0];
    CHECK(y == Array::from<double>({11, 8, 15}, {3}));
    REQUIRE(entry(&World::host(), nullptr) != nullptr);
}
#endif
