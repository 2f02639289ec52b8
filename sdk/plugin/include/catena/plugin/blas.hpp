// Matrix products, computed by the plugin that provides catena.blas/1 for the call's device.
#pragma once

#include "catena/abi/ext/blas.h"
#include "catena/plugin/kernel.hpp"
#if defined(CATENA_CUDA)
#include "catena/plugin/cuda/launch.cuh"
#endif

namespace catena::plugin {

// C (m x n) = alpha op(A) (m x k) op(B) (k x n), or added to C; row-major. op may transpose.
template <class T>
struct Product {
    bool transpose_a = false;
    bool transpose_b = false;
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    const T* a;
    const T* b;
    T* c;
    bool add;
    double alpha = 1;
    // Leading dimensions: the number of elements in memory between the starts of two rows of A, B
    // or C. 0: the number of elements of a row.
    std::int64_t lda = 0;
    std::int64_t ldb = 0;
    std::int64_t ldc = 0;
    // The number of products, and the steps, in elements, between their matrices: 0 for one matrix.
    std::int64_t batch = 1;
    std::int64_t step_a = 0;
    std::int64_t step_b = 0;
    std::int64_t step_c = 0;
};

// Returns the description of a batch's first product.
template <class T>
catena_gemm described(const catena_call& call, const Product<T>& p) {
    const auto or_dense = [](std::int64_t given, std::int64_t row) {
        return given != 0 ? given : row;
    };
    return {
        .struct_size = sizeof(catena_gemm),
        .flags =
            call.flags & (CATENA_CALL_DETERMINISTIC | CATENA_CALL_BFLOAT16 | CATENA_CALL_FLOAT16),
        .dtype = dtype_of<T>(),
        .transpose_a = p.transpose_a,
        .transpose_b = p.transpose_b,
        .reserved = 0,
        .m = p.m,
        .n = p.n,
        .k = p.k,
        .alpha = p.alpha,
        .beta = p.add ? 1.0 : 0.0,
        .a = p.a,
        .b = p.b,
        .c = p.c,
        .lda = or_dense(p.lda, p.transpose_a ? p.m : p.k),
        .ldb = or_dense(p.ldb, p.transpose_b ? p.k : p.n),
        .ldc = or_dense(p.ldc, p.n),
        .stream = call.stream,
    };
}

// Computes the products of one call, with the plugin that provides them. Construct it before
// call.parallel(), because the constructor asks the host. The bodies of parallel() may call gemm(),
// which then runs on their own thread; outside parallel() a product uses all threads.
class Blas {
public:
    Blas(catena_ctx* ctx, const catena_call& call)
        : ctx_(ctx), call_(call), tables_(host().extensions(ctx, CATENA_BLAS_1)) {}
    template <class C>  // a Call
    explicit Blas(const C& call) : Blas(call.context(), call.raw()) {}

    // Uses the first table that supports the product. On the CPU, the threads share a batch of
    // small products; large ones are computed one after the other, each by all threads. Throws
    // CATENA_E_UNSUPPORTED if no table supports it.
    template <class T>
    void gemm(const Product<T>& p) const {
        if (p.m == 0 || p.n == 0) return;
        catena_gemm g = described(call_, p);
        const catena_blas* const blas = p.k == 0 ? nullptr : table_for(g);
        if (p.batch == 1) run(p, g, blas, 0);
        else run_batch(p, g, blas);
    }

private:
    // Computes product i of a batch. Without a table, it is a sum of nothing.
    template <class T>
    CATENA_KERNEL void run(const Product<T>& p, catena_gemm& g, const catena_blas* blas,
                           std::int64_t i) const {
        g.a = p.a + i * p.step_a;
        g.b = p.b + i * p.step_b;
        T* const c = p.c + i * p.step_c;
        g.c = c;
        if (blas != nullptr) check_status(blas->gemm(ctx_, &g));
        else if (!p.add) zero(c, g);
    }
    template <class T>
    [[gnu::noinline]] void run_batch(const Product<T>& p, const catena_gemm& first,
                                     const catena_blas* blas) const {
        auto body = [&](std::int64_t begin, std::int64_t end) {
            catena_gemm g = first;
            for (std::int64_t i = begin; i < end; ++i) run(p, g, blas, i);
        };
#if !defined(CATENA_CUDA)
        constexpr double large = 8e6;       // multiply-adds of one product
        constexpr double addition = 10;     // multiply-adds in the time of an addition
        constexpr std::int64_t call = 500;  // additions in the time of a call
        const double work =
            static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
        if (p.step_c != 0 && work < large)
            return parallel<Isa::baseline>(ctx_, p.batch,
                                           call + static_cast<std::int64_t>(work / addition), body);
#endif
        body(0, p.batch);
    }
    const catena_blas* table_for(const catena_gemm& g) const {
        for (const void* const* table = tables_; table != nullptr && *table != nullptr; ++table) {
            const auto* blas = static_cast<const catena_blas*>(*table);
            if (blas->supports(&g) != 0) return blas;
        }
        fail(CATENA_E_UNSUPPORTED, call_.function->name, CATENA_BLAS_1,
             "a plugin that offers it for this device and dtype", "none");
    }
    // Sets C to the product for k = 0, which is zero.
    template <class T>
    void zero(T* c, const catena_gemm& g) const {
        const bool dense = g.ldc == g.n;
        const std::int64_t row = dense ? g.m * g.n : g.n;
        for (std::int64_t i = 0; i < (dense ? 1 : g.m); ++i, c += g.ldc)
#if defined(CATENA_CUDA)
            cuda::queue_of(call_.function->name, call_)
                .zero(c, static_cast<std::size_t>(row) * sizeof(T));
#else
            std::fill_n(c, row, T(0));
#endif
    }

    catena_ctx* ctx_;
    const catena_call& call_;
    const void* const* tables_;
};

// Computes a product outside of call.parallel().
template <class T>
void gemm(catena_ctx* ctx, const catena_call& call, const Product<T>& p) {
    Blas(ctx, call).gemm(p);
}

// A dense matrix as it is in memory, and whether a product takes its transpose.
template <class T>
struct Matrix {
    const T* data;
    std::int64_t rows;
    std::int64_t columns;
    bool transposed = false;
};
// Computes c = a b, or adds a b to c, outside of call.parallel().
template <class T, class C>
void multiply(const C& call, const Matrix<T>& a, const Matrix<T>& b, T* c, bool add) {
    gemm<T>(call.context(), call.raw(),
            {.transpose_a = a.transposed,
             .transpose_b = b.transposed,
             .m = a.transposed ? a.columns : a.rows,
             .n = b.transposed ? b.rows : b.columns,
             .k = a.transposed ? a.rows : a.columns,
             .a = a.data,
             .b = b.data,
             .c = c,
             .add = add});
}

// For plugins that provide catena.blas/1: the table.
constexpr catena_blas blas_of(const char* name, decltype(catena_blas::supports) supports,
                              decltype(catena_blas::gemm) gemm) {
    return {sizeof(catena_blas), 0, name, supports, gemm};
}
// Checks a product and reports errors to the host.
// supported: the plugin supports its dtype and extents. dtypes: names of the supported dtypes.
catena_status check_gemm(catena_ctx* ctx, const catena_gemm& g, bool supported, const char* dtypes);

}  // namespace catena::plugin
