// Two GPUs for the tests. With one GPU, second() is first(), and cases that need two are in a suite
// of their own. SameDevice checks that a test leaves the thread's current device unchanged.
#pragma once

#include <catena/catena.hpp>

#include <doctest/doctest.h>

#include "../temporary.hpp"

#include <vector>

namespace gpus {

using namespace catena;
namespace F = catena::functions;

using Floats = std::vector<float>;

inline const auto two_gpus = doctest::test_suite("two GPUs");  // skipped by main() with one
inline int second_id() { return cuda::device_count() > 1 ? 1 : 0; }
inline Device first() { return cuda::get_device(0); }
inline Device second() { return cuda::get_device(second_id()); }
inline Floats values(const Array& array) { return array.to_vector<float>(); }
// Returns the values of all parameters.
inline Floats values(const Link& link) {
    Floats all;
    for (const Variable& p : link.parameters()) {
        for (const float v : values(p.data())) all.push_back(v);
    }
    return all;
}

struct SameDevice {
    Device before = Device::current();
    SameDevice() = default;
    SameDevice(const SameDevice&) = delete;
    SameDevice& operator=(const SameDevice&) = delete;
    ~SameDevice() { CHECK(Device::current() == before); }
};

}  // namespace gpus
