// Computes products with the catena.blas/1 of this plugin.
#pragma once

#include <dlfcn.h>

#include "catena/abi/ext/blas.h"
#include "compare.hpp"

namespace onednn_test {

inline const catena_plugin& plugin() {
    static const catena_plugin& table = [&]() -> const catena_plugin& {
        void* library = dlopen(ONEDNN_PLUGIN, RTLD_NOW | RTLD_LOCAL);
        const auto entry = reinterpret_cast<decltype(&catena_plugin_entry_v1)>(
            dlsym(library, "catena_plugin_entry_v1"));
        return *entry(&world().host(), nullptr);
    }();
    return table;
}

inline const catena_blas& blas() {
    return *static_cast<const catena_blas*>(plugin().extensions[0]->table);
}

struct Size {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
};

// Rows are longer than needed, so that a wrong leading dimension shows.
struct Product {
    Product(const Size& size, bool transpose_a, bool transpose_b, double alpha, double beta)
        : a(Array::random<float>(
              {transpose_a ? size.k : size.m, (transpose_a ? size.m : size.k) + 3}, 1)),
          b(Array::random<float>(
              {transpose_b ? size.n : size.k, (transpose_b ? size.k : size.n) + 2}, 2)),
          c(Array::random<float>({size.m, size.n + 5}, 3)) {
        gemm.struct_size = sizeof gemm;
        gemm.dtype = dtype_of<float>();
        gemm.transpose_a = transpose_a;
        gemm.transpose_b = transpose_b;
        gemm.m = size.m;
        gemm.n = size.n;
        gemm.k = size.k;
        gemm.alpha = alpha;
        gemm.beta = beta;
        gemm.lda = a.shape()[1];
        gemm.ldb = b.shape()[1];
        gemm.ldc = c.shape()[1];
        gemm.a = a.data<float>();
        gemm.b = b.data<float>();
    }
    Array run(const catena_blas& table, int threads = 1) {
        Array result = c;
        gemm.c = result.data<float>();
        world().threads = threads;
        catena_ctx ctx{&world(), {}, {}};
        CHECK(table.gemm(&ctx, &gemm) == CATENA_OK);
        CHECK(ctx.error == "");
        CHECK(result.intact());
        return result;
    }

    Array a;
    Array b;
    Array c;
    catena_gemm gemm = {};
};

}  // namespace onednn_test
