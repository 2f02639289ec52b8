// A device that fails permanently, as the emulator can simulate.
#include "emulator/control.h"
#include "gpu.hpp"

TEST_CASE("a fault of a device is an error with its name, for every wait") {
    const Array x = ramp(10).to(second());
    const int ordinal = second().ordinal();
    second().synchronize();
    catena_emulator_fault(ordinal, cudaErrorIllegalAddress);
    const std::string text = failure_of([&] { x.to_vector<float>(); });
    INFO(text);
    CHECK(text.find("on device " + std::to_string(ordinal) + ": cudaErrorIllegalAddress") !=
          std::string::npos);
    if (ordinal != 0) CHECK(ramp(10).to(gpu(0)).to_vector<float>()[9] == 9);
    REQUIRE(cudaSetDevice(ordinal) == cudaErrorIllegalAddress);
    REQUIRE(cudaDeviceReset() == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    CHECK(x.to_vector<float>()[9] == 9);
}
