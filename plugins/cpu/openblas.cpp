// Chooses OpenBLAS' kernels by the CPU's features and loads it.
//
// OpenBLAS built for many CPUs knows them by model and takes SSE3 kernels for a model newer than
// itself, five times slower. It decides in its constructor, so it is not linked but opened here.
#include "openblas.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "host.hpp"
#include "isa.hpp"

namespace catena_cpu {
namespace {

// The core of OpenBLAS with the widest vectors that this CPU runs, or NULL: its own choice.
const char* best_core() {
    switch (isa_level()) {
        case 4: return "SkylakeX";
        case 3: return "Haswell";
        default: return nullptr;
    }
}

// The one that an archive carries, if there is one: beside the library of the host. Not by what this
// plugin's own file says, which means nothing when a copy of it in memory was loaded.
void* open_carried() {
    Dl_info library = {};
    if (host == nullptr || dladdr(reinterpret_cast<void*>(host->fail), &library) == 0)
        return nullptr;
    const char* end = std::strrchr(library.dli_fname, '/');
    if (library.dli_fname[0] != '/') return nullptr;
    char path[4096];
    const int length = std::snprintf(path, sizeof path, "%.*s/catena/private/libopenblas.so.0",
                                     static_cast<int>(end - library.dli_fname), library.dli_fname);
    if (length < 0 || static_cast<size_t>(length) >= sizeof path) return nullptr;
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

// NOLINTBEGIN(concurrency-mt-unsafe): the header says when this may run.
void* open_library() {
    constexpr const char* variable = "OPENBLAS_CORETYPE";
    const char* core = std::getenv(variable) == nullptr ? best_core() : nullptr;
    const char* path = std::getenv("CATENA_OPENBLAS");
    if (core != nullptr) setenv(variable, core, 1);
    void* library = path == nullptr ? open_carried() : nullptr;
    if (library == nullptr)
        library = dlopen(path != nullptr ? path : "libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (core != nullptr) unsetenv(variable);
    return library;
}
// NOLINTEND(concurrency-mt-unsafe)

template <typename F>
void look_up(void* library, const char* name, F*& function) {
    function = reinterpret_cast<F*>(dlsym(library, name));
}

OpenBlas load() {
    OpenBlas blas;
    void* library = open_library();
    if (library != nullptr) {
        look_up(library, "cblas_sgemm", blas.sgemm);
        look_up(library, "cblas_dgemm", blas.dgemm);
    }
    if (blas.sgemm == nullptr || blas.dgemm == nullptr) {
        const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe)
        std::snprintf(blas.error, sizeof blas.error,
                      "expected OpenBLAS (Debian: libopenblas0-openmp; a path in CATENA_OPENBLAS "
                      "goes first), got: %s",
                      reason != nullptr ? reason : "no cblas_sgemm in it");
        blas.sgemm = nullptr;
        return blas;
    }
    look_up(library, "omp_get_max_threads", blas.omp_get_max_threads);
    look_up(library, "omp_set_num_threads", blas.omp_set_num_threads);
    void (*set_num_threads)(int) = nullptr;
    look_up(library, "openblas_set_num_threads", set_num_threads);
    if (blas.omp_set_num_threads == nullptr) blas.omp_get_max_threads = nullptr;
    if (blas.omp_get_max_threads == nullptr && set_num_threads != nullptr) set_num_threads(1);
    return blas;
}

}  // namespace

const OpenBlas& openblas() {
    static const OpenBlas blas = load();
    return blas;
}

}  // namespace catena_cpu
