// The call engine: one call of a function, prepared once and tried with one kernel after another.
#pragma once

#include "array/array_ops.hpp"
#include "device/context.hpp"
#include "registry/attributes.hpp"
#include "registry/registry.hpp"

#include <catena/core/config.hpp>

#include <span>

namespace catena {

// The arrays that a call writes. Kernels may write to them until the work is given to the queue.
class Writes {
public:
    explicit Writes(Queue& queue) noexcept : queue_(queue) {}
    Writes(const Writes&) = delete;
    Writes& operator=(const Writes&) = delete;
    ~Writes() { clear(); }

    // An array without elements so far.
    void add_new(ArrayBody& body) {
        bodies_.push_back(&body);
        unseal(body);
    }
    // An array with elements: the work comes after what uses it now.
    void add(ArrayBody& body) {
        bodies_.push_back(&body);
        before_write(body, queue_);
        written(body);
        unseal(body);
        if (!queue_.async) after_write(body, queue_, 0);
    }
    // After the work was given to the queue: later uses of the arrays come after it.
    void given() noexcept {
        if (queue_.async) {
            const std::uint64_t ticket = queue_.advance();
            for (ArrayBody* body : bodies_) after_write(*body, queue_, ticket);
        }
        clear();
    }
    void clear() noexcept {
        for (ArrayBody* body : bodies_) seal(*body);
        bodies_.clear();
    }

private:
    Queue& queue_;
    SmallVector<ArrayBody*, 4> bodies_;
};

// What every call of the function has: all but its tensors.
inline catena_call make_call(const FunctionEntry& function, const BoundAttributes& attributes,
                             const Queue& queue, std::int32_t phase, std::uint32_t flags) noexcept {
    return {.struct_size = sizeof(catena_call),
            .flags = flags,
            .phase = phase,
            .n_saved = 0,
            .function = &function.descriptor,
            .attrs = attributes.values(),
            .n_x = 0,
            .n_y = 0,
            .x = nullptr,
            .y = nullptr,
            .gy = nullptr,
            .gx = nullptr,
            .saved = nullptr,
            .req = nullptr,
            .targets = nullptr,
            .stream = queue.native,
            .scratch = nullptr,
            .scratch_bytes = 0,
            .dev = queue.device.dev,
            .device_id = queue.device.ordinal,
            .reserved = 0};
}

// CATENA_CALL_* of a configuration.
std::uint32_t call_flags(const Config& config) noexcept;

// Adds the inputs that a call of the function updates.
void add_mutated(Writes& writes, const FunctionEntry& function, std::span<ArrayBody* const> x);

// The owner fills in the tensors of `call`, and says in `writes` which of them the call writes.
class KernelRun {
public:
    // A forward call. x: for messages, and for the inputs that the call updates. saved: gets what the
    // kernel saves.
    KernelRun(const FunctionEntry& function, const BoundAttributes& attributes, Queue& queue,
              std::uint32_t flags, std::span<ArrayBody* const> x, SmallVector<Array, 2>* saved)
        : KernelRun(function, attributes, queue, CATENA_PHASE_FORWARD, flags) {
        x_ = x;
        saved_ = saved;
    }
    // A backward call.
    KernelRun(const FunctionEntry& function, const BoundAttributes& attributes, Queue& queue,
              std::uint32_t flags)
        : KernelRun(function, attributes, queue, CATENA_PHASE_BACKWARD, flags) {}

    catena_call call;
    catena_ctx ctx;
    Writes writes;

    // Runs the kernel. False if it declines. Throws if it fails.
    bool attempt(const catena_kernel& kernel);
    // Throws what a plugin said went wrong.
    [[noreturn]] void fail(catena_status status) const;

private:
    KernelRun(const FunctionEntry& function, const BoundAttributes& attributes, Queue& queue,
              std::int32_t phase, std::uint32_t flags)
        : call(make_call(function, attributes, queue, phase, flags)),
          writes(queue),
          function_(function),
          queue_(queue) {
        ctx.device = &queue.device;
    }
    bool decline() noexcept;
    bool attempt_planned(const catena_kernel& kernel);
    void allocate_saved();
    void run(const catena_kernel& kernel);
    bool can_run_again() const noexcept;

    const FunctionEntry& function_;
    Queue& queue_;
    std::span<ArrayBody* const> x_;
    SmallVector<Array, 2>* saved_ = nullptr;
};

}  // namespace catena
