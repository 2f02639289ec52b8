// Where a test's arrays go: the device in $CATENA_TEST_DEVICE, for tests that run on several.
#pragma once

#include <catena/core/device.hpp>

#include <cstdlib>
#include <optional>

namespace test_device {

// For the thread that runs the tests; the others have to ask for it.
struct Chosen {
    Chosen() {
        if (const char* name = std::getenv("CATENA_TEST_DEVICE")) scope.emplace(name);
    }
    std::optional<catena::using_device> scope;
};
inline const Chosen chosen;

}  // namespace test_device
