// Matrix products with OpenBLAS: selects its kernels by CPU features, loads it, and reserves its buffers.
// A product is divided into tiles of C; each is one OpenBLAS call on one thread. K is never divided.
//
// An OpenBLAS that is built for many CPUs recognizes them by model. For models newer than the library it
// selects SSE3 kernels, which are five times slower. It selects them while it is being loaded, so this
// plugin sets an environment variable and opens the library at run time instead of linking to it.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <semaphore>

#include <catena/plugin/blas.hpp>
#include <catena/plugin/memory_limit.hpp>

#include "cpu.hpp"

namespace catena_cpu {
namespace {

// Constants of cblas.h, which is not included because it differs between builds of OpenBLAS.
enum { cblas_row_major = 101, cblas_no_trans = 111, cblas_trans = 112 };

template <class T>
using Gemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha, const T* a,
                      int lda, const T* b, int ldb, T beta, T* c, int ldc);

struct OpenBlas {
    Gemm<float> sgemm = nullptr;
    Gemm<double> dgemm = nullptr;
    int (*omp_get_max_threads)() = nullptr;  // NULL in builds without OpenMP
    void (*omp_set_num_threads)(int) = nullptr;
    std::string error;  // why sgemm and dgemm are NULL, or why few products run at a time
    catena_status status = CATENA_E_DEVICE;  // what a product returns if they are NULL
    int32_t buffers = 0;                     // products that may run at the same time
};

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

// Opens the OpenBLAS of a packaged archive, in a folder beside the host's library, or returns NULL. This
// plugin's own path is of no use, because the host may have loaded the plugin from a copy in memory.
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

// Whether the system can map n buffers and `bytes` more bytes now. Each buffer is a separate mapping, as
// in OpenBLAS: the system may refuse one large mapping but provide several small ones.
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
// Returns the maximum number of buffers that OpenBLAS maps when it is loaded. Builds with their own threads
// read OMP_NUM_THREADS last; builds with OpenMP also do so, or read only OMP_NUM_THREADS.
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
// their number. If the library does not export the functions for this, reserves nothing and returns the
// number of buffers that the system could map now.
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

const OpenBlas& openblas() {
    // Never deleted, because products may run until the process ends.
    static const auto* const blas = new OpenBlas(load());
    return *blas;
}

// [compute] Held by a thread while it calls OpenBLAS, which uses one buffer for each running call and
// retries without end if it cannot allocate another one. So openblas() reserves the buffers, and a
// thread waits while all of them are in use.
class BufferLease {
public:
    BufferLease() { unused().acquire(); }
    ~BufferLease() { unused().release(); }
    BufferLease(const BufferLease&) = delete;
    BufferLease& operator=(const BufferLease&) = delete;

private:
    static std::counting_semaphore<>& unused() {
        static std::counting_semaphore<> buffers(openblas().buffers);
        return buffers;
    }
};

// Restricts OpenBLAS to the calling thread until it is destroyed. OpenMP keeps this setting for each
// thread; the destructor restores it.
class SingleThreaded {
public:
    explicit SingleThreaded(const OpenBlas& blas) : blas_(blas) {
        if (blas.omp_get_max_threads == nullptr) return;
        threads_ = blas.omp_get_max_threads();
        if (threads_ != 1) blas.omp_set_num_threads(1);
    }

    ~SingleThreaded() {
        if (threads_ != 1) blas_.omp_set_num_threads(threads_);
    }

