// Tests without a GPU: programs work, and calls that need a GPU throw an error with the reason.
#include <catena/catena.hpp>

#include "temporary.hpp"

#include <cstdlib>

using namespace catena;
namespace F = catena::functions;

namespace {

// Hides the machine's GPUs, before the first call of catena.
const int none = setenv("CATENA_GPU", "nowhere", 1);

template <class F>
void needs(F&& f) {
    const std::string text = error_of<DeviceError>(f);
    contains(text, "expected a GPU, got none");
    contains(text, "[device] name: expected a device of ");
}

}  // namespace

TEST_CASE("harmless") {
    const Device before = Device::current();
    CHECK(cuda::backend() == "nowhere");
    CHECK(cuda::device_count() == 0);
    CHECK_FALSE(cuda::available());
    contains(cuda::reason(), "[device] name: expected a device of ");
    cuda::shutdown();
    cuda::shutdown();
    CHECK(cuda::host() == before);
    CHECK_FALSE(cuda::is_gpu(before));
    const Array x = Array::ones({2});
    CHECK(cuda::to_cpu(x).body() == x.body());
    CHECK_FALSE(cuda::get_device(x));
    CHECK(cuda::get_device(before) == before);
    CHECK_FALSE(cuda::using_device(x, before).is_active());
    CHECK(cuda::copy(x).device() == before);
    CHECK(cuda::to_cpu_async(x).body() == x.body());
    CHECK_FALSE(cuda::ipc_available());
    FunctionSet set{{"l", links::Linear(2, 2)}};
    CHECK(&set.to_cpu() == &set);
    cuda::use_device(before);
    CHECK(Device::current() == before);
    use_device({});
}

TEST_CASE("told why") {
    const Array x = Array::ones({2});
    links::Linear link(2, 2);
    needs([] { cuda::init(); });
    needs([] { cuda::init(1); });
    needs([] { (void)cuda::get_device(); });
    needs([] { (void)cuda::get_device(0); });
    needs([] { cuda::use_device(0); });
    needs([] { const cuda::using_device scope(0); });
    needs([&] { (void)cuda::to_gpu(x); });
    needs([&] { (void)cuda::to_gpu(x, 1); });
    needs([&] { (void)cuda::copy(x, {.out_device = 0}); });
    needs([] { (void)cuda::empty({2}); });
    needs([] { (void)cuda::full({2}, 1); });
    needs([] { (void)cuda::zeros({2}); });
    needs([] { (void)cuda::ones({2}); });
    needs([&] { (void)cuda::empty_like(x); });
    needs([&] { (void)cuda::full_like(x, 1); });
    needs([] { (void)cuda::get_generator(); });
    needs([] { cuda::seed(1); });
    needs([] { (void)cuda::mem_alloc(8); });
    needs([] { (void)cuda::memory_stats(); });
    needs([] { cuda::release_cached(); });
    needs([] { (void)cuda::pinned({2}); });
    needs([&] { (void)cuda::to_gpu_async(x); });
    needs([&] { (void)cuda::copy_async(x, {.out_device = 0}); });
    needs([] { (void)cuda::zeros({2}, Dtype::float32, cuda::Stream()); });
    needs([] { (void)cuda::get_cublas_handle(); });
    needs([] { cuda::IPCEvent{}; });
    needs([&] { link.to_gpu(); });
    CHECK_THROWS_AS(cuda::IPCArrayHandle{x}, InvalidError);
    CHECK(link.W.device() == cuda::host());
    CHECK(Device::current() == cuda::host());
}

TEST_CASE("F::copy to a GPU's number stays on the host, in new memory") {
    const Variable x(Array::from({1.0, 2.0}, {2}));
    const Variable y = F::copy(F::copy(x, 0), 1);
    CHECK(y.device() == cuda::host());
    CHECK(y.data().body() != x.data().body());
    F::sum(y * y).backward();
    CHECK(x.grad().to_vector<double>() == std::vector<double>{2, 4});
    CHECK(F::copy(x.data(), 0).to_vector<double>() == std::vector<double>{1, 2});
    CHECK_THROWS_AS((void)F::copy(x, -2), DeviceError);
    // An array on another CPU device is not copied: only x on the host stands in for a GPU.
    CHECK_THROWS_AS((void)F::copy(x.data().to(Device::get("cpu:1")), 0), DeviceError);
    contains(error_of<InvalidError>([] { (void)F::copy(Variable(), Device()); }), "[copy] x");
}

TEST_CASE("F::copy to -1 goes to the host") {
    const Variable x(Array::from({1.0, 2.0}, {2}));
    const Variable y = F::copy(x, -1);
    CHECK(y.device() == cuda::host());
    CHECK(y.data().body() != x.data().body());
    F::sum(y * y).backward();
    CHECK(x.grad().to_vector<double>() == std::vector<double>{2, 4});
    const Array there = x.data().to(Device::get("cpu:1"));
    CHECK(F::copy(there, -1).device() == cuda::host());
    CHECK(F::copy(there, -1).to_vector<double>() == std::vector<double>{1, 2});
}

TEST_CASE("the host alone is no GPU") {
    CHECK(none == 0);
    setenv("CATENA_CPU_DEVICES", "1", 1);
    cuda::set_backend("cpu");
    CHECK(cuda::device_count() == 0);
    CHECK(cuda::reason() == "cpu:0 is the only device of its backend, and the host's");
    contains(error_of<DeviceError>([] { (void)cuda::zeros({1}); }), "cpu:0 is the only device");
    unsetenv("CATENA_CPU_DEVICES");
    CHECK(cuda::device_count() == 7);
    cuda::set_backend("");
}
