// Tests that without OpenBLAS the device works, and products name the package to install; and that
// CATENA_CPU_BFLOAT16=0 disables products in bfloat16.
#include <doctest/doctest.h>

#include <cstdlib>

#include "host.hpp"

using namespace cpu_test;

TEST_CASE("a product names the missing package") {
    setenv("CATENA_OPENBLAS", "/nowhere/libopenblas.so.0", 1);  // NOLINT(concurrency-mt-unsafe)
    CHECK(plugin().threads->count(plugin().dev) >= 1);
    CHECK(logged.find("libopenblas0-openmp") != std::string::npos);
    float value = 2;
    catena_gemm gemm = {};
    gemm.struct_size = sizeof gemm;
    gemm.dtype = {CATENA_CODE_FLOAT, 32, 1};
    gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = 1;
    gemm.alpha = 1;
    gemm.a = gemm.b = gemm.c = &value;
    CHECK(plugin().blas->gemm(nullptr, &gemm) == CATENA_E_DEVICE);
    CHECK(failure.find("libopenblas0-openmp") != std::string::npos);
    CHECK(failure.find("/nowhere/libopenblas.so.0") != std::string::npos);
}

TEST_CASE("CATENA_CPU_BFLOAT16=0 disables products in bfloat16") {
    setenv("CATENA_CPU_BFLOAT16", "0", 1);  // NOLINT(concurrency-mt-unsafe)
    catena_gemm gemm = {};
    gemm.struct_size = sizeof gemm;
    gemm.flags = CATENA_CALL_BFLOAT16;
    gemm.dtype = {CATENA_CODE_FLOAT, 32, 1};
    gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = 512;
    CHECK(plugin().bfloat16->supports(&gemm) == 0);
    CHECK(plugin().bfloat16->gemm(nullptr, &gemm) == CATENA_E_UNSUPPORTED);
    CHECK(failure.find("expected float32 as bfloat16, and AMX or fast AVX512-BF16") !=
          std::string::npos);
}
