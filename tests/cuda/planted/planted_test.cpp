// Each planted fault is found, and its report names the kernel, the instruction, the thread and the line.
#include "planted.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "emulator/control.h"

using namespace planted;

namespace {

// Memory of the device; `written` bytes have a value.
template <class T>
struct Memory {
    explicit Memory(std::size_t n) : size(n) {
        REQUIRE(cudaMalloc(&data, n * sizeof(T)) == cudaSuccess);
    }
    explicit Memory(const std::vector<T>& values) : Memory(values.size()) {
        REQUIRE(cudaMemcpy(data, values.data(), size * sizeof(T), cudaMemcpyHostToDevice) ==
                cudaSuccess);
    }
    ~Memory() { cudaFree(data); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::vector<T> values() const {
        std::vector<T> host(size);
        REQUIRE(cudaMemcpy(host.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost) ==
                cudaSuccess);
        return host;
    }
    T* data = nullptr;
    std::size_t size;
};

template <class... P>
cudaError_t launch(void (*kernel)(P...), unsigned blocks, unsigned threads, std::size_t shared,
                   cudaStream_t stream, P... arguments) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

std::string line_of(const std::string& fault) {
    std::ifstream source(PLANTED_SOURCE);
    std::string line;
    for (int n = 1; std::getline(source, line); ++n)
        if (line.ends_with("// fault " + fault)) return "planted.cu:" + std::to_string(n) + ",";
    return "no line is marked with this fault";
}

void check_report(const std::string& report, const char* kernel, const char* fault,
                  const char* instruction, const char* thread, const char* why) {
    for (const std::string& part :
         {"planted::(anonymous namespace)::" + std::string(kernel), line_of(fault),
          "'" + std::string(instruction), std::string(thread), std::string(why)})
        CHECK_MESSAGE(report.find(part) != std::string::npos, "expected '", part,
                      "', got: ", report);
}

// Checks the fault of the work that was launched last.
void check_fault(cudaError_t error, const char* kernel, const char* fault, const char* instruction,
                 const char* thread, const char* why) {
    CHECK(cudaDeviceSynchronize() == error);
    check_report(catena_emulator_last_fault(), kernel, fault, instruction, thread, why);
    CHECK(cudaDeviceReset() == cudaSuccess);
}

const std::vector<float> ones(1024, 1.0f);

}  // namespace

TEST_CASE("a missing barrier, between warps and within one") {
    const Memory<float> x(ones), y(1024);
    REQUIRE(launch(kernels.missing_barrier, 1, 256, 0, nullptr, (const float*)x.data, y.data) ==
            cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "missing_barrier", "missing_barrier", "ld.shared.f32",
                "thread (", "race: written by");
    REQUIRE(launch(kernels.missing_warp_barrier, 1, 32, 0, nullptr, (const float*)x.data, y.data) ==
            cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "missing_warp_barrier", "missing_warp_barrier",
                "ld.shared.f32", "thread (0, 0, 0)", "race");
}

TEST_CASE("an index that is not compared with the size") {
    const Memory<float> x(ones), y(1024);
    REQUIRE(launch(kernels.missing_end, 5, 256, 0, nullptr, (const float*)x.data, y.data) ==
            cudaSuccess);
    check_fault(cudaErrorIllegalAddress, "missing_end", "missing_end", "ld.global.f32",
                "block (4, 0, 0), thread (0, 0, 0)", "beyond a block");
}

TEST_CASE("a wrong stride: elements that two threads write, and elements that nobody writes") {
    const Memory<float> x(ones), y(ones);
    REQUIRE(launch(kernels.wrong_stride, 2, 256, 0, nullptr, (const float*)x.data, y.data, 1024) ==
            cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "wrong_stride", "wrong_stride", "st.global.f32",
                "block (1, 0, 0), thread (", "race");
    std::vector<float> different(1024);
    for (std::size_t i = 0; i < different.size(); ++i) different[i] = static_cast<float>(i);
    const Memory<float> numbers(different), fresh(1024);
    REQUIRE(launch(kernels.every_other, 1, 256, 0, nullptr, (const float*)numbers.data,
                   fresh.data) == cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "every_other", "same_element", "st.global.f32",
                "thread (1, 0, 0)", "race");
    const Memory<float> even(1024);
    REQUIRE(launch(kernels.write_even, 1, 32, 0, nullptr, even.data) == cudaSuccess);
    REQUIRE(launch(kernels.read_all, 1, 32, 0, nullptr, (const float*)even.data, y.data) ==
            cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "read_all", "gap", "ld.global.f32", "thread (1, 0, 0)",
                "nobody has written");
}

TEST_CASE("a struct that the host pads otherwise") {
#pragma pack(push, 4)
    struct Packed {
        int n;
        double factor;
        float* out;
        int after[8];
    };
#pragma pack(pop)
    static_assert(sizeof(Packed) != sizeof(Padded));
    const Memory<float> y(32);
    Packed packed = {1, 2.0, y.data, {}};
    void* arguments[] = {&packed};
    REQUIRE(cudaLaunchKernel((const void*)kernels.padded, dim3(1), dim3(32), arguments, 0,
                             nullptr) == cudaSuccess);
    // The address that the kernel takes for its own may be anything, also one that is not aligned.
    const cudaError_t error = cudaDeviceSynchronize();
    CHECK(error != cudaSuccess);
    check_fault(error, "padded", "padding", "st.global.f32", "thread (0, 0, 0)", "");
}

TEST_CASE("an accumulator that is not initialized") {
    const Memory<float> x(ones), y(32);
    REQUIRE(launch(kernels.accumulator, 1, 32, 0, nullptr, (const float*)x.data, y.data) ==
            cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "accumulator", "accumulator", "ld.shared.f32",
                "thread (0, 0, 0)", "nobody has written");
}

TEST_CASE(
    "float where double is meant: the comparison finds it, the machine names who wrote the value") {
    std::vector<double> numbers(32);
    for (std::size_t i = 0; i < 32; ++i) numbers[i] = static_cast<double>(i);
    const Memory<double> x(numbers), y(32);
    REQUIRE(launch(kernels.float_for_double, 1, 32, 0, nullptr, (const double*)x.data, y.data) ==
            cudaSuccess);
    const std::vector<double> got = y.values();
    std::size_t wrong = 0;
    while (wrong < 32 && std::fabs(got[wrong] - numbers[wrong] / 3) < 1e-12) ++wrong;
    REQUIRE(wrong == 1);
    check_report(catena_emulator_writer(y.data + wrong), "float_for_double", "float_for_double",
                 "st.global.f64", "thread 1 of the grid", "");
}

TEST_CASE("shuffles: a mask that leaves out lanes, and one that names lanes that have ended") {
    const Memory<float> x(ones);
    REQUIRE(launch(kernels.wrong_mask, 1, 32, 0, nullptr, x.data) == cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "wrong_mask", "wrong_mask", "shfl.sync.down.b32",
                "thread (16, 0, 0)", "mask");
    REQUIRE(launch(kernels.lane_gone, 1, 32, 0, nullptr, x.data) == cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "lane_gone", "lane_gone", "shfl.sync.bfly.b32",
                "thread (0, 0, 0)", "ended");
}

TEST_CASE("a race between blocks") {
    const Memory<float> x(ones), sum(std::vector<float>(1));
    REQUIRE(launch(kernels.blocks_race, 4, 32, 0, nullptr, (const float*)x.data, sum.data) ==
            cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "blocks_race", "blocks_race", "ld.global.f32",
                "block (1, 0, 0)", "race");
}

TEST_CASE("a barrier that only some threads reach") {
    const Memory<float> x(ones);
    REQUIRE(launch(kernels.divergent_barrier, 1, 32, 0, nullptr, x.data) == cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "divergent_barrier", "divergent_barrier", "bar",
                "thread (0, 0, 0)", "barrier");
}

TEST_CASE("a vector at an address that is not aligned for it") {
    const Memory<float> x(ones);
    const Memory<float4> y(8);
    REQUIRE(launch(kernels.misaligned, 1, 8, 0, nullptr, (const float*)x.data, y.data) ==
            cudaSuccess);
    check_fault(cudaErrorMisalignedAddress, "misaligned", "misaligned", "ld.global.v4",
                "thread (0, 0, 0)", "16");
}

TEST_CASE("memory that was freed, and memory of the host") {
    float* gone = nullptr;
    {
        const Memory<float> x(ones);
        gone = x.data;
    }
    REQUIRE(launch(kernels.add_one, 1, 32, 0, nullptr, gone) == cudaSuccess);
    check_fault(cudaErrorIllegalAddress, "add_one", "add_one", "ld.global.f32", "thread (0, 0, 0)",
                "freed");
    std::vector<float> host(32);
    REQUIRE(launch(kernels.add_one, 1, 32, 0, nullptr, host.data()) == cudaSuccess);
    check_fault(cudaErrorIllegalAddress, "add_one", "add_one", "ld.global.f32", "thread (0, 0, 0)",
                "host");
}

TEST_CASE("less dynamic shared memory than the kernel uses") {
    const Memory<float> x(ones);
    REQUIRE(launch(kernels.dynamic_shared, 1, 32, 64, nullptr, x.data) == cudaSuccess);
    check_fault(cudaErrorIllegalAddress, "dynamic_shared", "dynamic_shared", "st.shared",
                "thread (16, 0, 0)", "64 bytes of shared memory");
}

TEST_CASE("two streams without an order") {
    const Memory<float> x(ones);
    cudaStream_t one = nullptr, two = nullptr;
    cudaEvent_t event = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventCreate(&event) == cudaSuccess);
    // An event between the two is an order, and so is a wait of the host.
    REQUIRE(launch(kernels.add_one, 1, 32, 0, one, x.data) == cudaSuccess);
    REQUIRE(cudaEventRecord(event, one) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(two, event) == cudaSuccess);
    REQUIRE(launch(kernels.add_one, 1, 32, 0, two, x.data) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(two) == cudaSuccess);
    REQUIRE(launch(kernels.add_one, 1, 32, 0, one, x.data) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    // The kernel of the second stream finds what the first has noted, whichever runs first in time.
    REQUIRE(launch(kernels.add_one, 1, 32, 0, one, x.data) == cudaSuccess);
    REQUIRE(launch(kernels.add_one, 1, 32, 0, two, x.data) == cudaSuccess);
    check_fault(cudaErrorLaunchFailure, "add_one", "add_one", "", "thread (0, 0, 0)",
                "no event or wait orders");
    // A write after two streams have read: one of the readers is not over.
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    const Memory<float> y(1024), z(1024);
    REQUIRE(launch(kernels.read_all, 1, 32, 0, one, (const float*)x.data, y.data) == cudaSuccess);
    REQUIRE(launch(kernels.read_all, 1, 32, 0, two, (const float*)x.data, z.data) == cudaSuccess);
    REQUIRE(launch(kernels.add_one, 1, 32, 0, two, x.data) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
    const std::string report = catena_emulator_last_fault();  // by the one that runs last
    for (const char* part : {"::read_all(", "::add_one(", "race: ", "no event or wait orders"})
        CHECK_MESSAGE(report.find(part) != std::string::npos, "expected '", part,
                      "', got: ", report);
    CHECK(cudaDeviceReset() == cudaSuccess);
    for (const cudaStream_t s : {one, two}) CHECK(cudaStreamDestroy(s) == cudaSuccess);
    CHECK(cudaEventDestroy(event) == cudaSuccess);
}
