// Runs grids. A fiber runs threads one after another until one has to wait: a kernel without
// barriers needs a single fiber, and no switch between threads.
#include "grid.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "config.hpp"
#include "emulator/device_code.hpp"
#include "fiber.hpp"

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim, gridDim;

namespace catena_emulator {
namespace {

struct Thread {
    enum class State { ready, in_barrier, done };
    uint3 index = {};
    State state = State::ready;
    Fiber* fiber = nullptr;  // set while the thread has begun and not ended
};

// Runs blocks on one OS thread.
class Runner {
public:
    std::string run(const Grid& grid, std::uint64_t block);

    void sync();
    [[noreturn]] void give_up(std::string why);
    unsigned shared_bytes() const { return static_cast<unsigned>(grid_->shared_bytes); }

private:
    static void fiber_main();
    void run_threads();
    void wait();  // suspends the running thread
    Fiber& next_fiber();
    void finish(int thread);
    bool any_ready() const { return released_ < n_; }
    void skip_releaser() {
        if (released_ < n_ && number(released_) == releaser_) ++released_;
    }
    std::string stuck() const;
    int number(int i) const { return reversed_ ? n_ - 1 - i : i; }

    const Grid* grid_ = nullptr;
    bool reversed_ = false;
    int n_ = 0;
    int next_ = 0;  // number of threads that have begun
    int done_ = 0;
    int current_ = 0;
    int in_barrier_ = 0;
    std::string failure_;
    std::vector<Thread> threads_;
    // A barrier released the threads from number released_ on, except releaser_, which completed it.
    int released_ = 0;
    int releaser_ = 0;
    Fiber here_;
    Fiber* const scheduler_ = &here_;
    Fiber* running_ = nullptr;
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::vector<Fiber*> idle_;
};

[[gnu::tls_model("initial-exec")]] __thread Runner* runner = nullptr;

Runner& this_runner() {
    if (runner == nullptr) {
        static thread_local const auto own = std::make_unique<Runner>();
        runner = own.get();
    }
    return *runner;
}

std::string Runner::run(const Grid& grid, std::uint64_t block) {
    grid_ = &grid;
    reversed_ = config().reversed;
    const dim3 d = grid.threads;
    n_ = static_cast<int>(d.x * d.y * d.z);
    next_ = done_ = in_barrier_ = 0;
    failure_.clear();
    released_ = n_;
    threads_.assign(static_cast<std::size_t>(n_), {});
    uint3 index = {};
    for (Thread& thread : threads_) {
        thread.index = index;
        if (++index.x < d.x) continue;
        index.x = 0;
        if (++index.y < d.y) continue;
        index.y = 0;
        ++index.z;
    }
    blockDim = d;
    gridDim = grid.blocks;
    blockIdx = {static_cast<unsigned>(block % gridDim.x),
                static_cast<unsigned>(block / gridDim.x % gridDim.y),
                static_cast<unsigned>(block / gridDim.x / gridDim.y)};
    while (failure_.empty() && done_ < n_) {
        if (any_ready()) {
            scheduler_->switch_to(next_fiber());
        } else if (next_ < n_) {
            if (idle_.empty()) {
                fibers_.push_back(std::make_unique<Fiber>(&Runner::fiber_main));
                idle_.push_back(fibers_.back().get());
            }
            running_ = idle_.back();
            idle_.pop_back();
            scheduler_->switch_to(*running_);
        } else {
            failure_ = stuck();
        }
    }
    if (!failure_.empty()) {  // stacks in the middle of a kernel cannot be reused
        fibers_.clear();
        idle_.clear();
    }
    return failure_;
}

void Runner::fiber_main() {
    Runner& self = *runner;
    Fiber::entered(*self.scheduler_);
    for (;;) self.run_threads();
}

void Runner::run_threads() {
    Fiber& fiber = *running_;
    while (next_ < n_ && !any_ready() && failure_.empty()) {
        const int thread = number(next_++);
        current_ = thread;
        Thread& me = threads_[static_cast<unsigned>(thread)];
        me.fiber = &fiber;
        threadIdx = me.index;
        grid_->body();
        finish(thread);
    }
    idle_.push_back(&fiber);
    fiber.switch_to(next_fiber());
}

// Returns the fiber of a ready thread, or the scheduler, which begins further threads.
Fiber& Runner::next_fiber() {
    if (!any_ready() || !failure_.empty()) return *scheduler_;
    current_ = number(released_++);
    skip_releaser();
    running_ = threads_[static_cast<unsigned>(current_)].fiber;
    return *running_;
}

void Runner::wait() {
    const int thread = current_;
    Thread& me = threads_[static_cast<unsigned>(thread)];
    me.fiber->switch_to(next_fiber());
    threadIdx = me.index;
    me.state = Thread::State::ready;
}

void Runner::finish(int thread) {
    Thread& me = threads_[static_cast<unsigned>(thread)];
    me.state = Thread::State::done;
    me.fiber = nullptr;
    ++done_;
}

void Runner::sync() {
    Thread& me = threads_[static_cast<unsigned>(current_)];
    if (++in_barrier_ < n_) {
        me.state = Thread::State::in_barrier;
        return wait();
    }
    released_ = 0;
    releaser_ = current_;
    skip_releaser();
    in_barrier_ = 0;
}

void Runner::give_up(std::string why) {
    failure_ = std::move(why);
    running_ = nullptr;
    threads_[static_cast<unsigned>(current_)].fiber->switch_to(*scheduler_);
    __builtin_unreachable();
}

std::string Runner::stuck() const {
    return "barrier: expected all " + std::to_string(n_) + " threads of a block, got " +
           std::to_string(in_barrier_) + " in __syncthreads(), " + std::to_string(done_) +
           " that have ended";
}

}  // namespace

std::string run_grid(const Grid& grid) {
    const std::uint64_t blocks = std::uint64_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z;
    const auto pieces =
        std::min<std::uint64_t>(blocks, static_cast<std::uint64_t>(config().threads));
    std::atomic<bool> stop = false;
    std::mutex mutex;
    std::string failure;
    const auto work = [&](std::uint64_t piece) {
        for (std::uint64_t i = piece; i < blocks && !stop; i += pieces) {
            std::string why = this_runner().run(grid, config().reversed ? blocks - 1 - i : i);
            if (why.empty()) continue;
            const std::lock_guard lock(mutex);
            if (failure.empty()) failure = std::move(why);
            stop = true;
        }
    };
    std::vector<std::thread> helpers;
    for (std::uint64_t piece = 1; piece < pieces; ++piece) helpers.emplace_back(work, piece);
    work(0);
    for (std::thread& helper : helpers) helper.join();
    return failure;
}

void sync_block() { this_runner().sync(); }
unsigned dynamic_shared_bytes() { return this_runner().shared_bytes(); }
void trap(const char* why) { this_runner().give_up(why); }

}  // namespace catena_emulator
