// Calls of functions on arrays and variables; the engine prepares a call once and tries its kernels.
#pragma once

#include "array/array_ops.hpp"

namespace catena {

// ---- inputs

[[noreturn]] void throw_arity(const FunctionEntry& function, std::size_t inputs);
inline void check_arity(const FunctionEntry& function, std::size_t inputs) {
    const bool too_many = !function.variadic && inputs > function.descriptor.n_inputs;
    if (inputs < function.min_inputs || too_many) throw_arity(function, inputs);
}
// Throws ShapeError for a shape that no array can have. what: the output's name, or "saved".
[[noreturn]] void throw_shape(const FunctionEntry& function, const char* what,
                              const catena_meta& meta, std::span<ArrayBody* const> x);

// Collects the dtype of each type_var. Throws DtypeError for two dtypes of one type_var.
class TypeKey {
public:
    explicit TypeKey(const FunctionEntry& f) : f_(&f) {}

    // type: index of the port's type_var. name: returns the port's name, for messages.
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

// The inputs as infer() and forward kernels receive them: one entry for each input, null if it is missing.
struct ForwardInputs {
    // Throws InvalidError for a missing input that is not optional, DeviceError if inputs are on different
    // devices, DtypeError if their dtypes do not match.
    ForwardInputs(const FunctionEntry& function, std::span<ArrayBody* const> x);

    TypeKey key;
    DeviceState* device = nullptr;  // of the inputs, or the current one if there are none
    SmallVector<const catena_meta*, 6> metas;
    SmallVector<const catena_tensor*, 6> tensors;
};

// ---- the call engine

// The arrays that a call writes. They are writable until the kernel was launched.
class Writes {
public:
    explicit Writes(Queue& queue) noexcept : queue_(queue) {}
    Writes(Writes&&) = delete;
    ~Writes() { clear(); }

    // Adds an array with new, uninitialized memory.
    void add_new(ArrayBody& body) {
        bodies_.push_back(&body);
        unseal(body);
    }
    // Adds an array that has elements: the call runs after all earlier uses of it.
    void add(ArrayBody& body) {
        bodies_.push_back(&body);
        before_write(body, queue_);
        written(body);
        unseal(body);
        if (!queue_.async) after_write(body, queue_, 0);
    }
    // Launches a kernel that writes these arrays, and notifies observers. Later uses of them come after.
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

// Returns the CATENA_CALL_* flags of a configuration.
std::uint32_t call_flags(const Config& config) noexcept;

// Adds the inputs that a call of the function updates in place.
void add_mutated(Writes& writes, const FunctionEntry& function, std::span<ArrayBody* const> x);

// A call of a kernel. Its creator sets the tensors of `call`, and adds the written ones to `writes`.
class KernelRun {
public:
    // x: inputs of a forward call, for messages and for those that it updates in place. saved: receives the
    // tensors that a forward kernel saves.
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

    // Runs the kernel. Returns false if it declines; throws if it fails.
    bool attempt(const catena_kernel& kernel);
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

// While it is true, calls of this thread compute shapes and dtypes only: their results have no memory.
inline thread_local bool shapes_only = false;

// What the gradient of a call needs to know of its forward call.
struct ForwardState {
    SmallVector<Array, 2> saved;
    const catena_kernel* paired = nullptr;  // backward kernel bound to the kernel that ran
    DeviceState* device = nullptr;          // where it ran; y is on the inputs' device
    std::uint64_t key = 0;
    std::uint32_t flags = 0;                          // CATENA_CALL_*
    std::unique_ptr<std::vector<RandomState>> draws;  // of a composition that will run again
};
struct ForwardResult : ForwardState {
    SmallVector<Array, 2> y;
    bool composed = false;  // there is no kernel, but a composition, which has not run yet
};

// Converts bool inputs that share a type_var with a numeric input, and integers next to higher dtypes if
// the function promotes: converted[i] is x[i] in the highest dtype. Returns whether there are any.
bool promote(const FunctionEntry& function, std::span<ArrayBody* const> x,
             SmallVector<Array, 6>& converted);

// Runs a forward call. x: one entry for each input, null for a missing optional one. like: arrays like
// the results, for a function without infer().
ForwardResult run_forward(FunctionEntry& function, const BoundAttributes& attributes,
                          std::span<ArrayBody* const> x, const Config& now, bool needs_backward,
                          std::span<const Array> like = {});

// Computes there += gradient with the declared addition. Returns false if no kernel can add in place.
bool add_in_place(const Array& there, const Array& gradient);

}  // namespace catena
