// Tests the emulator: launches of kernels, and every error that it reports as a device would. The
// machine's own tests are in tests/cuda/machine.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "emulator/control.h"
#include "emulator/work.hpp"
#include "kernels.cuh"

namespace {

using namespace std::chrono_literals;

template <class T>
T* device_copy(const std::vector<T>& values) {
    T* data = nullptr;
    REQUIRE(cudaMalloc(&data, values.size() * sizeof(T)) == cudaSuccess);
    REQUIRE(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) ==
            cudaSuccess);
    return data;
}

template <class T>
std::vector<T> host_copy(const T* data, std::size_t n) {
    std::vector<T> values(n);
    REQUIRE(cudaMemcpy(values.data(), data, n * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return values;
}

template <class... P, class... A>
cudaError_t launch(dim3 grid, dim3 block, cudaStream_t stream, void (*kernel)(P...), A... args) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, args...);
}

// Waits for the device and returns the fault of its last kernel; then resets the device.
cudaError_t fault_of_last() {
    const cudaError_t error = cudaDeviceSynchronize();
    CHECK(cudaGetLastError() == error);
    CHECK(cudaGetLastError() == error);  // the error is sticky
    void* data = nullptr;
    CHECK(cudaMalloc(&data, 8) == error);
    CHECK(cudaDeviceReset() == cudaSuccess);
    CHECK(cudaGetLastError() == cudaSuccess);
    return error;
}

}  // namespace

TEST_CASE("every thread of every block runs once and knows its place") {
    const dim3 grid(3, 2, 2);
    const dim3 block(5, 3, 2);
    int* out = device_copy(std::vector<int>(12 * 30, 0));
    REQUIRE(launch(grid, block, nullptr, number_threads, out) == cudaSuccess);
    const std::vector<int> got = host_copy(out, 12 * 30);
    for (int i = 0; i < 12 * 30; ++i)
        CHECK(got[static_cast<std::size_t>(i)] == i / 30 * 10000 + i % 30);
    CHECK(cudaFree(out) == cudaSuccess);
}

TEST_CASE("arguments are converted to the types of the parameters, as by a call") {
    std::vector<double> values(1000);
    std::iota(values.begin(), values.end(), 0.0);
    double* x = device_copy(values);
    double* y = device_copy(values);
    REQUIRE(launch(2, 256, nullptr, scale<double>, x, y, 2, 1000) == cudaSuccess);
    CHECK(host_copy(y, 1000)[999] == 1998);
    double a = 3;
    std::int64_t n = 10;
    void* args[] = {&x, &y, &a, &n};
    REQUIRE(cudaLaunchKernel(scale<double>, 1, 32, args) == cudaSuccess);
    CHECK(host_copy(y, 11)[9] == 27);
    CHECK(host_copy(y, 11)[10] == 20);
    cudaFree(x);
    cudaFree(y);
}

TEST_CASE("barriers and shared memory: a sum by a tree") {
    std::vector<float> values(1001);
    std::iota(values.begin(), values.end(), 1.0f);
    float* x = device_copy(values);
    float* sum = device_copy(std::vector<float>{-1});
    for (const unsigned threads : {1u, 32u, 256u}) {
        REQUIRE(launch(1, threads, nullptr, block_sum, x, sum, 1001) == cudaSuccess);
        CHECK(host_copy(sum, 1)[0] == 1001 * 1002 / 2);
    }
    cudaFree(x);
    cudaFree(sum);
}

TEST_CASE("atomics") {
    const std::vector<double> values(999, 0.5);
    double* x = device_copy(values);
    double* sum = device_copy(std::vector<double>{1});
    REQUIRE(launch(8, 128, nullptr, atomic_sum, x, sum, 999) == cudaSuccess);
    CHECK(host_copy(sum, 1)[0] == 1 + 999 * 0.5);
    cudaFree(x);
    cudaFree(sum);
}

TEST_CASE("a barrier that not all threads reach is an error, and sticks") {
    REQUIRE(launch(1, 32, nullptr, half_a_barrier) == cudaSuccess);
    CHECK(fault_of_last() == cudaErrorLaunchFailure);
    REQUIRE(launch(2, 64, nullptr, traps, 40) == cudaSuccess);
    CHECK(fault_of_last() == cudaErrorLaunchFailure);
    int* out = device_copy(std::vector<int>(32, 0));  // the device works as before
    REQUIRE(launch(1, 32, nullptr, number_threads, out) == cudaSuccess);
    CHECK(host_copy(out, 32)[31] == 31);
    cudaFree(out);
}

