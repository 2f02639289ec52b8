// Manual of Chainer 1.0.1, section 1.3.2, and using_device() of section 2.2.1: arrays on GPUs, and
// the current GPU. CATENA_GPU=cpu runs it on logical CPU devices.
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;
using gradient_check::assert_allclose;

int main() try {
    cuda::init();
    {
        const Array x_cpu = Array::ones({5, 4, 3});
        const Array x_gpu = cuda::to_gpu(x_cpu);
        const Array ones = cuda::ones({5, 4, 3});
        assert_allclose(x_gpu, ones);
        if (x_gpu.device() != ones.device()) return 1;
        assert_allclose(cuda::to_cpu(x_gpu), x_cpu);
    }
    if (cuda::device_count() < 2) return 0;
    {
        const using_device before(Device::current());  // restores the current device
        cuda::use_device(1);
        const Array x_gpu1 = cuda::empty({4, 3});
        if (x_gpu1.device() != cuda::get_device(1)) return 1;
    }
    Array x_gpu1;
    {
        const cuda::using_device scope(1);
        x_gpu1 = cuda::zeros({4, 3});
    }
    {
        const cuda::using_device scope(x_gpu1);
        const Array y_gpu1 = x_gpu1 + 1;
        assert_allclose(y_gpu1, Array::ones({4, 3}));
    }
    const Arrays arrays = {Array::ones({4, 3}), x_gpu1};
    {
        const cuda::using_device scope(arrays);  // using_device(*arrays): the first array on a GPU
        if (Device::current() != cuda::get_device(1)) return 1;
    }
    const Arrays on_host = {arrays[0]};
    if (cuda::using_device(on_host).is_active()) return 1;
    const using_device before(Device::current());
    cuda::use_device(0);
    const Array x0 = cuda::ones({4, 3});
    const Array x1 = cuda::copy(x0, {.out_device = 1});
    assert_allclose(x1, x0);
    return x1.device() == cuda::get_device(1) ? 0 : 1;
} catch (const Error& e) {
    std::fprintf(stderr, "gpu_arrays: %s\n", e.what());
    return 1;
}
