// Packs: contiguous elements that are loaded and stored together, 16 bytes at a time. Half
// precision is computed in a wider type.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>

#include "catena/plugin/half.hpp"

namespace catena::plugin::cuda {

// Either half type: kernels are compiled once for both, and each launch selects one of them.
struct AnyHalf {
    std::uint16_t bits;
};

}  // namespace catena::plugin::cuda

template <>
constexpr catena_dtype catena::plugin::dtype_of<catena::plugin::cuda::AnyHalf>() = delete;

namespace catena::plugin::cuda {

template <class... T>
struct Types {
    static constexpr int n = sizeof...(T);
};

template <class T>
inline constexpr bool is_half =
    std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16> || std::is_same_v<T, AnyHalf>;
template <class T>
using Stored = std::conditional_t<is_half<T>, AnyHalf, T>;
// The type in which elements of T are computed.
template <class T>
using Compute = std::conditional_t<is_half<T>, float, T>;

// Whether AnyHalf is BFloat16 in this launch. Queue::launch() passes this as the size of the
// dynamic shared memory, which kernels do not use otherwise. The size is the same for all threads,
// and no kernel needs an additional parameter.
__device__ __forceinline__ bool any_half_is_bfloat() {
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes != 0;
}

// Converts one element as half.hpp does, with the hardware's instructions if available.
template <class C, class T>
__device__ __forceinline__ C load_as(T x) {
    if constexpr (std::is_same_v<T, AnyHalf>) {
        // Computes both and selects: a branch would duplicate loops.
        const auto narrow = load_as<C>(Float16{x.bits});
        const auto wide = load_as<C>(BFloat16{x.bits});
        return any_half_is_bfloat() ? wide : narrow;
    } else if constexpr (std::is_same_v<T, Float16>) {
        float f;
        asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
        return static_cast<C>(f);
    } else if constexpr (std::is_same_v<T, BFloat16>) {
        return static_cast<C>(to_float(x));  // a shift
    } else {
        return static_cast<C>(x);
    }
}
template <class T, class C>
__device__ __forceinline__ T store_as(C x) {
    if constexpr (std::is_same_v<T, AnyHalf>) {
        const std::uint16_t narrow = store_as<Float16>(x).bits;
        const std::uint16_t wide = store_as<BFloat16>(x).bits;
        return {any_half_is_bfloat() ? wide : narrow};
    } else if constexpr (std::is_same_v<T, Float16>) {
        Float16 h;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(static_cast<float>(x)));
        return h;
    } else if constexpr (std::is_same_v<T, BFloat16>) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        BFloat16 h;
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(static_cast<float>(x)));
        return h;
#else
        return to_bfloat16(static_cast<float>(x));
#endif
    } else if constexpr (std::is_same_v<T, bool>) {
        return x != C(0);
    } else {
        return static_cast<T>(x);
    }
}

// The number of elements that a thread processes at a time: 16 bytes of the largest type, so that
// adjacent threads access adjacent bytes of each array.
template <class... T>
constexpr int pack_width() {
    return static_cast<int>(16 / std::max({sizeof(T)...}));
}
// The number of bytes of a pack that one instruction moves.
template <class T, int width>
inline constexpr std::size_t chunk_bytes = std::min<std::size_t>(16, width * sizeof(T));

namespace detail {

// Words that one instruction moves together.
template <std::size_t bytes>
struct alignas(bytes) Chunk {
    using Word = std::conditional_t<bytes == 1, std::uint8_t,
                                    std::conditional_t<bytes == 2, std::uint16_t, std::uint32_t>>;
    Word word[bytes / sizeof(Word)];
};
template <class T, std::size_t n>
struct Elements {
    T item[n];
};

}  // namespace detail

// Loads x = p[0 .. width); p is aligned.
template <int width, class C, class T>
__device__ __forceinline__ void load_pack(const T* p, C (&x)[width]) {
    constexpr std::size_t bytes = chunk_bytes<T, width>;
    constexpr int each = static_cast<int>(bytes / sizeof(T));
    CATENA_UNROLL
    for (int c = 0; c < width / each; ++c) {
        const auto chunk = reinterpret_cast<const detail::Chunk<bytes>*>(p)[c];
        const auto e = std::bit_cast<detail::Elements<T, each>>(chunk);
        CATENA_UNROLL
        for (int j = 0; j < each; ++j) x[c * each + j] = load_as<C>(e.item[j]);
    }
}
// Stores x in p[0 .. width), or adds it in Compute<T>; p is aligned.
template <class T, int width, class C>
__device__ __forceinline__ void store_pack(T* p, bool add, const C (&x)[width]) {
    using A = Compute<T>;
    constexpr std::size_t bytes = chunk_bytes<T, width>;
    constexpr int each = static_cast<int>(bytes / sizeof(T));
    A sum[width];
    CATENA_UNROLL
    for (int j = 0; j < width; ++j) sum[j] = store_as<A>(x[j]);
    if (add) {
        A old[width];
        load_pack<width>(static_cast<const T*>(p), old);
        CATENA_UNROLL
        for (int j = 0; j < width; ++j) sum[j] = static_cast<A>(old[j] + sum[j]);
    }
    CATENA_UNROLL
    for (int c = 0; c < width / each; ++c) {
        detail::Elements<T, each> e;
        CATENA_UNROLL
        for (int j = 0; j < each; ++j) e.item[j] = store_as<T>(sum[c * each + j]);
        reinterpret_cast<detail::Chunk<bytes>*>(p)[c] = std::bit_cast<detail::Chunk<bytes>>(e);
    }
}
// Stores an element, or adds it to the existing value in Compute<T>.
template <class T, class C>
__device__ __forceinline__ void store(T& y, bool add, C x) {
    using A = Compute<T>;
    y = add ? store_as<T>(static_cast<A>(load_as<A>(y) + store_as<A>(x))) : store_as<T>(x);
}

}  // namespace catena::plugin::cuda