TEST_CASE("launches that a device refuses") {
    CHECK(launch(0, 32, nullptr, half_a_barrier) == cudaErrorInvalidConfiguration);
    CHECK(launch(1, 1025, nullptr, half_a_barrier) == cudaErrorInvalidConfiguration);
    CHECK(launch(dim3(1, 65536), 1, nullptr, half_a_barrier) == cudaErrorInvalidConfiguration);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaGetLastError() == cudaSuccess);
    float* const none = nullptr;
    CHECK(launch(1, 257, nullptr, scale<float>, none, none, 1, 0) == cudaErrorInvalidValue);
    cudaLaunchConfig_t config = {};
    config.gridDim = config.blockDim = dim3(1);
    config.dynamicSmemBytes = (48 << 10) - 1024;  // block_sum() has 1024 bytes
    CHECK(cudaLaunchKernelEx(&config, block_sum, none, none, 0) == cudaSuccess);
    CHECK(fault_of_last() == cudaErrorIllegalAddress);  // null
    ++config.dynamicSmemBytes;
    CHECK(cudaLaunchKernelEx(&config, block_sum, none, none, 0) == cudaErrorInvalidValue);
    CHECK(cudaLaunchKernel(&config, 1, 1, nullptr, 0, nullptr) == cudaErrorInvalidDeviceFunction);
    cudaGetLastError();
    cudaStream_t stream = nullptr;
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    CHECK(launch(1, 1, stream, traps, 5) == cudaErrorInvalidResourceHandle);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
    cudaGetLastError();
}

TEST_CASE("launches with <<<>>>") {
    int* out = device_copy(std::vector<int>(64, 0));
    number_threads<<<2, 32>>>(out);
    REQUIRE(cudaGetLastError() == cudaSuccess);
    CHECK(host_copy(out, 64)[63] == 10031);
    number_threads<<<2, 2000>>>(out);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    cudaFree(out);
}

