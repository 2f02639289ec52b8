// Arrays on GPUs through the core: how a program uses the backend "cuda".
#include "gpu.hpp"

#include <catena/event.hpp>

#include <algorithm>
#include <thread>

TEST_CASE("the devices are listed, and are not the ones that a program begins with") {
    const auto all = Device::list();
    for (int i = 0; i < gpus(); ++i)
        CHECK(std::find(all.begin(), all.end(), "cuda:" + std::to_string(i)) != all.end());
    CHECK(!gpu().host_accessible());
    CHECK(Device::current().backend() == "cpu");
    CHECK(failure_of([] { gpu(gpus()); }) != "none");
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
    const Array y = x.to(second());
    CHECK(y.device() == second());
    CHECK(y.to_vector<float>()[999] == 999);
    CHECK(y.to(gpu(0)).reshape({10, 100}).to_vector<float>()[500] == 500);
    y.fill(7);
    CHECK(y.to_vector<float>() == std::vector<float>(1000, 7));
    x.copy_from(y);
    CHECK(x.to_vector<float>()[0] == 7);
    CHECK(x.to_vector<float>()[999] == 7);
}

TEST_CASE("other dtypes are made on the device: nobody waits for it") {
    const Stream stream(second());
    const using_stream scope(stream);
    Array x = Array::from<double>({1.5, -2, 1 + 0x1p-11 + 0x1p-40}, {3}).to(second());
    stream.synchronize();
    for (int i = 0; i < 200; ++i) x.fill(1.5);  // queued on the stream
    const Array there = x.astype(Dtype::float16);
    CHECK(there.device() == second());
    CHECK(there.dtype() == Dtype::float16);
    x.fill(-7);
    CHECK(there.to_vector<float>() == std::vector<float>(3, 1.5f));
    CHECK(x.astype(Dtype::int32).to_vector<std::int32_t>() == std::vector<std::int32_t>(3, -7));
    CHECK(Array::zeros({0, 2}, Dtype::float32).to(gpu()).astype(Dtype::bool8).size() == 0);
    // The same bits as on the host, for all pairs of dtypes.
    const Dtype all[] = {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64,
                         Dtype::int32,   Dtype::int64,    Dtype::uint8,   Dtype::bool8};
    for (const Dtype from : all)
        for (const Dtype to : all) {
            const Array host =
                Array::from<double>({0, 1, 2.75, 100.4, 3.0000001}, {5}).astype(from);
            CHECK(host.to(gpu()).astype(to).to_vector<double>() ==
                  host.astype(to).to_vector<double>());
        }
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
        host.fill(-1);  // waits until the copy has read it
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
    // On a GPU, the driver counts whole pages and also allocates memory for itself.
    const std::size_t large = emulated ? 4 << 20 : 1 << 30;
    const std::size_t slack = emulated ? 0 : 256 << 20;
    const Device device = second();
    const auto left = [&] {
        std::size_t free = 0;
        std::size_t total = 0;
        REQUIRE(cudaSetDevice(device.ordinal()) == cudaSuccess);
        REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
        REQUIRE(cudaSetDevice(0) == cudaSuccess);
        return free;
    };
    device.release_cached();
    const std::size_t before = left();
    {
        const Array x = Array::zeros({static_cast<std::int64_t>(large)}, Dtype::uint8, device);
        CHECK(device.memory().in_use >= static_cast<std::int64_t>(large));
        CHECK(before >= left() + large);
    }
    device.synchronize();
    device.release_cached();
    CHECK(left() + slack >= before);
    if (emulated) CHECK(left() == before);
}

TEST_CASE("what does not fit is refused in words, and then all is as before") {
    std::size_t left = 0;
    std::size_t total = 0;
    REQUIRE(cudaMemGetInfo(&left, &total) == cudaSuccess);
    const auto n = static_cast<std::int64_t>(2 * total);
    const std::string text = failure_of([&] { Array::empty({n}, Dtype::uint8, gpu()); });
    INFO(text);
    CHECK(text.find("cudaErrorMemoryAllocation") != std::string::npos);
    CHECK(text.find("expected " + std::to_string(n) + " bytes") != std::string::npos);
    CHECK(ramp(10).to(gpu()).to_vector<float>()[9] == 9);
}

TEST_CASE("several threads, each with a stream of its own") {
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([t, &wrong] {
            const Stream stream(gpu(t % 2 == 0 ? 0 : second().ordinal()));
            const using_stream scope(stream);
            for (int i = 0; i < 20; ++i) {
                const Array x = ramp(500, static_cast<float>(i * t))
                                    .to(gpu(t % 2 == 0 ? 0 : second().ordinal()));
                const Array y = x.copy();
                if (y.to_vector<float>()[499] != static_cast<float>(i * t + 499))
                    ++wrong[static_cast<std::size_t>(t)];
            }
        });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4, 0));
}
