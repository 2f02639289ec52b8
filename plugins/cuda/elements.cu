// Kernels for arrays that change outside of any function: one fills memory with a value, one converts
// dtypes. Also the lowest capability that this build has code for.
#include <cuda_runtime.h>

#include <cstring>

#include "backend.hpp"
#include "catena/plugin/cuda/elementwise.cuh"

namespace catena_cuda {
namespace {

using namespace catena::plugin;

template <class Rule>
cudaError_t each(cudaStream_t stream, int processors, std::uint64_t n, const Rule& rule) {
    const std::uint64_t wanted = (n + cuda::block - 1) / cuda::block;
    // At most 8 blocks per multiprocessor, about as many as can run at the same time.
    const std::uint64_t most = static_cast<std::uint64_t>(processors) * 8;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(std::min(wanted, most)));
    config.blockDim = dim3(cuda::block);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, cuda::each_kernel<Rule>, rule, static_cast<std::int64_t>(n));
}

struct alignas(16) Sixteen {
    unsigned char bytes[16];
};
template <class T>
struct Filled {
    __device__ __forceinline__ void operator()(std::int64_t i) const { to[i] = value; }
    T* to;
    T value;
};
template <class T>
cudaError_t fill_with(cudaStream_t stream, int processors, void* dst, const void* value,
                      std::uint64_t n) {
    Filled<T> rule = {static_cast<T*>(dst), {}};
    std::memcpy(&rule.value, value, sizeof(T));
    return each(stream, processors, n, rule);
}

// There is one kernel per source dtype. The destination dtype is an argument, constant within a launch.
template <class From>
struct Converted {
    template <class To>
    __device__ __forceinline__ void put(std::int64_t i) const {
        using C = cuda::Compute<From>;
        const auto x = cuda::load_as<C>(from[i]);
        if constexpr (is_half_type<To> && !std::is_same_v<C, float>)
            static_cast<To*>(to)[i] =
                cuda::store_as<To>(catena_to_float_odd(static_cast<double>(x)));
        else static_cast<To*>(to)[i] = cuda::store_as<To>(x);
    }
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        with_type(AllTypes(), type, [&]<class To>(To) { put<To>(i); });
    }
    const From* from;
    void* to;
    int type;
};

}  // namespace

int least_capability() {
    constexpr int built[] = {__CUDA_ARCH_LIST__};  // 800 ..., in ascending order
    return built[0] / 10;
}

cudaError_t launch_fill(cudaStream_t stream, int processors, void* dst, const void* value,
                        uint32_t value_bytes, uint64_t n) {
    switch (value_bytes) {
        case 2: return fill_with<uint16_t>(stream, processors, dst, value, n);
        case 4: return fill_with<uint32_t>(stream, processors, dst, value, n);
        case 8: return fill_with<uint64_t>(stream, processors, dst, value, n);
        default: return fill_with<Sixteen>(stream, processors, dst, value, n);
    }
}

catena_status convert(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst,
                      catena_dtype dst_dtype, const void* src, catena_dtype src_dtype, uint64_t n) {
    const int to = index_in(AllTypes(), dst_dtype);
    const int from = index_in(AllTypes(), src_dtype);
    if (to < 0 || from < 0)
        return fail(ctx, CATENA_E_UNSUPPORTED,
                    "[cuda convert] dtypes: expected known ones, got "
                    "codes %d and %d",
                    src_dtype.code, dst_dtype.code);
    if (n == 0) return CATENA_OK;
    Scope scope(ctx, "convert", dev);
    with_type(AllTypes(), from, [&]<class From>(From) {
        const Converted<From> rule = {static_cast<const From*>(src), dst, to};
        scope.check(each(cuda(stream), device_of(dev).processors, n, rule), "cudaLaunchKernelEx");
    });
    return scope.status();
}

}  // namespace catena_cuda
