// Where a test's arrays go: the device in $CATENA_TEST_DEVICE, for tests that run on several.
#pragma once

#include <catena/core/device.hpp>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace test_device {

// For the thread that runs the tests; the others have to ask for it.
struct Chosen {
    Chosen() {
        if (const char* name = std::getenv("CATENA_TEST_DEVICE")) scope.emplace(name);
    }
    std::optional<catena::using_device> scope;
};
inline const Chosen chosen;

// Another device of the same backend. Where there is none, says so.
inline std::optional<catena::Device> second() {
    const std::string backend(catena::Device::current().backend());
    for (const catena::BackendInfo& info : catena::Device::backends())
        if (info.name == backend && info.devices > 1) return catena::Device::get(backend + ":1");
    std::puts(("skipped: lines that expect 2 devices of " + backend + ", got 1").c_str());
    return {};
}

}  // namespace test_device
