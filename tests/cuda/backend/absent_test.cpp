// Error messages if there is no driver, no device or no library. Each test runs in a process of its
// own, in an environment that CMakeLists.txt sets.
#include "host.hpp"

using namespace cuda_test;

TEST_CASE("no device") {
    int32_t n = 7;
    CHECK(backend().count(ctx, &n) == CATENA_E_DEVICE);
    CHECK(n == 0);
    CHECK(failure ==
          "[cuda count] cudaGetDeviceCount: cudaErrorNoDevice (there is no GPU, or "
          "CUDA_VISIBLE_DEVICES hides it): the driver is for CUDA 13.0, the plugin for CUDA 13.0");
    void* dev = &n;
    CHECK(backend().open(ctx, 0, &dev) == CATENA_E_DEVICE);
    CHECK(dev == nullptr);
}

TEST_CASE("an old driver") {
    int32_t n = 7;
    CHECK(backend().count(ctx, &n) == CATENA_E_DEVICE);
    CHECK(n == 0);
    CHECK(failure ==
          "[cuda count] cudaGetDeviceCount: cudaErrorInsufficientDriver (the driver is missing, or "
          "too old): the driver is for CUDA 11.4, the plugin for CUDA 13.0");
}

TEST_CASE("no driver") {
    int32_t n = 7;
    CHECK(backend().count(ctx, &n) == CATENA_E_DEVICE);
    CHECK(n == 0);
    CHECK(says("expected a driver for CUDA 13.0 or newer, got none"));
}

TEST_CASE("a device that there is no code for") {
    int32_t n = 0;
    CHECK(backend().count(ctx, &n) == CATENA_OK);
    void* dev = &n;
    CHECK(backend().open(ctx, 0, &dev) == CATENA_E_DEVICE);
    CHECK(dev == nullptr);
    CHECK(failure ==
          "[cuda open] device 0: expected capability 8.0 or newer, which this build has code for, "
          "got 7.5 (Emulated device)");
}

TEST_CASE("no libraries") {
    const auto& vendor = plugin().extension<catena_vendor>(CATENA_VENDOR_DRAFT_1);
    Stream s;
    void* found = nullptr;
    int64_t version = 1;
    CHECK(vendor.open(ctx, "cublas", &found, &version) == CATENA_E_UNSUPPORTED);
    CHECK(
        says("[cuda vendor] cublas: expected libcublas.so.13 (a path in CATENA_CUBLAS goes "
             "first), got: "));
    CHECK(says("/none/cublas"));
    CHECK(vendor.handle(ctx, s.dev, s.stream, "cudnn", &found) == CATENA_E_UNSUPPORTED);
    CHECK(
        says("[cuda vendor] cudnn: expected libcudnn.so.9 (a path in CATENA_CUDNN_LIBRARY goes "
             "first), got: a library without cudnnGetVersion"));
    CHECK(found == nullptr);
    catena_gemm g = {};
    g.struct_size = sizeof g;
    g.dtype = {CATENA_CODE_FLOAT, 32, 1};
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 1;
    float* x = s.put(std::vector<float>{1});
    g.a = g.b = g.c = x;
    g.stream = s.stream;
    CHECK(plugin().blas->gemm(ctx, &g) == CATENA_E_UNSUPPORTED);
    CHECK(says("libcublas.so.13"));
}
