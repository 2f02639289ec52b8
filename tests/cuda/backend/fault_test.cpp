// A device that fails permanently, as the emulator can simulate.
#include "emulator/control.h"
#include "host.hpp"

using namespace cuda_test;

TEST_CASE(
    "a fault of a device is reported by every call, with its name; the other device works on") {
    Stream s(0);
    Stream other(second());
    void* const dev = plugin().dev(0);
    catena_emulator_fault(0, cudaErrorIllegalAddress);
    CHECK(backend().stream_sync(ctx, dev, s.stream) == CATENA_E_DEVICE);
    CHECK(says("on device 0: cudaErrorIllegalAddress (an illegal address was accessed)"));
    CHECK(says("[cuda stream_sync] "));
    void* data = nullptr;
    CHECK(backend().alloc(ctx, dev, s.stream, 8, &data) == CATENA_E_DEVICE);
    CHECK(data == nullptr);
    CHECK(backend().sync(ctx, dev) == CATENA_E_DEVICE);
    if (second() != 0) CHECK(other.get(other.put(std::vector<int>{5}), 1)[0] == 5);
    REQUIRE(cudaDeviceReset() == cudaSuccess);
    CHECK(s.get(s.put(std::vector<int>{6}), 1)[0] == 6);
}
