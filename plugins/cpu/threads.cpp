// The thread pool. One atomic word, state_, describes the current job and how many workers run it.
#include "cpu.hpp"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <new>

namespace catena_cpu {
namespace {

constexpr int32_t max_threads = 1024;
constexpr int64_t chunks_per_thread = 8;
constexpr int32_t spin_ns = 50'000;

// Fields of ThreadPool::state_.
constexpr uint64_t joined_mask = 0xffff;
constexpr uint64_t open_bit = 1u << 16;

constexpr uint64_t make_state(uint32_t epoch, int32_t threads) {
    return (uint64_t{epoch} << 32) | (static_cast<uint64_t>(threads) << 17) | open_bit;
}

constexpr uint32_t epoch_of(uint64_t state) { return static_cast<uint32_t>(state >> 32); }

constexpr int32_t threads_of(uint64_t state) {
    return static_cast<int32_t>((state >> 17) & 0x7fff);
}

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a - 1) / b + 1; }

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

int64_t now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// Slot of this thread while it runs part of a parallel_for, else -1. initial-exec places it in static TLS,
// because glibc aborts if it cannot allocate dynamic TLS.
__attribute__((tls_model("initial-exec"))) thread_local constinit int32_t current_slot = -1;

void run_inline(int64_t n, catena_range_fn fn, void* user) {
    const int32_t outer = current_slot;
    current_slot = std::max(outer, 0);
    fn(user, 0, n, current_slot);
    current_slot = outer;
}

