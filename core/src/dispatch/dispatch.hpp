// Calls of functions, on arrays and on variables, and the call engine: one call, prepared once and
// tried with one kernel after another.
#pragma once

#include "array/array_ops.hpp"
#include "registry/registry.hpp"

namespace catena {

// ---- inputs

// "x (2, 3) float32, W (4, 3) float32".
std::string describe_inputs(const FunctionEntry& function, std::span<ArrayBody* const> x);
[[noreturn]] void throw_arity(const FunctionEntry& function, std::size_t inputs);
inline void check_arity(const FunctionEntry& function, std::size_t inputs) {
    const bool too_many = !function.variadic && inputs > function.descriptor.n_inputs;
    if (inputs < function.min_inputs || too_many) throw_arity(function, inputs);
}
// what: the name of the output, or "saved".
[[noreturn]] void throw_shape(const FunctionEntry& function, const char* what,
                              const catena_meta& meta, std::span<ArrayBody* const> x);

// Collects the dtype of each type_var. Throws DtypeError if one has two.
class TypeKey {
public:
    explicit TypeKey(const FunctionEntry& f) : f_(&f) {}

    // name: of the port, for messages.
    template <class Name>
    void add(int type, catena_dtype given, const Name& name) {
        const int dtype = dtype_index(given);
        const auto shift = static_cast<unsigned>(4 * type);
        const bool seen = seen_ >> type & 1;
        if (dtype < 0 || (seen && static_cast<int>(bits_ >> shift & 15) != dtype))
            refuse(seen ? type : -1, given, name());
        seen_ |= 1u << type;
        bits_ |= static_cast<std::uint64_t>(dtype) << shift;
    }
    std::uint64_t bits() const noexcept { return bits_; }

private:
    [[noreturn]] void refuse(int type, catena_dtype given, const std::string& name) const;

    const FunctionEntry* f_;
    unsigned seen_ = 0;
    std::uint64_t bits_ = 0;
};

// The inputs as infer() and forward kernels get them: one entry for each, null for a missing one.
struct ForwardInputs {
    // Throws InvalidError for an input that is missing and not optional, DeviceError if two are on
    // different devices, DtypeError for dtypes that do not go together.
    ForwardInputs(const FunctionEntry& function, std::span<ArrayBody* const> x);

    TypeKey key;
    DeviceState* device = nullptr;  // of the inputs, or the current one if there are none
    SmallVector<const catena_meta*, 6> metas;
    SmallVector<const catena_tensor*, 6> tensors;
};

// ---- the call engine

// The arrays that a call writes. Kernels may write to them until the work is given to the queue.
class Writes {
public:
    explicit Writes(Queue& queue) noexcept : queue_(queue) {}
    Writes(Writes&&) = delete;
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
    // Runs a kernel for calls that write these arrays, and tells observers. Later uses of the arrays
    // come after this work.
    template <class Run>
    catena_status launch(const catena_function& function, const catena_kernel& kernel,
                         std::span<const catena_call* const> calls, const Run& run) {
        note_launch(queue_, function, calls[0]->phase);
        const RunHook* const hook = run_hook.load(std::memory_order_acquire);
        const std::int64_t began = hook ? hook->begin(queue_) : 0;
        const catena_status status = run();
        if (hook) hook->end(queue_, began, kernel, calls);
        if (queue_.async) {
            const std::uint64_t ticket = queue_.advance();
            for (ArrayBody* body : bodies_) after_write(*body, queue_, ticket);
        }
        clear();
        return status;
    }
    void clear() noexcept {
        for (ArrayBody* body : bodies_) seal(*body);
        bodies_.clear();
    }

private:
    Queue& queue_;
    SmallVector<ArrayBody*, 4> bodies_;
};

// CATENA_CALL_* of a configuration.
std::uint32_t call_flags(const Config& config) noexcept;

// Adds the inputs that a call of the function updates.
void add_mutated(Writes& writes, const FunctionEntry& function, std::span<ArrayBody* const> x);

// The owner fills in the tensors of `call`, and says in `writes` which of them the call writes.
class KernelRun {
public:
    // x: inputs of a forward call, for messages, and for those that it updates. saved: gets what a
    // forward kernel saves.
    KernelRun(const FunctionEntry& function, const BoundAttributes& attributes, Queue& queue,
              std::int32_t phase, std::uint32_t flags, std::span<ArrayBody* const> x = {},
              SmallVector<Array, 2>* saved = nullptr)
        : writes(queue), function_(function), queue_(queue), x_(x), saved_(saved) {
        call.struct_size = sizeof(catena_call);
        call.flags = flags;
        call.phase = phase;
        call.function = &function.descriptor;
        call.attrs = attributes.values();
        call.stream = queue.native;
        call.dev = queue.device.dev;
        call.device_id = queue.device.ordinal;
        ctx.device = &queue.device;
    }

    catena_call call{};
    catena_ctx ctx;
    Writes writes;

    // Runs the kernel. False if it declines. Throws if it fails.
    bool attempt(const catena_kernel& kernel);
    // Throws what a plugin said went wrong.
    [[noreturn]] void fail(catena_status status) const;

private:
    bool decline() noexcept;
    bool attempt_planned(const catena_kernel& kernel);
    void allocate_saved();
    void run(const catena_kernel& kernel);
    bool can_run_again() const noexcept;

    const FunctionEntry& function_;
    Queue& queue_;
    const std::span<ArrayBody* const> x_;
    SmallVector<Array, 2>* const saved_;
};

// ---- calls

using Results = SmallVector<Variable, 2>;

// What a forward run leaves behind.
struct ForwardResult {
    SmallVector<Array, 2> y;
    SmallVector<Array, 2> saved;
    const catena_kernel* paired = nullptr;  // the backward bound to the kernel that ran
    DeviceState* device = nullptr;          // where it ran; y is on the inputs' device
    std::uint64_t key = 0;
    std::uint32_t flags = 0;  // CATENA_CALL_*
};

// Bool arrays next to numbers count as 0 and 1: if a bool input shares its type variable with a numeric
// one, numbers[i] is x[i] in that dtype. Returns whether there are any.
bool masks_as_numbers(const FunctionEntry& function, std::span<ArrayBody* const> x,
                      SmallVector<Array, 6>& numbers);

// x: one entry for each port, null for a missing optional one.
ForwardResult run_forward(FunctionEntry& function, const BoundAttributes& attributes,
                          std::span<ArrayBody* const> x, const Config& now, bool needs_backward);

// Calls on variables; records the graph if anything wants a gradient.
Results call_function(FunctionEntry& function, const BoundAttributes& attributes,
                      std::span<const Variable* const> inputs);

// Calls on arrays, in the thread's configuration; all outputs, hidden ones included.
ForwardResult forward_arrays(FunctionEntry& function, const BoundAttributes& attributes,
                             std::span<const Array> inputs);

// there += gradient, by the function that plugins declared as the addition. False if no kernel of it
// can add in place.
bool add_in_place(const Array& there, const Array& gradient);

}  // namespace catena
