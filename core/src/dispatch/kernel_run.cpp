// Checks of inputs, and the steps of a kernel call: supports, plan, saved tensors, scratch, run, order
// on the queue.
#include "dispatch/dispatch.hpp"

#include <algorithm>
#include <limits.hpp>

namespace catena {

std::string describe_inputs(const FunctionEntry& f, std::span<ArrayBody* const> x) {
    std::string text;
    for (std::uint32_t i = 0; i < x.size(); ++i) {
        if (!x[i]) continue;
        text +=
            fmt::format("{}{} {} {}", text.empty() ? "" : ", ", f.input_name(i),
                        shape_to_string(x[i]->meta.shape, x[i]->meta.ndim), name(x[i]->meta.dtype));
    }
    return text.empty() ? "no inputs" : text;
}

void throw_arity(const FunctionEntry& f, std::size_t got) {
    const std::uint32_t least = f.min_inputs, most = f.descriptor.n_inputs;
    const std::string expected = f.variadic      ? fmt::format("{} or more", least)
                                 : least == most ? fmt::format("{}", least)
                                                 : fmt::format("{} to {}", least, most);
    raise<InvalidError>("[{}] inputs: expected {}, got {}", f.descriptor.name, expected, got);
}

void throw_shape(const FunctionEntry& f, const char* what, const catena_meta& meta,
                 std::span<ArrayBody* const> x) {
    const bool countable = meta.ndim >= 0 && meta.ndim <= CATENA_MAX_NDIM;
    raise<ShapeError>(
        "[{}] {}: expected a shape that an array can have, got {} ({})", f.descriptor.name, what,
        countable ? shape_to_string(meta.shape, meta.ndim) : fmt::format("{} axes", meta.ndim),
        describe_inputs(f, x));
}

namespace {

[[noreturn]] void throw_missing(const FunctionEntry& f, std::uint32_t i) {
    raise<InvalidError>("[{}] {}: expected an array, got none", f.descriptor.name, f.input_name(i));
}

[[noreturn]] void throw_elsewhere(const FunctionEntry& f, std::span<ArrayBody* const> x,
                                  std::uint32_t i) {
    std::uint32_t first = 0;
    while (!x[first]) ++first;
    raise<DeviceError>("[{}] {}: expected {} as {}, got {}", f.descriptor.name, f.input_name(i),
                       x[first]->device->name, f.input_name(first), x[i]->device->name);
}

}  // namespace

// Local variables are faster here than members.
ForwardInputs::ForwardInputs(const FunctionEntry& f, std::span<ArrayBody* const> x) : key(f) {
    metas.resize_for_overwrite(x.size());
    tensors.resize_for_overwrite(x.size());
    const catena_meta** const all_metas = metas.data();
    const catena_tensor** const all_tensors = tensors.data();
    TypeKey types(f);
    DeviceState* found = nullptr;
    for (std::uint32_t i = 0; i < x.size(); ++i) {
        ArrayBody* const body = x[i];
        all_metas[i] = body ? &body->meta : nullptr;
        all_tensors[i] = body ? &body->tensor : nullptr;
        if (!body) {
            if (!(f.input_flags(i) & CATENA_PORT_OPTIONAL)) throw_missing(f, i);
            continue;
        }
        if (!found) found = body->device;
        else if (body->device != found) throw_elsewhere(f, x, i);
        types.add(f.input_type[f.port(i)], body->meta, i, true);
    }
    key = types;
    device = found ? found : Device::current().state();
}

std::string TypeKey::name_of(std::uint32_t i, bool input) const {
    return input ? f_->input_name(i) : f_->descriptor.outputs[i]->name;
}

void TypeKey::unknown(const catena_meta& meta, std::uint32_t i, bool input) {
    raise<DtypeError>("[{}] {}: expected a dtype of catena, got {}", f_->descriptor.name,
                      name_of(i, input), name(meta.dtype));
}

void TypeKey::mismatch(int type, const catena_meta& meta, std::uint32_t i, bool input) {
    const auto of_type = [&](const std::vector<int>& types) {
        return static_cast<std::uint32_t>(std::ranges::find(types, type) - types.begin());
    };
    const std::uint32_t first = of_type(f_->input_type);
    const bool of_input = first < f_->input_type.size();
    raise<DtypeError>("[{}] {}: expected {} as {}, got {}", f_->descriptor.name, name_of(i, input),
                      name(static_cast<Dtype>(bits_ >> (4 * type) & 15)),
                      name_of(of_input ? first : of_type(f_->output_type), of_input),
                      name(meta.dtype));
}

// ---- the call engine

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
            raise<MemoryError>("[{}] plan(): scratch_bytes: expected at most {}, got {}",
                               function.name, largest_memory, bytes);
        }
        if (bytes) block_ = pool_.allocate(bytes, capacity_);
    }
    Scratch(Scratch&&) = delete;
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
            raise<DtypeError>("[{}] saved: expected a dtype of 8 to 64 bits, got {}",
                              function_.descriptor.name, name(body.meta.dtype));
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
