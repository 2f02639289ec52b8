// The steps of a kernel call: supports, plan, saved tensors, scratch, run, order on the queue.
#include "dispatch/kernel_run.hpp"

#include "dispatch/call_inputs.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits.hpp>

namespace catena {
namespace {

// The host has to know the size of what a kernel saves; the dtype is the kernel's own affair.
bool has_whole_bytes(catena_dtype dtype) {
    return dtype.lanes == 1 && dtype.bits >= 8 && dtype.bits <= 64 && dtype.bits % 8 == 0;
}

// Scratch memory for one call.
class Scratch {
public:
    Scratch(const catena_function& function, Queue& queue, std::uint64_t bytes)
        : pool_(*queue.pool.load(std::memory_order_relaxed)) {
        if (bytes > largest_memory) {
            throw MemoryError(fmt::format("[{}] plan(): scratch_bytes: expected at most {}, got {}",
                                          function.name, largest_memory, bytes));
        }
        if (bytes) block_ = pool_.allocate(bytes, capacity_);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
        if (block_) pool_.free(block_, capacity_);
    }
    void* get() const noexcept { return block_; }

private:
    CachingAllocator& pool_;
    void* block_ = nullptr;
    std::uint64_t capacity_ = 0;
};

}  // namespace

std::uint32_t call_flags(const Config& now) noexcept {
    std::uint32_t flags = 0;
    if (now.train) flags |= CATENA_CALL_TRAIN;
    if (now.deterministic) flags |= CATENA_CALL_DETERMINISTIC;
    return flags;
}

void add_mutated(Writes& writes, const FunctionEntry& f, std::span<ArrayBody* const> x) {
    for (std::uint32_t i = 0; f.mutates && i < x.size(); ++i)
        if (x[i] && f.is_mutated(i)) writes.add(*x[i]);
}

void KernelRun::fail(catena_status status) const {
    const catena_function& d = function_.descriptor;
    if (call.phase == CATENA_PHASE_FORWARD)
        throw_failure(ctx, status, d.name, describe_inputs(function_, x_));
    throw_failure(ctx, status, std::string(d.name) + " backward");
}

// A kernel that declines leaves nothing to the next one.
bool KernelRun::decline() noexcept {
    if (saved_) saved_->clear();
    forget_failure(ctx);
    return false;
}

bool KernelRun::attempt(const catena_kernel& kernel) {
    if (saved_) call.n_saved = kernel.n_saved;
    if (kernel.supports && !kernel.supports(&ctx, &call)) return decline();
    if (kernel.plan) return attempt_planned(kernel);
    run(kernel);
    return true;
}

// With what plan() asks for: saved tensors and scratch memory.
bool KernelRun::attempt_planned(const catena_kernel& kernel) {
    SmallVector<catena_meta*, 2> metas;
    SmallVector<catena_tensor*, 2> tensors;
    catena_plan plan{sizeof(catena_plan), 0, 0, nullptr};
    if (saved_) {
        for (std::uint32_t i = 0; i < kernel.n_saved; ++i) {
            ArrayBody& body = *saved_->emplace_back(Array(new_body(queue_.device))).body();
            metas.push_back(&body.meta);
            tensors.push_back(&body.tensor);
        }
        plan.n_saved = kernel.n_saved;
        plan.saved = metas.data();
    }
    const catena_status status = kernel.plan(&ctx, &call, &plan);
    if (status == CATENA_E_UNSUPPORTED) return decline();
    if (status != CATENA_OK) fail(status);
    if (saved_) {
        allocate_saved();
        call.saved = tensors.data();
    }
    const Scratch scratch(function_.descriptor, queue_, plan.scratch_bytes);
    call.scratch = scratch.get();
    call.scratch_bytes = plan.scratch_bytes;
    run(kernel);
    return true;
}

void KernelRun::allocate_saved() {
    for (const Array& array : *saved_) {
        ArrayBody& body = *array.body();
        if (!has_whole_bytes(body.meta.dtype)) {
            throw DtypeError(fmt::format("[{}] saved: expected a dtype of 8 to 64 bits, got {}",
                                         function_.descriptor.name, name(body.meta.dtype)));
        }
        if (!shape_known(body)) throw_shape(function_, "saved", body.meta, x_);
        allocate(body, queue_);
        writes.add_new(body);
    }
}

// If something behind the kernel, such as a vendor's library, finds no memory, what the device has
// cached is given back and the kernel runs once more, with the same random numbers.
void KernelRun::run(const catena_kernel& kernel) {
    if (call.phase == CATENA_PHASE_FORWARD) add_mutated(writes, function_, x_);
    note_launch(queue_, function_.descriptor, call.phase);
    ctx.draws = 0;  // plan() has its own
    ctx.draws_again = false;
    const RunHook* const hook = run_hook.load(std::memory_order_acquire);
    const std::int64_t began = hook ? hook->begin(queue_) : 0;
    catena_status status = kernel.run(&ctx, &call);
    if (status == CATENA_E_NOMEM && can_run_again() && make_room(ctx, status)) {
        ctx.draws_again = ctx.draws == 1;
        ctx.draws = 0;
        status = kernel.run(&ctx, &call);
    }
    const catena_call* const calls[] = {&call};
    if (hook) hook->end(queue_, began, kernel, {calls, 1});
    writes.given();
    if (status != CATENA_OK) fail(status);
}

// Whether a second run gives what the first would have given.
bool KernelRun::can_run_again() const noexcept {
    if (ctx.draws > 1) return false;  // the context knows of one
    if (call.phase == CATENA_PHASE_FORWARD) return !function_.mutates;
    return std::find(call.req, call.req + call.n_x, CATENA_REQ_ADD) == call.req + call.n_x;
}

}  // namespace catena
