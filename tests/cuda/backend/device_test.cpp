// Devices: how many, what they are, and what is refused.
#include <cuda_runtime.h>

#include <cstring>
#include <thread>

#include "emulator/control.h"
#include "host.hpp"

using namespace cuda_test;

TEST_CASE("the plugin brings one backend and products, and no kernels") {
    CHECK(std::strcmp(plugin().manifest->id, "org.catena.cuda") == 0);
    CHECK(plugin().manifest->devices[0] == 0);
    CHECK(plugin().table->n_backends == 1);
    CHECK(plugin().table->n_kernels == 0);
    CHECK(std::strcmp(backend().name, "cuda") == 0);
    CHECK((backend().flags & CATENA_BACKEND_ASYNC) != 0);
    CHECK((backend().flags & CATENA_BACKEND_HOST_MEMORY) == 0);
    CHECK(backend().dlpack_type == 2);
    CHECK(std::strcmp(plugin().table->extensions[0]->id, CATENA_BLAS_1) == 0);
    CHECK(std::strcmp(plugin().table->extensions[0]->device, "cuda") == 0);
}

TEST_CASE("devices are counted and opened; others are refused") {
    int32_t n = -1;
    REQUIRE(backend().count(ctx, &n) == CATENA_OK);
    CHECK(n == 2);
    void* dev = nullptr;
    CHECK(backend().open(ctx, 2, &dev) == CATENA_E_DEVICE);
    CHECK(failure == "[cuda open] ordinal: expected 0 to 1, got 2");
    CHECK(backend().open(ctx, -1, &dev) == CATENA_E_DEVICE);
    CHECK(dev == nullptr);
    REQUIRE(backend().open(ctx, 1, &dev) == CATENA_OK);
    const auto& about = plugin().extension<catena_about>(CATENA_ABOUT_DRAFT_1);
    CHECK(std::string(about.text(dev)) ==
          "Emulated device, capability 9.0, 4 multiprocessors, 1.0 GiB");
    backend().close(dev);
    CHECK(backend().get_extension(plugin().dev(), "org.example.none/1") == nullptr);
}

TEST_CASE("a device runs code for its own capability and for lower ones") {
    const auto supports = [](const char* isa) {
        return backend().supports_isa(plugin().dev(), isa);
    };
    for (const char* isa : {"", "sm_50", "sm_80", "sm_89", "sm_90", "sm_90a"}) {
        CAPTURE(isa);
        CHECK(supports(isa) == 1);
    }
    for (const char* isa :
         {"sm_100", "sm_91", "sm_80a", "sm_", "sm_x", "sm_80x", "x86-64", "sm_-1"}) {
        CAPTURE(isa);
        CHECK(supports(isa) == 0);
    }
}

TEST_CASE("the thread's device of CUDA stays as it was") {
    for (const int before : {0, 1}) {
        REQUIRE(cudaSetDevice(before) == cudaSuccess);
        for (const int ordinal : {0, 1}) {
            Stream s(ordinal);
            int* x = s.put(std::vector<int>{1, 2, 3});
            CHECK(s.get(x, 3)[2] == 3);
            uint64_t left = 0;
            uint64_t all = 0;
            REQUIRE(backend().memory(ctx, s.dev, &left, &all) == CATENA_OK);
            CHECK(all == uint64_t{1} << 30);
            REQUIRE(backend().sync(ctx, s.dev) == CATENA_OK);
        }
        int now = -1;
        REQUIRE(cudaGetDevice(&now) == cudaSuccess);
        CHECK(now == before);
    }
    cudaSetDevice(0);
    std::thread([] {  // whatever the thread
        Stream s(1);
        CHECK(s.get(s.put(std::vector<int>{4}), 1)[0] == 4);
    })
        .join();
}

TEST_CASE(
    "a fault of a device is reported by every call, with its name; the other device works on") {
    Stream s(0);
    Stream other(1);
    void* const dev = plugin().dev(0);
    catena_emulator_fault(0, cudaErrorIllegalAddress);
    CHECK(backend().stream_sync(ctx, dev, s.stream) == CATENA_E_DEVICE);
    CHECK(says("on device 0: cudaErrorIllegalAddress (an illegal address was accessed)"));
    CHECK(says("[cuda stream_sync] "));
    void* data = nullptr;
    CHECK(backend().alloc(ctx, dev, s.stream, 8, &data) == CATENA_E_DEVICE);
    CHECK(data == nullptr);
    CHECK(backend().sync(ctx, dev) == CATENA_E_DEVICE);
    CHECK(other.get(other.put(std::vector<int>{5}), 1)[0] == 5);
    REQUIRE(cudaDeviceReset() == cudaSuccess);
    CHECK(s.get(s.put(std::vector<int>{6}), 1)[0] == 6);
}

TEST_CASE("what went wrong once is not taken for an error of what comes next") {
    void* data = nullptr;
    Stream s;
    CHECK(backend().alloc(ctx, s.dev, s.stream, uint64_t{1} << 40, &data) == CATENA_E_NOMEM);
    CHECK(cudaPeekAtLastError() == cudaSuccess);
}
