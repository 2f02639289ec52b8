// Makes $CATENA_TEST_DEVICE the current device, for tests that run on several devices.
#pragma once

#include <catena/core/device.hpp>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

namespace test_device {

// Sets the device for the main thread only; other threads have to set their own.
struct Chosen {
    Chosen() {
        if (const char* name = std::getenv("CATENA_TEST_DEVICE")) scope.emplace(name);
    }
    std::optional<catena::using_device> scope;
};
inline const Chosen chosen;

// Returns another device of the same backend. If there is none, prints that lines are skipped.
inline std::optional<catena::Device> second() {
    const std::string backend(catena::Device::current().backend());
    for (const catena::BackendInfo& info : catena::Device::backends())
        if (info.name == backend && info.devices > 1) return catena::Device::get(backend + ":1");
    std::puts(("skipped: lines that expect 2 devices of " + backend + ", got 1").c_str());
    return {};
}

}  // namespace test_device
