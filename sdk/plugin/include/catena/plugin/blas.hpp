// Matrix products through whichever plugin offers catena.blas/1 for the call's device.
#pragma once

#include "catena/abi/ext/blas.h"
#include "catena/abi/ext/draft/affine.h"
#include "catena/plugin/kernel.hpp"
#if defined(CATENA_CUDA)
#include "catena/plugin/cuda/launch.cuh"
#endif

namespace catena::plugin {

// C (m x n) = op(A) (m x k) op(B) (k x n), or added to C; dense and row-major. op transposes.
template <class T>
struct Product {
    bool transpose_a;
    bool transpose_b;
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    const T* a;
    const T* b;
    T* c;
    bool add;
};

template <class T>
catena_gemm described(const catena_call& call, const Product<T>& p) {
    return {
        .struct_size = sizeof(catena_gemm),
        .flags = call.flags & CATENA_CALL_DETERMINISTIC,
        .dtype = dtype_of<T>(),
        .transpose_a = p.transpose_a,
        .transpose_b = p.transpose_b,
        .reserved = 0,
        .m = p.m,
        .n = p.n,
        .k = p.k,
        .alpha = 1,
        .beta = p.add ? 1.0 : 0.0,
        .a = p.a,
        .b = p.b,
        .c = p.c,
        .lda = p.transpose_a ? p.m : p.k,
        .ldb = p.transpose_b ? p.k : p.n,
        .ldc = p.n,
        .stream = call.stream,
    };
}

// Takes the first table that supports the product. CATENA_E_UNSUPPORTED if there is none.
template <class T>
void gemm(catena_ctx* ctx, const catena_call& call, const Product<T>& p) {
    if (p.m == 0 || p.n == 0) return;
    if (p.k == 0) {
#if defined(CATENA_CUDA)
        if (!p.add)
            cuda::queue_of(call.function->name, call)
                .zero(p.c, static_cast<std::size_t>(p.m * p.n) * sizeof(T));
#else
        if (!p.add) std::fill_n(p.c, p.m * p.n, T(0));
#endif
        return;
    }
    const catena_gemm g = described(call, p);
    for (const void* const* table = host().extensions(ctx, CATENA_BLAS_1);
         table != nullptr && *table != nullptr; ++table) {
        const auto* blas = static_cast<const catena_blas*>(*table);
        if (blas->supports(&g) == 0) continue;
        if (const catena_status s = blas->gemm(ctx, &g); s != CATENA_OK) throw Error(s);
        return;
    }
    fail(CATENA_E_UNSUPPORTED, call.function->name, CATENA_BLAS_1,
         "a plugin that offers it for this device and dtype", "none");
}

// A product with the n numbers of bias added to each row, if some plugin does both at once; false, and
// nothing was done, if none does.
template <class T>
bool affine(catena_ctx* ctx, const catena_call& call, const Product<T>& p, const T* bias) {
    if (p.m == 0 || p.n == 0) return true;
    if (p.k == 0) return false;
    const catena_gemm g = described(call, p);
    for (const void* const* table = host().extensions(ctx, CATENA_AFFINE_DRAFT_1);
         table != nullptr && *table != nullptr; ++table) {
        const auto* both = static_cast<const catena_affine*>(*table);
        if (both->supports(&g) == 0) continue;
        const catena_status s = both->gemm(ctx, &g, bias);
        if (s == CATENA_OK) return true;
        if (s != CATENA_E_UNSUPPORTED) throw Error(s);
    }
    return false;
}

}  // namespace catena::plugin
