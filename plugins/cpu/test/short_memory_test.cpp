// Tests that OpenBLAS is refused or works under a limit on memory, and that no product hangs.
#include <doctest/doctest.h>

#include <catena_test/child.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "host.hpp"

using namespace cpu_test;
using catena_test::address_space;

namespace {

constexpr uint64_t mib = uint64_t{1} << 20;
constexpr int loaded_well = 0;
constexpr int refused_with_reason = 1;
constexpr int one_at_a_time = 2;
constexpr int wrong = 3;

void allow(uint64_t more) { catena_test::limit_address_space(address_space() + more); }

catena_gemm square(int64_t n, const float* a, const float* b, float* c) {
    catena_gemm gemm = {};
    gemm.struct_size = sizeof gemm;
    gemm.dtype = {CATENA_CODE_FLOAT, 32, 1};
    gemm.m = gemm.n = gemm.k = gemm.lda = gemm.ldb = gemm.ldc = n;
    gemm.alpha = 1;
    gemm.a = a;
    gemm.b = b;
    gemm.c = c;
    return gemm;
}

// Computes each kind of product that packs into a buffer, with this number of threads.
catena_status multiply(int32_t threads) {
    constexpr int64_t n = 256;
    static std::vector<float> a(n * n, 1), b(n * n, 2), c(n * n);
    catena_gemm gemm = square(n, a.data(), b.data(), c.data());
    plugin().threads->set_count(plugin().dev, threads);
    for (int round = 0; round < 5; ++round)
        for (const int transpose : {0, 1}) {
            gemm.transpose_b = static_cast<uint8_t>(transpose);
            c[7] = 0;
            if (const auto status = plugin().blas->gemm(nullptr, &gemm); status != CATENA_OK)
                return status;
            if (c[7] != 2 * n) return CATENA_E_INTERNAL;
        }
    return CATENA_OK;
}

// Runs body in a new process, because a process loads OpenBLAS only once.
int outcome_of(int (*body)()) {
    return catena_test::end_of([&] {
        unsetenv("OMP_NUM_THREADS");  // NOLINT(concurrency-mt-unsafe)
        return body();
    });
}

uint64_t limit_at_load;

int load_within_limit() {
    allow(limit_at_load);
    plugin();
    const catena_status status = multiply(2);
    if (status == CATENA_OK) {
        if (logged.empty()) return loaded_well;
        return logged.find("product") != std::string::npos ? one_at_a_time : wrong;
    }
    const bool told = logged.find("expected memory for OpenBLAS") != std::string::npos &&
                      failure.find("expected memory for OpenBLAS") != std::string::npos;
    return status == CATENA_E_NOMEM && told ? refused_with_reason : wrong;
}

int multiply_when_memory_is_gone() {
    plugin();
    multiply(8);  // starts the threads, whose stacks take memory too
    allow(mib);
    return multiply(8) == CATENA_OK ? loaded_well : wrong;
}

// OpenBLAS' kernel for AVX-512 that does not pack allocates a few kB for columns beyond a multiple of 16.
int multiply_without_a_byte() {
    constexpr int64_t n = 100;
    static float a[n * n], b[n * n], c[n * n];
    const catena_gemm gemm = square(n, a, b, c);
    plugin().threads->set_count(plugin().dev, 1);
    if (plugin().blas->gemm(nullptr, &gemm) != CATENA_OK) return wrong;
    failure.reserve(1000);
    allow(0);
    for (std::size_t bytes = 64 * mib; bytes >= 16; bytes /= 2) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the child ends soon
        while (malloc(bytes) != nullptr) {
        }
    }
    const catena_status status = plugin().blas->gemm(nullptr, &gemm);
    if (status == CATENA_OK) return loaded_well;
    return status == CATENA_E_NOMEM && failure.find("memory") != std::string::npos
               ? refused_with_reason
               : wrong;
}

int name_kernels_below_4_gib() {
    catena_test::limit_address_space(4095 * mib);
    unsetenv("OPENBLAS_CORETYPE");  // NOLINT(concurrency-mt-unsafe)
    if (multiply(1) != CATENA_OK) return wrong;
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    const auto name = reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_corename"));
    return std::string(name()) == "SkylakeX" ? wrong : loaded_well;
}

// Memory for one buffer and OMP_NUM_THREADS=1, while another variable asks for two threads.
template <int which>
int load_with_more_threads() {
    setenv("OMP_NUM_THREADS", "1", 1);  // NOLINT(concurrency-mt-unsafe)
    setenv(which == 0 ? "OPENBLAS_NUM_THREADS" : "GOTO_NUM_THREADS", "2",
           1);  // NOLINT(concurrency-mt-unsafe)
    limit_at_load = 250 * mib;
    const int outcome = load_within_limit();
    return logged.find("of 2 processors") != std::string::npos ? outcome : wrong;
}

int measure_buffers() {
    const uint64_t before = address_space();
    plugin();
    const auto n = static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_CONF) +
                                         plugin().threads->count(plugin().dev));
    const uint64_t taken = address_space() - before;
    return taken > n * 96 * mib && taken < n * 128 * mib + 80 * mib ? loaded_well : wrong;
}

}  // namespace

TEST_CASE("OpenBLAS takes the memory that is asked for before it is loaded") {
    CHECK(outcome_of(measure_buffers) == loaded_well);
}

TEST_CASE("with any limit OpenBLAS is refused with a reason, or works") {
    const auto processors = static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_CONF));
    const uint64_t enough = (2 * processors + 1) * 128 * mib + 128 * mib;
    int before = refused_with_reason;
    std::vector<int> seen;
    for (limit_at_load = 48 * mib; limit_at_load <= enough; limit_at_load += 48 * mib) {
        CAPTURE(limit_at_load / mib);
        const int outcome = outcome_of(load_within_limit);
        CHECK(outcome != wrong);
        if (seen.empty() || outcome != before) seen.push_back(outcome);
        before = outcome;
    }
    CHECK(seen.front() == refused_with_reason);
    CHECK(seen.back() == loaded_well);
    if (processors == 2) CHECK(seen.size() == 3);  // between them, one product at a time
}

TEST_CASE("a build of OpenBLAS may take its threads from any of three variables") {
    if (sysconf(_SC_NPROCESSORS_CONF) < 2) return;
    CHECK(outcome_of(load_with_more_threads<0>) == refused_with_reason);
    CHECK(outcome_of(load_with_more_threads<1>) == refused_with_reason);
}

TEST_CASE("products go on where no more memory is given") {
    CHECK(outcome_of(multiply_when_memory_is_gone) == loaded_well);
}

TEST_CASE("a product fails with an error if malloc() returns NULL") {
    const int outcome = outcome_of(multiply_without_a_byte);
    CHECK((outcome == refused_with_reason || outcome == loaded_well));  // works without AVX-512
}

TEST_CASE("below 4 GiB OpenBLAS runs kernels that do not call malloc()") {
    CHECK(outcome_of(name_kernels_below_4_gib) == loaded_well);
}