    SingleThreaded(const SingleThreaded&) = delete;
    SingleThreaded& operator=(const SingleThreaded&) = delete;

private:
    const OpenBlas& blas_;
    int threads_ = 1;
};

// ---- products

// Tuned by measurement, as README.md describes. Work is counted in multiply-adds.
constexpr double plain_up_to = 64;      // up to this, a plain loop is faster
constexpr double tile_least = 200'000;  // less work is not worth another thread
// OpenBLAS' AVX-512 kernels compute products of up to a million multiply-adds without packing.
constexpr double unpacked_tile = 700'000;
constexpr double unpacked_below = 16e6;
constexpr int64_t unpacked_most = 1'000'000;  // k is at most this in such products
// Deterministic calls derive the number of tiles from the shape alone: up to 8, or up to 16 large ones.
constexpr int64_t fixed_tiles = 8;
constexpr int64_t fixed_tiles_most = 16;
constexpr double fixed_tile_large = 8e6;

// The cost of a tile is its area plus the cost of packing its rows and columns.
constexpr Cut usual_cut = {4, 16, 16, 12};
// For x W^T, the forward product of a layer, W is divided rather than x, so that each thread finds the
// rows of W that it updated in its own cache.
constexpr Cut weight_cut = {4, 4, 16, 32};
constexpr int64_t weight_cut_from = 256;  // inputs, which is k

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

template <typename T>
struct Product {
    const catena_gemm& gemm;
    const OpenBlas& blas;
    Grid grid = {};
    mutable std::atomic<bool> out_of_memory = false;

    const T* a(int64_t row, int64_t k) const {
        return static_cast<const T*>(gemm.a) +
               (gemm.transpose_a != 0 ? k * gemm.lda + row : row * gemm.lda + k);
    }

    const T* b(int64_t k, int64_t column) const {
        return static_cast<const T*>(gemm.b) +
               (gemm.transpose_b != 0 ? column * gemm.ldb + k : k * gemm.ldb + column);
    }

    T* c(int64_t row, int64_t column) const {
        return static_cast<T*>(gemm.c) + row * gemm.ldc + column;
    }

    // Computes the product with plain loops; handles k == 0 too.
    void run_plain() const {
        const T alpha = static_cast<T>(gemm.alpha);
        const T beta = static_cast<T>(gemm.beta);
        for (int64_t i = 0; i < gemm.m; ++i)
            for (int64_t j = 0; j < gemm.n; ++j) {
                T sum = 0;
                for (int64_t l = 0; l < gemm.k; ++l) sum += *a(i, l) * *b(l, j);
                T& out = *c(i, j);
                out = beta == 0 ? alpha * sum : alpha * sum + beta * out;
            }
    }

    // Whether malloc() can provide the up to 8 columns that OpenBLAS' AVX-512 kernels without packing
    // allocate; they crash on NULL. The memory is freed: OpenBLAS gets it unless another thread takes it.
    bool can_allocate() const {
        if (isa_level() < 4 || gemm.transpose_a != 0 || gemm.transpose_b != 0 ||
            gemm.k > unpacked_most)
            return true;
        // volatile: the compiler may otherwise remove both calls.
        void* volatile columns = std::malloc(8 * static_cast<size_t>(gemm.k) * sizeof(T));
        std::free(columns);
        return columns != nullptr;
    }

    static Gemm<T> gemm_of(const OpenBlas& blas) {
        if constexpr (std::is_same_v<T, float>) return blas.sgemm;
        else return blas.dgemm;
    }

    void run_tile(int64_t tile) const {
        const int64_t row = tile / grid.across * grid.rows;
        const int64_t column = tile % grid.across * grid.columns;
        const int64_t m = std::min(grid.rows, gemm.m - row);
        const int64_t n = std::min(grid.columns, gemm.n - column);
        gemm_of(blas)(cblas_row_major, gemm.transpose_a != 0 ? cblas_trans : cblas_no_trans,
                      gemm.transpose_b != 0 ? cblas_trans : cblas_no_trans, static_cast<int>(m),
                      static_cast<int>(n), static_cast<int>(gemm.k), static_cast<T>(gemm.alpha),
                      a(row, 0), static_cast<int>(gemm.lda), b(0, column),
                      static_cast<int>(gemm.ldb), static_cast<T>(gemm.beta), c(row, column),
                      static_cast<int>(gemm.ldc));
    }

