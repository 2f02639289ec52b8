// What the files of the plugin provide to each other.
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
// Runs one parallel_for at a time. The range is cut into chunks; every thread owns a run of them,
// the same in every call of the same size so that data stays in its cache, and takes over what
// others have left when it is done. Every other call goes through its chunks backwards: it begins
// with what the call before used last, which is still in a cache that is too small for all. A
// worker spins for a moment after a job, then sleeps; the caller never waits for one that has not
// begun.
class ThreadPool {
public:
    constexpr ThreadPool() = default;

    // [any] Threads of a parallel_for, the caller included.
    int32_t count();

    // [any] n < 1: the processors that this process may use. Holds from the next parallel_for.
    void set_count(int32_t n);

    // [compute] A call from inside fn, and one while another thread's is running, runs on the
    // calling thread alone, as one piece. fn must not throw.
    void parallel_for(int64_t n, int64_t grain, catena_range_fn fn, void* user);

    // [any] Whether a parallel_for from this thread would run on this thread alone.
    bool is_serial();

    // [load] Ends the workers; a later parallel_for starts them again.
    void stop();

private:
    struct Seat;  // a thread's place: the chunks it owns, and whether it sleeps

    struct Job {
        catena_range_fn fn;
        void* user;
        int64_t n;
        int64_t chunk;  // elements
        int32_t threads;
        bool reversed;  // the last chunks first
    };

    static void* run_worker(void* seat);
    void resize(int32_t threads);
    void publish();
    void work(int32_t id);
    bool await_job(Seat& seat, uint32_t served, uint64_t* state);

    // Epoch of the job, threads it takes, whether workers may still join, how many have joined.
    alignas(64) std::atomic<uint64_t> state_ = 0;
    Job job_ = {};           // written while nobody has joined
    Seat* seats_ = nullptr;  // seat 0 is the caller's
    int32_t n_seats_ = 0;    // fewer than size_ if the system refused a thread
    int32_t size_ = 0;
    alignas(64) std::atomic<bool> busy_ = false;  // guards everything above but state_
    std::atomic<bool> stopping_ = false;
    std::atomic<int32_t> spin_ns_ = 0;
    std::atomic<int32_t> count_ = 0;  // 0: not asked for yet
};

// Constant-initialised and never destroyed: no static constructor.
extern ThreadPool pool;

// [any] Processors that this process may use: its affinity mask and its cgroup's quota.
int32_t processors();
extern const catena_threads threads_table;

// blas.cpp: products of OpenBLAS, divided among the threads of the pool.
extern const catena_blas blas_table;
// Why products fail, or why few of them run at a time; or "". The first call loads OpenBLAS. It sets and
// unsets an environment variable, so no other thread may read the environment at that time.
const std::string& openblas_problem();

// compiler.cpp: the system's C++ compiler, used at run time, and the levels of the x86-64 psABI.
extern const catena_compiler compiler_table;
extern const catena_targets targets_table;

// isa.cpp
// [any] Highest level of the x86-64 psABI that the CPU and the system support: 1 .. 4; 0 on other CPUs.
int isa_level();
constexpr const char* isa_levels[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64", nullptr};
// [any] Whether code for isa, a level or "", may run.
bool supports_isa(const char* isa);
// [any] What `-march=native` depends on: the model, and all its features.
std::string cpu_signature();

}  // namespace catena_cpu
