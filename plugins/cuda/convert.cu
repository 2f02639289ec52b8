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

enum class Type { float16, bfloat16, float32, float64, int32, int64, uint8, bool8, none };

Type type_of(catena_dtype dtype) {
    struct Known {
        uint8_t code, bits;
        Type type;
    };
    constexpr Known known[] = {
        {CATENA_CODE_FLOAT, 16, Type::float16}, {CATENA_CODE_BFLOAT, 16, Type::bfloat16},
        {CATENA_CODE_FLOAT, 32, Type::float32}, {CATENA_CODE_FLOAT, 64, Type::float64},
        {CATENA_CODE_INT, 32, Type::int32},     {CATENA_CODE_INT, 64, Type::int64},
        {CATENA_CODE_UINT, 8, Type::uint8},     {CATENA_CODE_BOOL, 8, Type::bool8}};
    for (const Known& k : known)
        if (k.code == dtype.code && k.bits == dtype.bits && dtype.lanes == 1) return k.type;
    return Type::none;
}

// Rounded to odd, so that rounding once more, to a half, sees what was dropped here.
__device__ __forceinline__ float to_float_odd(double x) {
    const auto nearest = static_cast<float>(x);
    const auto back = static_cast<double>(nearest);
    if (back == x || x != x) return nearest;
    const auto bits = std::bit_cast<std::uint32_t>(nearest);
    const bool away = (back < 0 ? -back : back) > (x < 0 ? -x : x);
    return std::bit_cast<float>((away ? bits - 1 : bits) | 1u);
}

template <class To, class C>
__device__ __forceinline__ void put(void* to, std::int64_t i, C x) {
    constexpr bool half = std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>;
    if constexpr (half && !std::is_same_v<C, float>)
        static_cast<To*>(to)[i] = cuda::store_as<To>(to_float_odd(static_cast<double>(x)));
    else static_cast<To*>(to)[i] = cuda::store_as<To>(x);
}

template <class From>
__global__ void __launch_bounds__(block)
    convert_kernel(const From* from, void* to, Type type, std::int64_t n) {
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
            switch (type) {
                case Type::float16: put<Float16>(to, i, x[k]); break;
                case Type::bfloat16: put<BFloat16>(to, i, x[k]); break;
                case Type::float32: put<float>(to, i, x[k]); break;
                case Type::float64: put<double>(to, i, x[k]); break;
                case Type::int32: put<std::int32_t>(to, i, x[k]); break;
                case Type::int64: put<std::int64_t>(to, i, x[k]); break;
                case Type::uint8: put<std::uint8_t>(to, i, x[k]); break;
                default: put<bool>(to, i, x[k]);
            }
        }
    }
}

template <class From>
cudaError_t launch(cudaStream_t stream, int processors, const void* from, void* to, Type type,
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
    const Type to = type_of(dst_dtype);
    const Type from = type_of(src_dtype);
    if (to == Type::none || from == Type::none)
        return fail(ctx, CATENA_E_UNSUPPORTED,
                    "[cuda convert] dtypes: expected known ones, got "
                    "codes %d and %d",
                    src_dtype.code, dst_dtype.code);
    if (n == 0) return CATENA_OK;
    Scope scope(ctx, "convert", dev);
    const auto with = [&](auto* launch_from) {
        scope.check(launch_from(cuda(stream), device_of(dev).processors, src, dst, to, n),
                    "cudaLaunchKernelEx");
    };
    switch (from) {
        case Type::float16: with(&launch<Float16>); break;
        case Type::bfloat16: with(&launch<BFloat16>); break;
        case Type::float32: with(&launch<float>); break;
        case Type::float64: with(&launch<double>); break;
        case Type::int32: with(&launch<std::int32_t>); break;
        case Type::int64: with(&launch<std::int64_t>); break;
        case Type::uint8: with(&launch<std::uint8_t>); break;
        default: with(&launch<bool>);
    }
    return scope.status();
}

}  // namespace catena_cuda
