// A call of a function: inference, choice of kernel, memory, run, and the node of the graph.
#pragma once

#include "registry/attributes.hpp"
#include "registry/registry.hpp"

#include <catena/core/config.hpp>
#include <catena/core/variable.hpp>

#include <limits.hpp>

#include <span>
#include <vector>

namespace catena {

// What a forward run leaves behind.
struct ForwardResult {
    SmallVector<Array, 2> y;
    SmallVector<Array, 2> saved;
    const catena_kernel* paired = nullptr;  // the backward bound to the kernel that ran
    DeviceState* device = nullptr;          // where it ran; y is on the inputs' device
    std::uint64_t key = 0;
    std::uint32_t flags = 0;  // CATENA_CALL_*
};

struct CallResult {
    SmallVector<Variable, 2> y;
};

// A bool array beside numbers counts as 0 and 1: where a bool input has the type variable of one that
// is not bool, numbers[i] is x[i] in that one's dtype, else none. Returns whether there are any.
bool masks_as_numbers(const FunctionEntry& function, std::span<ArrayBody* const> x,
                      SmallVector<Array, 6>& numbers);

// x: one entry for each port, null for a missing optional one (see full_inputs).
void run_forward(FunctionEntry& function, const BoundAttributes& attributes,
                 std::span<ArrayBody* const> x, const Config& now, bool needs_backward,
                 ForwardResult& result);

// Calls on variables; records the graph if anything wants a gradient.
void call_function(FunctionEntry& function, const BoundAttributes& attributes,
                   std::span<const Variable* const> inputs, CallResult& result);

// Calls on arrays, in the thread's configuration; all outputs, hidden ones included.
std::vector<Array> forward_arrays(FunctionEntry& function, const BoundAttributes& attributes,
                                  std::span<const Array> inputs);

// Throws if a result that callers see, or an input that the call wrote, has a NaN.
void check_forward(const FunctionEntry& function, std::span<ArrayBody* const> x,
                   std::span<const Array> y);

// "x (2, 3) float32, W (4, 3) float32": for messages.
std::string describe_inputs(const FunctionEntry& function, std::span<ArrayBody* const> x);

// CATENA_CALL_* of a configuration.
std::uint32_t call_flags(const Config& config) noexcept;

// Runs a kernel. If something behind it, such as a vendor's library, finds no memory, what the device
// has cached is given back and it runs once more, with the same random numbers; not if it adds to what
// was there, or updates it.
catena_status run_with_room(const catena_kernel& kernel, catena_ctx& ctx, const catena_call& call,
                            Queue& queue);

[[noreturn]] void throw_scratch(const catena_function& function, std::uint64_t bytes);

// Scratch memory for one call of the function: what plan() asked for. Throws MemoryError.
class Scratch {
public:
    Scratch(const catena_function& function, Queue& queue, std::uint64_t bytes)
        : pool_(*queue.pool.load(std::memory_order_relaxed)) {
        if (bytes > largest_memory) [[unlikely]]
            throw_scratch(function, bytes);
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

}  // namespace catena