// Returns the CPU time that the cgroup grants, in processors: quota / period; 0 if unlimited.
double cgroup_quota() {
    double quota = 0, period = 0;
    if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file) {
        file >> quota >> period;
    } else {
        std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
        std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

struct alignas(64) ThreadPool::Seat {
    std::atomic<int64_t> next = 0;  // number of owned chunks taken so far
    int64_t begin = 0;              // owned chunks: begin .. end; written with job_
    int64_t end = 0;
    std::atomic<uint32_t> asleep = 0;
    int32_t id = 0;
    ThreadPool* owner = nullptr;
    pthread_t thread = {};
};

constinit ThreadPool pool;

int32_t processors() {
    cpu_set_t set;
    int32_t n = sched_getaffinity(0, sizeof set, &set) == 0
                    ? CPU_COUNT(&set)
                    : static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
    const double quota = cgroup_quota();
    if (quota > 0 && quota < n) n = static_cast<int32_t>(std::ceil(quota));
    return std::clamp(n, 1, max_threads);
}

int32_t ThreadPool::count() {
    if (count_.load(std::memory_order_relaxed) == 0) {
        int32_t unset = 0;
        count_.compare_exchange_strong(unset, processors(), std::memory_order_relaxed);
    }
    return count_.load(std::memory_order_relaxed);
}

void ThreadPool::set_count(int32_t n) {
    count_.store(n < 1 ? processors() : std::min(n, max_threads), std::memory_order_relaxed);
}

bool ThreadPool::is_serial() { return current_slot >= 0 || count() < 2; }

void ThreadPool::parallel_for(int64_t n, int64_t grain, catena_range_fn fn, void* user) {
    if (n <= 0) return;
    grain = std::max<int64_t>(grain, 1);
    const int64_t grains = ceil_div(n, grain);
    if (grains < 2 || is_serial() || busy_.exchange(true, std::memory_order_acquire)) {
        run_inline(n, fn, user);
        return;
    }
    const int32_t wanted = count();
    if (size_ != wanted) resize(wanted);
    const auto threads = static_cast<int32_t>(std::min<int64_t>(n_seats_, grains));
    if (threads < 2) {
        run_inline(n, fn, user);
        busy_.store(false, std::memory_order_release);
        return;
    }
    const int64_t chunk = std::max<int64_t>(grains / (threads * chunks_per_thread), 1);
    const int64_t chunks = ceil_div(grains, chunk);
    for (int32_t i = 0; i < threads; ++i) {
        seats_[i].next.store(0, std::memory_order_relaxed);
        seats_[i].begin = chunks * i / threads;
        seats_[i].end = chunks * (i + 1) / threads;
    }
    job_ = {fn, user, n, chunk * grain, threads, !job_.reversed};
    publish();
    work(0);
    state_.fetch_and(~open_bit, std::memory_order_relaxed);
    const int64_t deadline = now_ns() + spin_ns_.load(std::memory_order_relaxed);
    while ((state_.load(std::memory_order_acquire) & joined_mask) != 0)
        now_ns() < deadline ? pause() : static_cast<void>(sched_yield());
    busy_.store(false, std::memory_order_release);
}

void ThreadPool::publish() {
    const uint32_t epoch = epoch_of(state_.load(std::memory_order_relaxed)) + 1;
    // Sequentially consistent, as in await_job: the worker sees the job, or this thread wakes it.
    state_.store(make_state(epoch, job_.threads));
    for (int32_t i = 1; i < job_.threads; ++i) {
        if (seats_[i].asleep.load() == 0) continue;
        seats_[i].asleep.store(0);
        seats_[i].asleep.notify_one();
    }
}

void ThreadPool::work(int32_t id) {
    const Job& job = job_;
    current_slot = id;
    for (int32_t i = 0; i < job.threads; ++i) {
        Seat& seat = seats_[(id + i) % job.threads];
        const int64_t chunks = seat.end - seat.begin;
        if (seat.next.load(std::memory_order_relaxed) >= chunks) continue;
        for (;;) {
            const int64_t taken = seat.next.fetch_add(1, std::memory_order_relaxed);
            if (taken >= chunks) break;
            const int64_t chunk = job.reversed ? seat.end - 1 - taken : seat.begin + taken;
            const int64_t begin = chunk * job.chunk;
            job.fn(job.user, begin, std::min(begin + job.chunk, job.n), id);
        }
    }
    current_slot = -1;
}

// Waits for a job in which the worker takes part. Returns false if the worker must end.
bool ThreadPool::await_job(Seat& seat, uint32_t served, uint64_t* state) {
    const auto ready = [&] {
        *state = state_.load();
        return (*state & open_bit) != 0 && epoch_of(*state) != served &&
               seat.id < threads_of(*state);
    };
    const int64_t spin = spin_ns_.load(std::memory_order_relaxed);
    int64_t deadline = now_ns() + spin;
    for (;;) {
        if (ready()) return true;
        if (stopping_.load()) return false;
        if (now_ns() < deadline) {
            for (int i = 0; i < 8; ++i) pause();
            continue;
        }
        seat.asleep.store(1);
        if (!ready() && !stopping_.load()) seat.asleep.wait(1);
        seat.asleep.store(0);
        deadline = now_ns() + spin;
    }
}

void* ThreadPool::run_worker(void* place) {
    Seat& seat = *static_cast<Seat*>(place);
    ThreadPool& self = *seat.owner;
    char name[16];
    std::snprintf(name, sizeof name, "catena-cpu-%d", static_cast<int>(seat.id));
    pthread_setname_np(pthread_self(), name);
    uint32_t served = 0;
    uint64_t state = 0;
    while (self.await_job(seat, served, &state)) {
        if (!self.state_.compare_exchange_strong(state, state + 1, std::memory_order_acquire,
                                                 std::memory_order_relaxed))
            continue;
        served = epoch_of(state);
        self.work(seat.id);
        self.state_.fetch_sub(1, std::memory_order_release);
    }
    return nullptr;
}

// Ends all workers and starts threads - 1 new ones. No other thread may use the pool during the call.
void ThreadPool::resize(int32_t threads) {
    stopping_.store(true);
    for (int32_t i = 1; i < n_seats_; ++i) {
        seats_[i].asleep.store(0);
        seats_[i].asleep.notify_one();
        pthread_join(seats_[i].thread, nullptr);
    }
    delete[] seats_;
    n_seats_ = 0;
    size_ = threads;
    stopping_.store(false);
    seats_ = threads > 0 ? new (std::nothrow) Seat[static_cast<size_t>(threads)] : nullptr;
    if (seats_ == nullptr) return;
    // With more threads than processors, spinning threads would only take time from the others.
    spin_ns_.store(threads <= processors() ? spin_ns : 0, std::memory_order_relaxed);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // workers block all signals
    for (n_seats_ = 1; n_seats_ < threads; ++n_seats_) {
        Seat& seat = seats_[n_seats_];
        seat.id = n_seats_;
        seat.owner = this;
        if (pthread_create(&seat.thread, nullptr, run_worker, &seat) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadPool::stop() { resize(0); }

const catena_threads threads_table = {
    .struct_size = sizeof(catena_threads),
    .reserved = 0,
    .count = [](void*) { return pool.count(); },
    .set_count = [](void*, int32_t n) { pool.set_count(n); },
    .parallel_for = [](void*, int64_t n, int64_t grain, catena_range_fn fn,
                       void* user) { pool.parallel_for(n, grain, fn, user); },
};

}  // namespace catena_cpu
