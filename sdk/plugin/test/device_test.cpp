// Tests kernels of devices whose memory the host cannot access: they run and are checked there.
// Also tests the errors for plugins that cannot be loaded.
#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <algorithm>
#include <fstream>

using namespace catena::testing;

namespace {

World& world() {
    static World all({DEVICES, OWN_DEVICE});
    return all;
}
std::string examined(const char* function) {
    return check(world(), {.function = function,
                           .inputs = {Array::from<double>({1, 2, 3, 4, 5, 6}, {2, 3})},
                           .expected = {Array::from<double>({2, 4, 6, 8, 10, 12}, {2, 3})},
                           .edges = false});
}
std::string refused(const std::vector<std::string>& plugins) {
    try {
        const World world(plugins);
    } catch (const Failure& failure) {
        return failure.what();
    }
    return {};
}
bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("a right kernel on a device of its own: forward, backward, every check") {
    CHECK(examined("org.example.far.right") == "");
    CHECK(conform(world(), "org.example.far.right").failures() == "");
}

TEST_CASE("faults are found there, each for its reason") {
    const std::string value = examined("org.example.far.value");
    INFO(value);
    CHECK(has(value, "dtypes: forward float64 '' of org.example.devices on far of \"x=(2,3)\": "));
    CHECK(has(value, "element 2: expected 6, got 7"));
    for (const auto& [function, said] : {std::pair{"beside", "output y: written out of bounds"},
                                         std::pair{"input", "input x: changed"},
                                         std::pair{"scratch", "its scratch: written out of bounds"},
                                         std::pair{"fails", "example: [far] it burns"}}) {
        const std::string text = examined((std::string("org.example.far.") + function).c_str());
        INFO(text);
        CHECK(has(text, said));
    }
}

TEST_CASE("devices that are not there are skipped, and named") {
    const Report report = conform(world(), "org.example.far.right");
    CHECK(report.skipped ==
          std::set<std::string>{"skipped: no device empty: its backend counts none",
                                "skipped: no device nowhere: no plugin here has its backend"});
}

TEST_CASE(
    "an example's device: kernels for functions of catena, which are loaded as they are needed") {
    const std::vector<std::string> names = world().names();
    CHECK(std::count(names.begin(), names.end(), "catena.relu") == 1);
    const Array x = Array::from<float>({-1, 0, 1, 2}, {4});
    const Array y = world().forward("catena.relu", {x}, {}, {.device = "island"})[0];
    CHECK(world().ran() == "org.example.own_device");
    CHECK(y.values<float>() == std::vector<float>{0, 0, 1, 2});
    world().forward("catena.relu", {x});
    CHECK(world().ran() == "org.catena.activation");
    CHECK(check(world(), {.function = "catena.relu",
                          .inputs = {Array::from<double>({-1, -0.5, 1, 2}, {4})},
                          .expected = {Array::from<double>({0, 0, 1, 2}, {4})}}) == "");
    CHECK_THROWS_WITH(world().forward("catena.relu", {x}, {}, {.device = "cuda"}),
                      "[catena.relu] kernel: expected one for float32, got none");
}

TEST_CASE("plugins that cannot be loaded: why") {
    CHECK_THROWS_WITH(World("/no/such.catena"),
                      "[plugin] /no/such.catena: expected a file, got none (No such file or "
                      "directory)");
    std::ofstream("device_test.txt") << "no library";
    CHECK(has(refused({"device_test.txt"}), "device_test.txt: "));
    std::remove("device_test.txt");
    CHECK(has(refused({"/lib/x86_64-linux-gnu/libc.so.6"}),
              "expected catena_manifest_v1 and catena_plugin_entry_v1 exported, got none"));
    CHECK(has(refused({NEWER}), "newer.catena: ABI: it needs 1.7, this host has 1."));
    const std::string copy = "device_test.catena";
    std::ofstream(copy, std::ios::binary) << std::ifstream(OWN_DEVICE, std::ios::binary).rdbuf();
    CHECK(has(refused({OWN_DEVICE, copy}),
              "device_test.catena: id org.example.own_device is already loaded from "));
    CHECK(refused({OWN_DEVICE, OWN_DEVICE}) == "");
    std::remove(copy.c_str());
}
