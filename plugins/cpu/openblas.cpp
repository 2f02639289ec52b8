// Chooses OpenBLAS' kernels by the CPU's features, loads it and reserves its buffers.
//
// An OpenBLAS that is built for many CPUs recognizes them by model. For a model newer than itself it
// chooses SSE3 kernels, which are five times slower. It chooses while it is loaded, so this plugin
// sets an environment variable and opens it at run time instead of linking it.
#include "cpu.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <catena/plugin/memory_limit.hpp>

namespace catena_cpu {

namespace {

// OpenBLAS maps one buffer for each processor when it is loaded, and one more for each product that
// runs at the same time. A test compares this size with that of the installed library.
constexpr size_t buffer_bytes = size_t{128} << 20;
constexpr size_t library_bytes = size_t{48} << 20;  // its code and data
constexpr int32_t most_buffers = 128;  // of each of these two kinds; OpenBLAS has room for 256

// Returns the name of OpenBLAS' kernels with the widest vectors that this CPU supports, or NULL to
// let OpenBLAS choose. The kernels for AVX-512 crash if malloc() returns NULL in a small product, so a low
// memory limit rules them out.
const char* best_core() {
    const bool low_limit = catena::plugin::memory_limit() < catena::plugin::little_memory;
    switch (isa_level()) {
        case 4: return low_limit ? "Haswell" : "SkylakeX";
        case 3: return "Haswell";
        default: return nullptr;
    }
}

// Opens the OpenBLAS that a packaged archive contains, in a folder beside the host's library. Returns
// NULL if there is none. The path of this plugin's own file is no help: the host may have loaded a
// copy of the file in memory.
void* open_carried() {
    Dl_info library = {};
    if (dladdr(reinterpret_cast<void*>(host().fail), &library) == 0) return nullptr;
    const std::string name = library.dli_fname;
    if (name[0] != '/') return nullptr;
    const std::string path = name.substr(0, name.rfind('/')) + "/catena/private/libopenblas.so.0";
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

void* map(size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : nullptr;
}

// Returns whether the system can map n buffers and `bytes` more now. Each buffer is a mapping of its
// own, as in OpenBLAS: the system may refuse one large mapping and yet provide several small ones.
bool is_there_memory(int32_t n, size_t bytes) {
    void* rest = bytes > 0 ? map(bytes) : nullptr;
    bool enough = bytes == 0 || rest != nullptr;
    void* buffers[most_buffers];
    int32_t mapped = 0;
    while (enough && mapped < n) {
        buffers[mapped] = map(buffer_bytes);
        if (buffers[mapped] == nullptr) enough = false;
        else ++mapped;
    }
    for (int32_t i = 0; i < mapped; ++i) munmap(buffers[i], buffer_bytes);
    if (rest != nullptr) munmap(rest, bytes);
    return enough;
}

// NOLINTBEGIN(concurrency-mt-unsafe): the header says when this may run.
// Returns how many buffers OpenBLAS maps at most when it is loaded. Builds with OpenMP read
// OMP_NUM_THREADS alone, or last as those with threads of their own do.
int32_t buffers_at_load() {
    const long there = sysconf(_SC_NPROCESSORS_CONF);
    const auto threads = [&](const char* name, long otherwise) {
        const char* text = std::getenv(name);
        const long wanted = text != nullptr ? std::strtol(text, nullptr, 10) : 0;
        return wanted > 0 ? std::min(wanted, there) : otherwise;
    };
    const long with_openmp = threads("OMP_NUM_THREADS", there);
    const long with_own = threads("OPENBLAS_NUM_THREADS", threads("GOTO_NUM_THREADS", with_openmp));
    return static_cast<int32_t>(std::clamp<long>(std::max(with_openmp, with_own), 1, most_buffers));
}

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

// Makes OpenBLAS map a buffer for one product on each processor, or fewer if memory runs out. Returns
// how many there are. If a build of OpenBLAS hides these functions, nothing is reserved, and the result
// is how many the system could map now.
int32_t reserve_buffers(void* library) {
    void* (*alloc)(int) = nullptr;
    void (*release)(void*) = nullptr;
    look_up(library, "blas_memory_alloc", alloc);
    look_up(library, "blas_memory_free", release);
    const bool hidden = alloc == nullptr || release == nullptr;
    const int32_t wanted = std::min(processors(), most_buffers);
    void* buffers[most_buffers];
    int32_t n = 0;
    while (n < wanted && is_there_memory(hidden ? n + 1 : 1, 0)) {
        buffers[n] = hidden ? nullptr : alloc(0);
        ++n;
    }
    for (int32_t i = 0; i < n && !hidden; ++i) release(buffers[i]);
    return n;
}

std::string mib(size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

void refuse_without_memory(OpenBlas& blas, int32_t at_load) {
    blas.sgemm = nullptr;
    blas.dgemm = nullptr;
    blas.status = CATENA_E_NOMEM;
    blas.error =
        "expected memory for OpenBLAS' buffers, " + mib(buffer_bytes) + " for each of " +
        std::to_string(at_load) +
        " processors and for one product, got less; OMP_NUM_THREADS=N makes it N processors";
}

OpenBlas load() {
    OpenBlas blas;
    const int32_t at_load = buffers_at_load();
    if (!is_there_memory(at_load, library_bytes)) {
        refuse_without_memory(blas, at_load);
        return blas;
    }
    void* library = open_library();
    if (library != nullptr) {
        look_up(library, "cblas_sgemm", blas.sgemm);
        look_up(library, "cblas_dgemm", blas.dgemm);
    }
    if (blas.sgemm == nullptr || blas.dgemm == nullptr) {
        const char* reason = dlerror();  // NOLINT(concurrency-mt-unsafe)
        blas.error =
            "expected OpenBLAS (Debian: libopenblas0-openmp; a path in CATENA_OPENBLAS goes "
            "first), "
            "got: " +
            std::string(reason != nullptr ? reason : "no cblas_sgemm in it");
        blas.sgemm = nullptr;
        return blas;
    }
    look_up(library, "omp_get_max_threads", blas.omp_get_max_threads);
    look_up(library, "omp_set_num_threads", blas.omp_set_num_threads);
    void (*set_num_threads)(int) = nullptr;
    look_up(library, "openblas_set_num_threads", set_num_threads);
    if (blas.omp_set_num_threads == nullptr) blas.omp_get_max_threads = nullptr;
    if (blas.omp_get_max_threads == nullptr && set_num_threads != nullptr) set_num_threads(1);
    blas.buffers = reserve_buffers(library);
    if (blas.buffers == 0) refuse_without_memory(blas, at_load);
    else if (blas.buffers < std::min(processors(), most_buffers))
        blas.error = "OpenBLAS: expected memory for " + std::to_string(processors()) +
                     " products at a time, " + mib(buffer_bytes) + " each, got it for " +
                     std::to_string(blas.buffers) + ": the others wait";
    return blas;
}

}  // namespace

const OpenBlas& openblas() {
    static const auto* const blas =
        new OpenBlas(load());  // never deleted: products run until the end
    return *blas;
}

}  // namespace catena_cpu
