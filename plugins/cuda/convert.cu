// The same numbers in another dtype, for arrays that change it outside of any function. One kernel for
// each dtype that is read; the one that is written is the same for all of a launch.
#include <cuda_runtime.h>

#include <algorithm>

#include "catena/plugin/cuda/pack.cuh"
#include "device.hpp"
#include "host.hpp"
#include "memory.hpp"

namespace catena_cuda {
namespace {

using namespace catena::plugin;

constexpr unsigned block = 256;
constexpr int unroll = 4;  // loads that are on their way at the same time

template <class To, class C>
__device__ __forceinline__ void put(void* to, std::int64_t i, C x) {
    if constexpr (is_half_type<To> && !std::is_same_v<C, float>)
        static_cast<To*>(to)[i] = cuda::store_as<To>(catena_to_float_odd(static_cast<double>(x)));
    else static_cast<To*>(to)[i] = cuda::store_as<To>(x);
}

template <class From>
__global__ void __launch_bounds__(block)
    convert_kernel(const From* from, void* to, int type, std::int64_t n) {
    using C = cuda::Compute<From>;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * block;
    for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * block + threadIdx.x;
         first < n; first += unroll * step) {
        C x[unroll];
        CATENA_UNROLL
        for (int k = 0; k < unroll; ++k)
            x[k] = first + k * step < n ? cuda::load_as<C>(from[first + k * step]) : C(0);
        CATENA_UNROLL
        for (int k = 0; k < unroll; ++k) {
            const std::int64_t i = first + k * step;
            if (i >= n) break;
            with_type(AllTypes(), type, [&]<class To>(To) { put<To>(to, i, x[k]); });
        }
    }
}

template <class From>
cudaError_t launch(cudaStream_t stream, int processors, const void* from, void* to, int type,
                   uint64_t n) {
    const uint64_t wanted = (n + block * unroll - 1) / (block * unroll);
    const uint64_t most = static_cast<uint64_t>(processors) * 8;  // as many as run at once
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(std::min(wanted, most)));
    config.blockDim = dim3(block);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, convert_kernel<From>, static_cast<const From*>(from), to,
                              type, static_cast<std::int64_t>(n));
}

}  // namespace

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
        scope.check(launch<From>(cuda(stream), device_of(dev).processors, src, dst, to, n),
                    "cudaLaunchKernelEx");
    });
    return scope.status();
}

}  // namespace catena_cuda
