// Matrix products by catena.blas/1, as a plugin calls it, and by OpenBLAS directly.
#include "work.hpp"

#include <catena/abi/ext/blas.h>
#include <catena/abi/ext/threads.h>
#include <catena/abi/plugin.h>

#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>

#include <dlfcn.h>

namespace catena_bench {
namespace {

struct Operands {
    explicit Operands(const Product& p) : a(size(p.m, p.k)), b(size(p.k, p.n)), c(size(p.m, p.n)) {
        std::minstd_rand random;
        std::uniform_real_distribution<float> uniform(-1, 1);
        for (float& value : a) value = uniform(random);
        for (float& value : b) value = uniform(random);
    }
    static std::size_t size(int rows, int columns) {
        return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    }

    std::vector<float> a, b, c;
};

int lda(const Product& p) { return p.transpose_a ? p.m : p.k; }
int ldb(const Product& p) { return p.transpose_b ? p.k : p.n; }

// Opens a library and returns a symbol of it. Throws the dynamic loader's message.
template <class T>
T* symbol(const char* file, const char* name) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void* found = library ? dlsym(library, name) : nullptr;
    if (!found) throw std::runtime_error(dlerror());
    return reinterpret_cast<T*>(found);
}

// Loads the CPU's plugin with a host that provides only the services it needs.
struct Extension {
    Extension() {
        host.struct_size = sizeof host;
        host.abi_major = CATENA_ABI_MAJOR;
        host.abi_minor = CATENA_ABI_MINOR;
        host.log = [](catena_ctx*, std::int32_t, const char* text) {
            std::fprintf(stderr, "%s\n", text);
        };
        host.fail = [](catena_ctx*, catena_status status, const char* text) {
            std::fprintf(stderr, "%s\n", text);
            return status;
        };
        const auto entry =
            symbol<decltype(catena_plugin_entry_v1)>(CATENA_BENCH_CPU, "catena_plugin_entry_v1");
        const catena_plugin* plugin = entry(&host, nullptr);
        plugin->init(&host, nullptr);
        blas = static_cast<const catena_blas*>(plugin->extensions[0]->table);
        threads = static_cast<const catena_threads*>(
            plugin->backends[0]->get_extension(nullptr, CATENA_THREADS_1));
    }

    void gemm(const catena_gemm& product) const {
        if (blas->gemm(nullptr, &product) != CATENA_OK) throw std::runtime_error("gemm failed");
    }

    catena_host host{};
    const catena_blas* blas;
    const catena_threads* threads;
};

enum { row_major = 101, no_trans = 111, trans = 112 };
using Sgemm = void(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                   const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);

}  // namespace

std::vector<Work> extension_works(int threads) {
    static const Extension extension;
    extension.threads->set_count(nullptr, threads);
    std::vector<Work> works;
    for (const Product& p : products) {
        works.push_back({p.name, 1, [p] {
                             const auto x = std::make_shared<Operands>(p);
                             catena_gemm gemm{};
                             gemm.struct_size = sizeof gemm;
                             gemm.dtype = {CATENA_CODE_FLOAT, 32, 1};
                             gemm.transpose_a = p.transpose_a;
                             gemm.transpose_b = p.transpose_b;
                             gemm.m = p.m;
                             gemm.n = p.n;
                             gemm.k = p.k;
                             gemm.alpha = 1;
                             gemm.a = x->a.data();
                             gemm.b = x->b.data();
                             gemm.c = x->c.data();
                             gemm.lda = lda(p);
                             gemm.ldb = ldb(p);
                             gemm.ldc = p.n;
                             return [x, gemm] { extension.gemm(gemm); };
                         }});
    }
    return works;
}

// OpenBLAS uses its own threads. It reads their number from OMP_NUM_THREADS when it is loaded.
std::vector<Work> openblas_works(int) {
    Sgemm* const sgemm = symbol<Sgemm>("libopenblas.so.0", "cblas_sgemm");
    std::vector<Work> works;
    for (const Product& p : products) {
        works.push_back({p.name, 1, [p, sgemm] {
                             const auto x = std::make_shared<Operands>(p);
                             return [x, p, sgemm] {
                                 sgemm(row_major, p.transpose_a ? trans : no_trans,
                                       p.transpose_b ? trans : no_trans, p.m, p.n, p.k, 1,
                                       x->a.data(), lda(p), x->b.data(), ldb(p), 0, x->c.data(),
                                       p.n);
                             };
                         }});
    }
    return works;
}

}  // namespace catena_bench
