// Declarations that the files of this plugin share.
#pragma once

#include <pthread.h>

#include <atomic>
#include <string>

#include <catena/plugin/tables.hpp>

#include "catena/abi/ext/blas.h"
#include "catena/abi/ext/compiled.h"
#include "catena/abi/ext/compiler.h"
#include "catena/abi/ext/threads.h"

namespace catena_cpu {

using catena::plugin::fail, catena::plugin::host;

// threads.cpp: the worker threads of the process, one pool that all CPU devices share.
//
// Runs one parallel_for at a time. The range is divided into chunks. Every thread owns a range of chunks,
// the same in every call of the same size, so that data stays in its cache; a thread that has finished
// takes over remaining chunks of others. Every second call processes its chunks in reverse order, because
// the data that the previous call used last is still in a cache too small for all of it. A worker spins
// for a short time after a job and then sleeps. The caller does not wait for workers that have not started.
class ThreadPool {
public:
    constexpr ThreadPool() = default;

    // [any] Returns the number of threads of a parallel_for, including the caller.
    int32_t count();

    // [any] Sets the number of threads from the next parallel_for on. n < 1: processors().
    void set_count(int32_t n);

    // [compute] Calls fn on parts of 0 .. n. A nested call, or a call while another thread's call runs,
    // processes the whole range on the calling thread. fn must not throw.
    void parallel_for(int64_t n, int64_t grain, catena_range_fn fn, void* user);

    // [any] Whether a parallel_for from this thread would run on this thread alone.
    bool is_serial();

    // [load] Ends the workers; a later parallel_for starts them again.
    void stop();

private:
    struct Seat;  // state of one thread: the chunks it owns, and whether it sleeps

    struct Job {
        catena_range_fn fn;
        void* user;
        int64_t n;
        int64_t chunk;  // elements per chunk
        int32_t threads;
        bool reversed;  // the last chunks first
    };

    static void* run_worker(void* seat);
    void resize(int32_t threads);
    void publish();
    void work(int32_t id);
    bool await_job(Seat& seat, uint32_t served, uint64_t* state);

    // Packed: epoch of the job, its threads, whether workers may join, how many workers run it now.
    alignas(64) std::atomic<uint64_t> state_ = 0;
    Job job_ = {};           // written only while no worker runs it
    Seat* seats_ = nullptr;  // seat 0 is the caller's
    int32_t n_seats_ = 0;    // less than size_ if a thread could not be created
    int32_t size_ = 0;
    alignas(64) std::atomic<bool> busy_ = false;  // guards all members above except state_
    std::atomic<bool> stopping_ = false;
    std::atomic<int32_t> spin_ns_ = 0;
    std::atomic<int32_t> count_ = 0;  // 0: not determined yet
};

// Constant-initialized, so it needs no static constructor; it is never destroyed.
extern ThreadPool pool;

// [any] Returns the number of processors that the affinity mask and cgroup quota allow this process.
int32_t processors();
extern const catena_threads threads_table;

// blas.cpp: matrix products with OpenBLAS, divided among the threads of the pool.
extern const catena_blas blas_table;
// Returns why products fail, or why only few can run at the same time; or "". The first call loads
// OpenBLAS: it sets and unsets an environment variable, so no other thread may read the environment then.
const std::string& openblas_problem();

// The division of C into tiles. Extents of tiles are multiples of the kernels' block sizes; the costs of a
// row and of a column are those of packing one, in elements of C.
struct Cut {
    int64_t row_unit;
    int64_t column_unit;
    int64_t row_cost;
    int64_t column_cost;
};
struct Grid {
    int64_t rows;  // of a tile
    int64_t columns;
    int64_t across;  // tiles per row of tiles
    int64_t tiles;
};
// [any] Returns the cheapest division of an m x n matrix into at most `parts` tiles.
Grid make_grid(int64_t m, int64_t n, int64_t parts, const Cut& cut);

// bfloat16.cpp: products with operands rounded to bfloat16, on processors with AMX or fast AVX512-BF16.
extern const catena_blas bfloat16_table;

constexpr bool is_float(catena_dtype dtype, int bits) {
    return dtype.code == CATENA_CODE_FLOAT && dtype.bits == bits && dtype.lanes == 1;
}
// skinny.cpp: products of float32 or float64 with few rows or columns.
// [any] Whether multiply_skinny() can compute a product.
bool is_skinny(const catena_gemm& gemm);
// [compute] Computes a product on the threads of the pool. Allocates nothing.
void multiply_skinny(const catena_gemm& gemm);

// compiler.cpp: the system's C++ compiler, used at run time, and the levels of the x86-64 psABI.
extern const catena_compiler compiler_table;
extern const catena_targets targets_table;

// isa.cpp
// [any] Returns the highest x86-64 psABI level that CPU and system support, 1 .. 4; 0 on other CPUs.
int isa_level();
// [any] Whether CPU and system support AMX tiles of bfloat16.
bool has_amx_bf16();
constexpr const char* isa_levels[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", nullptr};
// [any] Whether code for isa, which is a level or "", runs on this machine.
bool supports_isa(const char* isa);
// [any] Returns a text that identifies the CPU model and features, which determine `-march=native`.
std::string cpu_signature();

}  // namespace catena_cpu