TEST_CASE("an access of memory of the host, freed memory or a stranger's is a fault") {
    std::vector<double> host(8);
    double* x = device_copy(host);
    REQUIRE(launch(1, 8, nullptr, scale<double>, host.data(), x, 1.0, 8) == cudaSuccess);
    CHECK(fault_of_last() == cudaErrorIllegalAddress);
    double* gone = device_copy(host);
    REQUIRE(cudaFree(gone) == cudaSuccess);
    REQUIRE(launch(1, 8, nullptr, scale<double>, gone, x, 1.0, 8) == cudaSuccess);
    CHECK(fault_of_last() == cudaErrorIllegalAddress);
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    double* far = device_copy(host);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    REQUIRE(launch(1, 8, nullptr, scale<double>, far, x, 1.0, 8) == cudaSuccess);
    CHECK(fault_of_last() == cudaErrorIllegalAddress);
    REQUIRE(cudaDeviceEnablePeerAccess(1, 0) == cudaSuccess);
    CHECK(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
    REQUIRE(launch(1, 8, nullptr, scale<double>, far, x, 1.0, 8) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaDeviceDisablePeerAccess(1) == cudaSuccess);
    cudaGetLastError();
    cudaFree(x);
    cudaFree(far);
}

TEST_CASE("copies check kinds and ranges") {
    std::vector<int> host(16, 7);
    int* x = device_copy(host);
    const auto copy = [&](void* dst, const void* src, cudaMemcpyKind kind, std::size_t n) {
        const cudaError_t error = cudaMemcpy(dst, src, n, kind);
        cudaGetLastError();
        return error;
    };
    CHECK(copy(host.data(), x, cudaMemcpyHostToDevice, 8) == cudaErrorInvalidValue);
    CHECK(copy(x, host.data(), cudaMemcpyDeviceToHost, 8) == cudaErrorInvalidValue);
    CHECK(copy(x, host.data(), cudaMemcpyDeviceToDevice, 8) == cudaErrorInvalidValue);
    CHECK(copy(x, host.data(), cudaMemcpyHostToDevice, 65) == cudaErrorInvalidValue);
    CHECK(copy(x + 15, host.data(), cudaMemcpyHostToDevice, 4) == cudaSuccess);
    CHECK(copy(x + 16, host.data(), cudaMemcpyHostToDevice, 1) == cudaErrorInvalidValue);
    CHECK(copy(nullptr, host.data(), cudaMemcpyDefault, 1) == cudaErrorInvalidValue);
    CHECK(cudaFree(x + 1) == cudaErrorInvalidValue);
    CHECK(cudaFree(x) == cudaSuccess);
    CHECK(cudaFree(x) == cudaErrorInvalidValue);
    CHECK(cudaFree(host.data()) == cudaErrorInvalidValue);
    cudaGetLastError();
}

TEST_CASE("a write behind the end of a block is a fault") {
    char* data = nullptr;
    REQUIRE(cudaMalloc(&data, 100) == cudaSuccess);
    REQUIRE(launch(1, 1, nullptr, write_at, data, 99) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    for (const int at : {-1, 100, 101}) {
        REQUIRE(launch(1, 1, nullptr, write_at, data, at) == cudaSuccess);
        CHECK(fault_of_last() == cudaErrorIllegalAddress);
    }
    CHECK(cudaFree(data) == cudaSuccess);
}

TEST_CASE("a read of memory that nobody has written is a fault; copies keep what is known of it") {
    double* x = nullptr;
    double* y = nullptr;
    REQUIRE(cudaMalloc(&x, 80) == cudaSuccess);
    REQUIRE(cudaMalloc(&y, 80) == cudaSuccess);
    const auto read = [&] {
        REQUIRE(launch(1, 8, nullptr, scale<double>, x, y, 1.0, 8) == cudaSuccess);
        if (cudaDeviceSynchronize() == cudaSuccess) return cudaSuccess;
        return fault_of_last();
    };
    CHECK(read() == cudaErrorLaunchFailure);
    REQUIRE(cudaMemsetAsync(x, 0, 63) == cudaSuccess);
    CHECK(read() == cudaErrorLaunchFailure);
    REQUIRE(cudaMemsetAsync(x, 0, 64) == cudaSuccess);
    CHECK(read() == cudaSuccess);  // and writes y
    double* z = nullptr;
    REQUIRE(cudaMalloc(&z, 80) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(x, z, 80, cudaMemcpyDeviceToDevice) == cudaSuccess);
    CHECK(read() == cudaErrorLaunchFailure);
    REQUIRE(cudaMemcpyAsync(x, y, 80, cudaMemcpyDeviceToDevice) == cudaSuccess);
    CHECK(read() == cudaSuccess);
    CHECK(host_copy(z, 1).size() == 1);  // the host may read it
    for (double* data : {x, y, z}) CHECK(cudaFree(data) == cudaSuccess);
}

TEST_CASE("a copy that runs after its memory was freed is a fault") {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    static std::atomic<bool> go = false;
    const auto hold = [](void*) {
        while (!go) std::this_thread::sleep_for(100us);
    };
    int* x = device_copy(std::vector<int>(2, 0));
    REQUIRE(cudaLaunchHostFunc(stream, hold, nullptr) == cudaSuccess);
    REQUIRE(cudaMemsetAsync(x, 1, 4, stream) == cudaSuccess);
    REQUIRE(cudaFree(x) == cudaSuccess);
    go = true;
    CHECK(fault_of_last() == cudaErrorIllegalAddress);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("work of a library is checked like a kernel, and writes memory") {
    using catena_emulator::work;
    double* x = nullptr;
    double* y = nullptr;
    REQUIRE(cudaMalloc(&x, 64) == cudaSuccess);
    REQUIRE(cudaMalloc(&y, 64) == cudaSuccess);
    REQUIRE(work(nullptr, {{x, 64, true}}, [x] { std::fill_n(x, 8, 3.0); }) == cudaSuccess);
    REQUIRE(launch(1, 8, nullptr, scale<double>, x, y, 2, 8) == cudaSuccess);
    CHECK(host_copy(y, 8)[7] == 6);
    double on_host = 0;
    for (const catena_emulator::Range& wrong :
         {catena_emulator::Range{x, 65}, {x + 8, 1}, {&on_host, 8}}) {
        REQUIRE(work(nullptr, {wrong}, [] { FAIL("it runs"); }) == cudaSuccess);
        CHECK(fault_of_last() == cudaErrorIllegalAddress);
    }
    CHECK(work(nullptr, {{nullptr, 0}}, [] {}) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    cudaFree(x);
    cudaFree(y);
}

TEST_CASE("memory runs out, and comes back") {
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    REQUIRE(cudaMemGetInfo(&free_bytes, &total) == cudaSuccess);
    CHECK(total == std::size_t{1} << 30);
    void* data = nullptr;
    CHECK(cudaMalloc(&data, total + 1) == cudaErrorMemoryAllocation);
    CHECK(data == nullptr);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    REQUIRE(cudaMalloc(&data, 1000) == cudaSuccess);
    std::size_t less = 0;
    REQUIRE(cudaMemGetInfo(&less, &total) == cudaSuccess);
    CHECK(less == free_bytes - 1000);
    CHECK(cudaFree(data) == cudaSuccess);
}

TEST_CASE("streams do their work in order, beside the host") {
    cudaStream_t one = nullptr;
    cudaStream_t two = nullptr;
    cudaEvent_t event = nullptr;
    cudaEvent_t end = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventCreate(&event) == cudaSuccess);
    REQUIRE(cudaEventCreate(&end) == cudaSuccess);
    static std::atomic<bool> go = false;
    static std::vector<int> order;
    const auto wait = [](void*) {
        while (!go) std::this_thread::sleep_for(100us);
        order.push_back(1);
    };
    REQUIRE(cudaLaunchHostFunc(one, wait, nullptr) == cudaSuccess);
    REQUIRE(cudaEventRecord(event, one) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(two, event) == cudaSuccess);
    REQUIRE(cudaLaunchHostFunc(
                two, [](void*) { order.push_back(2); }, nullptr) == cudaSuccess);
    REQUIRE(cudaEventRecord(end, two) == cudaSuccess);
    CHECK(cudaStreamQuery(one) == cudaErrorNotReady);
    CHECK(cudaEventQuery(end) == cudaErrorNotReady);
    float ms = -1;
    CHECK(cudaEventElapsedTime(&ms, event, end) == cudaErrorNotReady);
    cudaGetLastError();
    go = true;
    REQUIRE(cudaEventSynchronize(end) == cudaSuccess);
    CHECK(order == std::vector<int>{1, 2});
    CHECK(cudaStreamSynchronize(two) == cudaSuccess);
    CHECK(cudaStreamQuery(two) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&ms, event, end) == cudaSuccess);
    CHECK(ms >= 0);
    for (cudaEvent_t e : {event, end}) CHECK(cudaEventDestroy(e) == cudaSuccess);
    for (cudaStream_t s : {one, two}) CHECK(cudaStreamDestroy(s) == cudaSuccess);
}

// CTest runs this case separately, with CATENA_EMULATOR_STAGING=1.
TEST_CASE("a copy of pageable memory waits for its stream" * doctest::skip()) {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    static std::atomic<bool> done = false;
    const auto work = [](void*) {
        std::this_thread::sleep_for(50ms);
        done = true;
    };
    int* x = device_copy(std::vector<int>(1, 0));
    const int plain = 1;
    REQUIRE(cudaLaunchHostFunc(stream, work, nullptr) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(x, &plain, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    CHECK(done);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    cudaFree(x);
}

TEST_CASE("a copy to the device has read pageable memory on return, pinned memory not") {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    static std::atomic<bool> go = false;
    const auto hold = [](void*) {
        while (!go) std::this_thread::sleep_for(100us);
    };
    int* x = device_copy(std::vector<int>(2, 0));
    int* pinned = nullptr;
    REQUIRE(cudaMallocHost(&pinned, 4) == cudaSuccess);
    int plain = 1;
    *pinned = 1;
    REQUIRE(cudaLaunchHostFunc(stream, hold, nullptr) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(x, &plain, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(x + 1, pinned, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
    plain = 2;
    *pinned = 2;
    go = true;
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(host_copy(x, 2) == std::vector<int>{1, 2});
    CHECK(cudaFreeHost(pinned) == cudaSuccess);
    CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    cudaFree(x);
}

TEST_CASE("a graph is recorded once and launched often") {
    cudaStream_t stream = nullptr;
    cudaStream_t side = nullptr;
    cudaEvent_t fork = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming) == cudaSuccess);
    int* x = device_copy(std::vector<int>(30, 0));
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    REQUIRE(launch(1, 30, stream, number_threads, x) == cudaSuccess);
    REQUIRE(cudaEventRecord(fork, stream) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(side, fork) == cudaSuccess);
    REQUIRE(launch(1, 30, side, number_threads, x) == cudaSuccess);
    REQUIRE(cudaEventRecord(fork, side) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(stream, fork) == cudaSuccess);
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    std::size_t n = 0;
    REQUIRE(cudaGraphGetNodes(graph, nullptr, &n) == cudaSuccess);
    CHECK(n == 2);
    cudaGraphExec_t exec = nullptr;
    REQUIRE(cudaGraphInstantiate(&exec, graph) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    CHECK(host_copy(x, 30)[29] == 0);  // not run yet
    for (int i = 0; i < 3; ++i) REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(host_copy(x, 30)[29] == 6 * 29);

    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
    cudaGetLastError();
    CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
    cudaEventDestroy(fork);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(side);
    cudaFree(x);
}

TEST_CASE("memory is not made nor freed by the thread that captures, but in the relaxed mode") {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    cudaGraph_t graph = nullptr;
    int* x = nullptr;
    int* y = nullptr;
    for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
        const auto refused = [&](cudaError_t (*call)(int**, int**)) {
            REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
            CHECK(call(&x, &y) == cudaErrorStreamCaptureUnsupported);
            CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
        };
        const auto make = [](int** a, int**) { return cudaMalloc(a, 4); };
        const auto pin = [](int**, int** b) { return cudaMallocHost(b, 4); };
        refused(make);
        refused(pin);
        REQUIRE(make(&x, &y) == cudaSuccess);
        REQUIRE(pin(&x, &y) == cudaSuccess);
        refused([](int** a, int**) { return cudaFree(*a); });
        refused([](int**, int** b) { return cudaFreeHost(*b); });
        cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
        REQUIRE(cudaStreamBeginCapture(stream, mode) == cudaSuccess);
        REQUIRE(cudaThreadExchangeStreamCaptureMode(&relaxed) == cudaSuccess);
        CHECK(cudaFree(x) == cudaSuccess);
        CHECK(cudaFreeHost(y) == cudaSuccess);
        CHECK(make(&x, &y) == cudaSuccess);
        CHECK(pin(&x, &y) == cudaSuccess);
        REQUIRE(cudaThreadExchangeStreamCaptureMode(&relaxed) == cudaSuccess);
        REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
        cudaGraphDestroy(graph);
        cudaFree(x);
        cudaFreeHost(y);
    }
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    CHECK(cudaMallocHost(&y, 4) == cudaSuccess);
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    cudaGraphDestroy(graph);
    cudaFreeHost(y);
    cudaStreamDestroy(stream);
    cudaGetLastError();
}

TEST_CASE("a process that fork() makes cannot use devices") {
    int n = 0;
    REQUIRE(cudaGetDeviceCount(&n) == cudaSuccess);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(cudaGetDeviceCount(&n));
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == cudaErrorInitializationError);
    CHECK(cudaGetDeviceCount(&n) == cudaSuccess);
}

TEST_CASE("a fault from outside fails all that follows on the device, and on no other") {
    catena_emulator_fault(0, cudaErrorIllegalAddress);
    int* x = nullptr;
    CHECK(cudaMalloc(&x, 4) == cudaErrorIllegalAddress);
    CHECK(cudaSetDevice(1) == cudaSuccess);
    CHECK(cudaMalloc(&x, 4) == cudaSuccess);
    CHECK(cudaFree(x) == cudaSuccess);
    CHECK(cudaSetDevice(0) == cudaErrorIllegalAddress);
    CHECK(cudaDeviceReset() == cudaSuccess);
    CHECK(cudaMalloc(&x, 4) == cudaSuccess);
    CHECK(cudaFree(x) == cudaSuccess);
}
