// Runs grids. A fiber runs threads one after another until one has to wait: a kernel without
// barriers needs a single fiber, and no switch between threads.
#include "grid.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <deque>
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

constexpr int lanes = 32;

struct Thread {
    enum class State { ready, in_barrier, in_warp, done };
    uint3 index = {};
    State state = State::ready;
    Fiber* fiber = nullptr;  // set while the thread has begun and not ended
    // The thread's input to a warp operation; value then holds its result.
    std::uint32_t mask = 0;
    std::uint64_t value = 0;
    Pick pick = nullptr;
    int argument = 0;
    int width = lanes;
};

// Runs blocks on one OS thread.
class Runner {
public:
    std::string run(const Grid& grid, std::uint64_t block);

    void sync(bool predicate);
    int count() const { return last_count_; }
    std::uint64_t exchange(std::uint32_t mask, std::uint64_t value, Pick pick, int argument,
                           int width);
    [[noreturn]] void give_up(std::string why);
    void* shared() { return shared_.data(); }
    unsigned shared_bytes() const { return static_cast<unsigned>(grid_->shared_bytes); }

private:
    static void fiber_main();
    void run_threads();
    void wait();  // suspends the running thread
    Fiber& next_fiber();
    void finish(int thread);
    void complete_warp(int warp, std::uint32_t mask);
    std::uint32_t waiting(int warp, std::uint32_t mask) const;
    std::uint32_t absent(int warp) const;
    bool any_ready() const { return released_ < n_ || !ready_.empty(); }
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
    int in_warp_ = 0;
    int predicates_ = 0;
    int last_count_ = 0;
    std::string failure_;
    std::vector<Thread> threads_;
    // A barrier released the threads from number released_ on, except releaser_, which completed
    // it. They run before those in ready_.
    int released_ = 0;
    int releaser_ = 0;
    std::deque<int> ready_;
    Fiber here_;
    Fiber* const scheduler_ = &here_;
    Fiber* running_ = nullptr;
    std::vector<std::unique_ptr<Fiber>> fibers_;
    std::vector<Fiber*> idle_;
    std::vector<std::max_align_t> shared_;
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
    next_ = done_ = in_barrier_ = in_warp_ = predicates_ = 0;
    failure_.clear();
    released_ = n_;
    ready_.clear();
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
    // As on a device, shared memory is uninitialized at the start of a block.
    shared_.resize((grid.shared_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    if (!shared_.empty())
        std::memset(static_cast<void*>(shared_.data()), 0xff, shared_.size() * sizeof shared_[0]);
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
    if (released_ < n_) {
        current_ = number(released_++);
        skip_releaser();
    } else {
        current_ = ready_.front();
        ready_.pop_front();
    }
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
    if (in_warp_ == 0) return;
    // Threads of its warp may have waited only for this one.
    const int warp = thread / lanes;
    for (int lane = 0; lane < lanes && warp * lanes + lane < n_; ++lane) {
        const Thread& other = threads_[static_cast<unsigned>(warp * lanes + lane)];
        if (other.state == Thread::State::in_warp &&
            ((waiting(warp, other.mask) | absent(warp)) & other.mask) == other.mask)
            complete_warp(warp, other.mask);
    }
}

void Runner::sync(bool predicate) {
    Thread& me = threads_[static_cast<unsigned>(current_)];
    predicates_ += predicate;
    if (++in_barrier_ < n_) {
        me.state = Thread::State::in_barrier;
        return wait();
    }
    released_ = 0;
    releaser_ = current_;
    skip_releaser();
    last_count_ = predicates_;
    in_barrier_ = predicates_ = 0;
}

std::uint32_t Runner::waiting(int warp, std::uint32_t mask) const {
    std::uint32_t bits = 0;
    for (int lane = 0; lane < lanes && warp * lanes + lane < n_; ++lane) {
        const Thread& t = threads_[static_cast<unsigned>(warp * lanes + lane)];
        if (t.state == Thread::State::in_warp && t.mask == mask) bits |= 1u << lane;
    }
    return bits;
}

// Returns the lanes whose thread has ended or does not exist.
std::uint32_t Runner::absent(int warp) const {
    std::uint32_t bits = 0;
    for (int lane = 0; lane < lanes; ++lane) {
        const int thread = warp * lanes + lane;
        if (thread >= n_ || threads_[static_cast<unsigned>(thread)].state == Thread::State::done)
            bits |= 1u << lane;
    }
    return bits;
}

std::uint64_t Runner::exchange(std::uint32_t mask, std::uint64_t value, Pick pick, int argument,
                               int width) {
    const int thread = current_;
    const int warp = thread / lanes;
    Thread& me = threads_[static_cast<unsigned>(thread)];
    if ((mask >> (thread % lanes) & 1) == 0)
        give_up("a lane is not in the mask that it gives to its warp");
    if (width < 1 || width > lanes || !std::has_single_bit(static_cast<unsigned>(width)))
        give_up("a shuffle's width is no power of 2 up to 32");
    me.mask = mask;
    me.value = value;
    me.pick = pick;
    me.argument = argument;
    me.width = width;
    me.state = Thread::State::in_warp;
    ++in_warp_;
    if (((waiting(warp, mask) | absent(warp)) & mask) == mask) complete_warp(warp, mask);
    else wait();
    me.state = Thread::State::ready;
    return me.value;
}

// All lanes of mask have arrived: computes their results and makes all but the running one ready.
void Runner::complete_warp(int warp, std::uint32_t mask) {
    std::uint64_t values[lanes];
    std::memset(values, 0xff, sizeof values);  // NaN: for absent lanes
    const std::uint32_t present = waiting(warp, mask);
    for (int lane = 0; lane < lanes; ++lane)
        if ((present >> lane & 1) != 0)
            values[lane] = threads_[static_cast<unsigned>(warp * lanes + lane)].value;
    for (int lane = 0; lane < lanes; ++lane) {
        if ((present >> lane & 1) == 0) continue;
        const int thread = warp * lanes + lane;
        Thread& t = threads_[static_cast<unsigned>(thread)];
        t.value = t.pick(values, present, lane, t.argument, t.width);
        t.state = Thread::State::ready;
        --in_warp_;
        if (thread != current_) ready_.push_back(thread);
    }
}

void Runner::give_up(std::string why) {
    failure_ = std::move(why);
    running_ = nullptr;
    threads_[static_cast<unsigned>(current_)].fiber->switch_to(*scheduler_);
    __builtin_unreachable();
}

std::string Runner::stuck() const {
    int barrier = 0;
    int warp = 0;
    for (const Thread& t : threads_) {
        barrier += t.state == Thread::State::in_barrier;
        warp += t.state == Thread::State::in_warp;
    }
    return "barrier: expected all " + std::to_string(n_) + " threads of a block, got " +
           std::to_string(barrier) + " in __syncthreads(), " + std::to_string(warp) +
           " in an operation of their warp, " + std::to_string(done_) + " that have ended";
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

void sync_block() { this_runner().sync(false); }
int sync_block_count(bool predicate) {
    this_runner().sync(predicate);
    return this_runner().count();
}
unsigned dynamic_shared_bytes() { return this_runner().shared_bytes(); }
void trap(const char* why) { this_runner().give_up(why); }
std::uint64_t exchange(std::uint32_t mask, std::uint64_t value, Pick pick, int argument,
                       int width) {
    return this_runner().exchange(mask, value, pick, argument, width);
}
void* dynamic_shared_memory() { return this_runner().shared(); }

// A lane that would read outside its own segment of width lanes gets its own value.
std::uint64_t pick_lane(const std::uint64_t* values, std::uint32_t, int lane, int from, int width) {
    return values[(lane & ~(width - 1)) | (from & (width - 1))];
}
std::uint64_t pick_up(const std::uint64_t* values, std::uint32_t, int lane, int delta, int width) {
    return values[(lane & (width - 1)) < delta ? lane : lane - delta];
}
std::uint64_t pick_down(const std::uint64_t* values, std::uint32_t, int lane, int delta,
                        int width) {
    return values[(lane & (width - 1)) + delta >= width ? lane : lane + delta];
}
std::uint64_t pick_xor(const std::uint64_t* values, std::uint32_t, int lane, int bits, int width) {
    const int from = lane ^ bits;
    return values[from >= (lane & ~(width - 1)) + width ? lane : from & (lanes - 1)];
}
std::uint64_t pick_ballot(const std::uint64_t* values, std::uint32_t present, int, int, int) {
    std::uint32_t bits = 0;
    for (int lane = 0; lane < lanes; ++lane)
        if ((present >> lane & 1) != 0 && values[lane] != 0) bits |= 1u << lane;
    return bits;
}

}  // namespace catena_emulator