    static void run_tiles(void* user, int64_t begin, int64_t end, int32_t) {
        const Product& self = *static_cast<const Product*>(user);
        const BufferLease buffer;
        const SingleThreaded guard(self.blas);
        if (!self.can_allocate()) {
            self.out_of_memory.store(true, std::memory_order_relaxed);
            return;
        }
        for (int64_t tile = begin; tile < end; ++tile) self.run_tile(tile);
    }

    int64_t count_tiles(double work) const {
        const auto up_to = [work](int64_t most, double least) {
            return static_cast<int64_t>(std::min(work / least, static_cast<double>(most)));
        };
        const bool fixed = (gemm.flags & CATENA_CALL_DETERMINISTIC) != 0;
        const int64_t threads = fixed || pool.is_serial() ? 1 : pool.count();
        int64_t tiles = fixed ? std::max(up_to(fixed_tiles, tile_least),
                                         up_to(fixed_tiles_most, fixed_tile_large))
                              : up_to(threads, tile_least);
        if (gemm.transpose_b == 0 && work > unpacked_tile && work < unpacked_below &&
            isa_level() == 4)
            tiles =
                std::max(tiles, round_up(static_cast<int64_t>(work / unpacked_tile) + 1, threads));
        return std::max<int64_t>(tiles, 1);
    }

    // Returns false if memory for OpenBLAS could not be allocated.
    bool run() {
        const double work =
            static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
        if (work <= plain_up_to) {
            run_plain();
            return true;
        }
        const bool weights = gemm.transpose_b != 0 && gemm.k >= weight_cut_from;
        grid = make_grid(gemm.m, gemm.n, count_tiles(work), weights ? weight_cut : usual_cut);
        pool.parallel_for(grid.tiles, 1, run_tiles, this);
        return !out_of_memory.load(std::memory_order_relaxed);
    }
};

int32_t supports(const catena_gemm* gemm) {
    const int64_t largest = std::max({gemm->m, gemm->n, gemm->k, gemm->lda, gemm->ldb, gemm->ldc});
    return (is_float(gemm->dtype, 32) || is_float(gemm->dtype, 64)) && largest <= INT_MAX ? 1 : 0;
}

catena_status run(catena_ctx* ctx, const catena_gemm* gemm) {
    const catena_status status =
        catena::plugin::check_gemm(ctx, *gemm, supports(gemm) != 0, "float32 or float64");
    if (status != CATENA_OK || gemm->m == 0 || gemm->n == 0) return status;
    const OpenBlas& blas = openblas();
    if (blas.sgemm == nullptr)
        return fail(ctx, blas.status, "[gemm] library: %s", blas.error.c_str());
    if (is_skinny(*gemm)) {
        multiply_skinny(*gemm);
        return CATENA_OK;
    }
    const bool done = is_float(gemm->dtype, 32) ? Product<float>{*gemm, blas}.run()
                                                : Product<double>{*gemm, blas}.run();
    if (done) return CATENA_OK;
    return fail(ctx, CATENA_E_NOMEM, "[gemm] memory: expected some for OpenBLAS, got none");
}

}  // namespace

// Returns the cheapest division of an m x n matrix into at most `parts` tiles.
Grid make_grid(int64_t m, int64_t n, int64_t parts, const Cut& cut) {
    Grid best = {m, n, 1, 1};
    int64_t best_cost = INT64_MAX;
    for (int64_t down = 1; down <= parts; ++down) {
        const int64_t rows = std::min(m, round_up((m + down - 1) / down, cut.row_unit));
        const int64_t across = parts / down;
        const int64_t columns = std::min(n, round_up((n + across - 1) / across, cut.column_unit));
        const int64_t cost = rows * columns + cut.row_cost * rows + cut.column_cost * columns;
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = {rows, columns, (n + columns - 1) / columns, 0};
        best.tiles = best.across * ((m + rows - 1) / rows);
    }
    return best;
}

const std::string& openblas_problem() { return openblas().error; }

const catena_blas blas_table = catena::plugin::blas_of("openblas", supports, run);

}  // namespace catena_cpu
