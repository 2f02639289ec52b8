// Arrays on emulated GPUs, by the core: what a program sees of the backend "cuda".
#include <cuda_runtime.h>
#include <catena/core.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>

#include "emulator/control.h"

using namespace catena;

namespace {

Device gpu(int ordinal = 0) { return Device::get("cuda:" + std::to_string(ordinal)); }

Array ramp(std::int64_t n, float first = 0) {
    std::vector<float> values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), first);
    return Array::from(values, {n});
}

template <class Body>
std::string failure_of(const Body& body) {
    try {
        body();
    } catch (const Error& error) {
        return error.what();
    }
    return "none";
}

}  // namespace

TEST_CASE("the devices are listed, and are not the ones that a program begins with") {
    const auto all = Device::list();
    for (const char* name : {"cuda:0", "cuda:1"})
        CHECK(std::find(all.begin(), all.end(), name) != all.end());
    CHECK(!gpu().host_accessible());
    CHECK(Device::current().backend() == "cpu");
    CHECK(failure_of([] { Device::get("cuda:2"); }) != "none");
}

TEST_CASE("arrays go there and come back: every dtype, empty, without axes, odd sizes") {
    for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3},
                                 std::int64_t{1001}, std::int64_t{1} << 20}) {
        const Array x = ramp(n);
        const Array there = x.to(gpu());
        CHECK(there.device() == gpu());
        CHECK(there.to_vector<float>() == x.to_vector<float>());
        CHECK(there.to(Device::get("cpu")).to_vector<float>() == x.to_vector<float>());
    }
    const Array scalar = Array::from<double>({2.5}, {}).to(gpu());
    CHECK(scalar.item<double>() == 2.5);
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float64, Dtype::uint8,
                              Dtype::int32, Dtype::int64, Dtype::bool8}) {
        const Array x = ramp(2).astype(dtype);
        CHECK(x.to(gpu()).to_vector<double>() == std::vector<double>{0, 1});
    }
}

TEST_CASE("copies within a device and between devices; views; fills") {
    const Array x = ramp(1000).to(gpu(0));
    CHECK(x.copy().to_vector<float>()[999] == 999);
    const Array y = x.to(gpu(1));
    CHECK(y.device() == gpu(1));
    CHECK(y.to_vector<float>()[999] == 999);
    CHECK(y.to(gpu(0)).reshape({10, 100}).to_vector<float>()[500] == 500);
    y.fill(7);
    CHECK(y.to_vector<float>() == std::vector<float>(1000, 7));
    x.copy_from(y);
    CHECK(x.to_vector<float>()[0] == 7);
    CHECK(x.to_vector<float>()[999] == 7);
}

TEST_CASE("streams: copies beside the host, and nobody has to wait by hand") {
    const Stream one(gpu());
    const Stream two(gpu());
    CHECK(one.native() != nullptr);
    CHECK(one.native() != two.native());
    for (int round = 0; round < 10; ++round) {
        const Array host = Array::pinned({1000}, Dtype::float32, gpu());
        CHECK(host.is_pinned());
        host.copy_from(ramp(1000, static_cast<float>(round)));
        const Array there = host.to(gpu(), one);
        const Array back = there.to(Device::get("cpu"), two);
        host.fill(-1);  // waits until it was read
        CHECK(back.to_vector<float>()[999] == static_cast<float>(999 + round));
    }
}

TEST_CASE("events: order between streams, and time") {
    const Stream one(gpu());
    const Stream two(gpu());
    const Event begin(gpu());
    const Event end(gpu());
    begin.record(one);
    const Array x = ramp(100000).to(gpu(), one);
    end.record(one);
    two.wait(end);
    two.synchronize();
    CHECK(end.done());
    CHECK(end.elapsed_since(begin) >= 0);
    CHECK(x.to_vector<float>()[99999] == 99999);
}

TEST_CASE("memory is counted, kept and given back") {
    gpu(1).release_cached();
    std::size_t before = 0;
    std::size_t total = 0;
    REQUIRE(cudaSetDevice(1) == cudaSuccess);
    REQUIRE(cudaMemGetInfo(&before, &total) == cudaSuccess);
    {
        const Array x = ramp(1 << 20).to(gpu(1));
        CHECK(gpu(1).memory().in_use >= 4 << 20);
        std::size_t left = 0;
        REQUIRE(cudaMemGetInfo(&left, &total) == cudaSuccess);
        CHECK(before - left >= 4 << 20);
    }
    gpu(1).synchronize();
    gpu(1).release_cached();
    std::size_t after = 0;
    REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
    CHECK(after == before);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("what does not fit is refused in words, and then all is as before") {
    const std::string text = failure_of([] { Array::empty({400 << 20}, Dtype::uint8, gpu()); });
    INFO(text);
    CHECK(text.find("cudaErrorMemoryAllocation") != std::string::npos);
    CHECK(text.find("expected 419430400 bytes") != std::string::npos);
    CHECK(ramp(10).to(gpu()).to_vector<float>()[9] == 9);
}

TEST_CASE("several threads, each with a stream of its own") {
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([t, &wrong] {
            const Stream stream(gpu(t % 2));
            const using_stream scope(stream);
            for (int i = 0; i < 20; ++i) {
                const Array x = ramp(500, static_cast<float>(i * t)).to(gpu(t % 2));
                const Array y = x.copy();
                if (y.to_vector<float>()[499] != static_cast<float>(i * t + 499))
                    ++wrong[static_cast<std::size_t>(t)];
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("a fault of a device is an error with its name, for whoever waits") {
    const Array x = ramp(10).to(gpu(1));
    gpu(1).synchronize();
    catena_emulator_fault(1, cudaErrorIllegalAddress);
    const std::string text = failure_of([&] { x.to_vector<float>(); });
    INFO(text);
    CHECK(text.find("on device 1: cudaErrorIllegalAddress") != std::string::npos);
    CHECK(ramp(10).to(gpu(0)).to_vector<float>()[9] == 9);
    REQUIRE(cudaSetDevice(1) == cudaErrorIllegalAddress);
    REQUIRE(cudaDeviceReset() == cudaSuccess);
    REQUIRE(cudaSetDevice(0) == cudaSuccess);
    CHECK(x.to_vector<float>()[9] == 9);
}
