// Tests of GPU devices: enumeration, names, the current device.
#include "gpus.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

using namespace gpus;

TEST_CASE("what a device is named by") {
    const SameDevice same;
    const Array on_cpu = Array::ones({2}, Dtype::float32, cuda::host());
    const Array on_gpu = Array::ones({2}, Dtype::float32, second());
    CHECK(cuda::available());
    CHECK(cuda::reason().empty());
    CHECK((first() != second()) == (cuda::device_count() > 1));
    CHECK(first().backend() == cuda::backend());
    CHECK_FALSE(cuda::is_gpu(cuda::host()));
    CHECK_FALSE(cuda::is_gpu(Device()));
    CHECK(cuda::host().host_accessible());

    CHECK(cuda::get_device() == first());
    CHECK(cuda::get_device(Device()) == first());
    CHECK(cuda::get_device(second_id()) == second());
    CHECK(cuda::get_device(second()) == second());
    CHECK(cuda::get_device(second().name()) == second());
    CHECK(cuda::get_device(second().name().c_str()) == second());
    CHECK(cuda::get_device(on_gpu) == second());
    CHECK(cuda::get_device(on_gpu.reshape({2, 1})) == second());  // a view
    CHECK(cuda::get_device(Variable(on_gpu)) == second());
    CHECK(cuda::get_device(cuda::host()) == cuda::host());
    CHECK_FALSE(cuda::get_device(on_cpu));
    CHECK_FALSE(cuda::get_device(Variable(on_cpu)));
    CHECK(cuda::get_gpu("x", on_gpu) == second());

    const catena::using_device scope(second());
    CHECK(cuda::get_device() == second());  // the current device
    CHECK(cuda::get_gpu("x") == second());
}

TEST_CASE("what names no GPU") {
    const SameDevice same;
    const int n = cuda::device_count();
    contains(error_of<DeviceError>([&] { (void)cuda::get_device(n); }),
             "[cuda] device: expected the number of a GPU, 0 to " + std::to_string(n - 1) +
                 ", got " + std::to_string(n));
    CHECK_THROWS_AS((void)cuda::get_device(-1), DeviceError);
    CHECK_THROWS_AS((void)cuda::get_device("nowhere:0"), DeviceError);
    CHECK_THROWS_AS((void)cuda::get_device(Array()), InvalidError);
    CHECK_THROWS_AS((void)cuda::get_device(Variable()), InvalidError);
    const Array on_cpu = Array::ones({2}, Dtype::float32, cuda::host());
    contains(error_of<InvalidError>([&] { (void)cuda::get_gpu("here", on_cpu); }),
             "[here] device: expected a GPU, got what is on none");
    contains(error_of<InvalidError>([&] { (void)cuda::get_gpu("here", cuda::host()); }),
             "[here] device: expected a GPU, got " + cuda::host().name());
    CHECK_THROWS_AS(cuda::use_device(on_cpu), InvalidError);
    CHECK_THROWS_AS(cuda::use_device(n), DeviceError);
    CHECK_THROWS_AS(cuda::init(on_cpu), InvalidError);
    CHECK_THROWS_AS(cuda::init(n), DeviceError);
    CHECK_THROWS_AS(cuda::using_device{n}, DeviceError);
}

TEST_CASE("use_device: until the next, in this thread") {
    const Device before = Device::current();
    {
        const catena::using_device scope(before);
        cuda::use_device(second_id());
        CHECK(Device::current() == second());
        CHECK(Array::zeros({2}).device() == second());
        CHECK(cuda::empty({2}).device() == second());
        CHECK(links::Linear(2, 2).W.device() == second());
        std::thread([&] { CHECK(Device::current() == before); }).join();
        cuda::use_device(Array::ones({1}, Dtype::float32, first()));
        CHECK(Device::current() == first());
        cuda::use_device(cuda::host());
        CHECK(Array::zeros({2}).device() == cuda::host());
    }
    CHECK(Device::current() == before);
}

TEST_CASE("using_device: the first that names a GPU") {
    const SameDevice same;
    const Device before = Device::current();
    const Array on_cpu = Array::ones({2}, Dtype::float32, cuda::host());
    const Array on_0 = Array::ones({2}, Dtype::float32, first());
    const Variable on_1(Array::ones({2}, Dtype::float32, second()));
    {
        const cuda::using_device scope(on_cpu, on_1, on_0);
        CHECK(scope.is_active());
        CHECK(scope.device() == second());
        CHECK(Device::current() == second());
        {
            const cuda::using_device none(on_cpu, cuda::host(), Device());
            CHECK_FALSE(none.is_active());
            CHECK_FALSE(none.device());
            CHECK(Device::current() == second());
            const cuda::using_device inner(0);
            CHECK(Device::current() == first());
        }
        CHECK(Device::current() == second());
    }
    CHECK(Device::current() == before);
    CHECK_FALSE(cuda::using_device().is_active());
    const std::vector<Array> arrays{on_cpu, on_0};
    CHECK(cuda::using_device(arrays).device() == first());
    CHECK_FALSE(cuda::using_device(std::span<const Array>()).is_active());
    CHECK(cuda::using_device(second(), 0).device() == second());
}

TEST_CASE("init chooses, shutdown forgets") {
    const SameDevice same;
    cuda::shutdown();
    cuda::init(second_id());
    CHECK(cuda::get_device() == second());
    std::thread([&] { CHECK(cuda::get_device() == second()); }).join();  // process-wide
    const Array x = cuda::ones({3});
    CHECK(x.device() == second());
    cuda::init();
    CHECK(cuda::get_device() == second());
    cuda::shutdown();
    cuda::shutdown();
    CHECK(cuda::get_device() == first());
    CHECK(values(x) == Floats{1, 1, 1});
    CHECK(cuda::ones({2}).device() == first());
    cuda::init(x);
    CHECK(cuda::get_device() == second());
    cuda::shutdown();
}

TEST_CASE("a forked process is told that GPUs stay behind") {
    cuda::init();
    const Device current = second();
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        int code = 0;
        const auto refused = [&](const auto& call) {
            try {
                call();
                code = 1;
            } catch (const DeviceError& error) {
                const std::string_view text = error.what();
                if (text.find("forked before") == std::string_view::npos) code = 2;
            }
        };
        refused([] { cuda::init(); });
        refused([] { cuda::get_device(); });  // checks the device chosen by init()
        const catena::using_device scope(current);
        refused([] { cuda::get_device(); });  // checks the thread's current device
        cuda::shutdown();
        _exit(code);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    cuda::shutdown();
}

TEST_CASE("another backend, and none") {
    const SameDevice same;
    const std::string before = cuda::backend();
    const int n = cuda::device_count();
    cuda::set_backend("nowhere");
    CHECK(cuda::backend() == "nowhere");
    CHECK(cuda::device_count() == 0);
    CHECK_THROWS_AS(cuda::get_device(), DeviceError);  // no matter which one was current
    cuda::set_backend("");
    CHECK(cuda::get_device() == first());
    CHECK(cuda::backend() == before);
    CHECK(cuda::device_count() == n);
}

TEST_CASE("the names of Chainer's cuda module") {
    const SameDevice same;
    const cuda::GPUArray x = cuda::zeros({2});
    const cuda::DeviceUser user(x);
    CHECK(user.device() == x.device());
}
