// The call engine: input checks, kernel calls, forward calls, and function handles.
#include "dispatch/dispatch.hpp"

#include <limits.hpp>

#include <algorithm>

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

// Whether the host can compute the size of a saved tensor. No other property of its dtype matters.
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

// Returns the device that runs calls for which `device` has no kernel, or null.
DeviceState* fallback_for(const DeviceState& device) {
    DeviceState* other = Device::fallback().state();
    return other == &device ? nullptr : other;
}

// Runs the call on `other`, and copies the results to result.y, which is allocated already.
void run_elsewhere(FunctionEntry& f, const BoundAttributes& attributes,
                   std::span<ArrayBody* const> x, const Config& now, bool needs_backward,
                   DeviceState& other, ForwardResult& result) {
    const catena_function& d = f.descriptor;
    host_table().log(nullptr, CATENA_LOG_DEBUG,
                     fmt::format("[{}] no kernel for {} on {}: runs on {}", d.name,
                                 describe_inputs(f, x), result.device->name, other.name)
                         .c_str());
    SmallVector<Array, 6> copies;
    SmallVector<ArrayBody*, 6> bodies;
    for (ArrayBody* body : x) {
        copies.push_back(body ? Array(Ref(body)).to(Device(&other)) : Array());
        bodies.push_back(body ? copies.back().body() : nullptr);
    }
    const using_device scope{Device(&other)};  // for a call without inputs
    const struct Draws {
        DeviceState* before = draws_from;
        explicit Draws(DeviceState* own) { draws_from = before ? before : own; }
        ~Draws() { draws_from = before; }
    } draws(result.device);
    ForwardResult there = run_forward(f, attributes, bodies, now, needs_backward);
    const auto bring = [](const Array& to, const Array& from) {
        to.copy_from(from);
        seal(*to.body());
    };
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) bring(result.y[i], there.y[i]);
    for (std::uint32_t i = 0; f.mutates && i < x.size(); ++i) {
        if (x[i] && f.is_mutated(i)) bring(Array(Ref(x[i])), copies[i]);
    }
    there.y = std::move(result.y);
    result = std::move(there);
}

// The results of a forward call as infer() and kernels get them.
struct Outputs {
    std::uint32_t n;
    catena_meta* metas[CATENA_MAX_PORTS];
    catena_tensor* tensors[CATENA_MAX_PORTS];
    std::uint8_t req[CATENA_MAX_PORTS];
};

// Creates the results without memory, and adds their dtypes to in.key.
void infer(const FunctionEntry& f, std::span<ArrayBody* const> x, ForwardInputs& in, KernelRun& run,
           ForwardResult& result, Outputs& out) {
    const catena_function& d = f.descriptor;
    out.n = d.n_outputs;
    for (std::uint32_t i = 0; i < out.n; ++i) {
        ArrayBody& body = *result.y.emplace_back(Array(new_body(*in.device))).body();
        out.metas[i] = &body.meta;
        out.tensors[i] = &body.tensor;
        out.req[i] = CATENA_REQ_WRITE;
    }
    const auto n_x = static_cast<std::uint32_t>(x.size());
    const catena_status status =
        d.infer(&run.ctx, run.call.attrs, in.metas.data(), n_x, out.metas, out.n);
    if (status != CATENA_OK) run.fail(status);
    for (std::uint32_t i = 0; i < out.n; ++i) {
        if (!shape_known(*result.y[i].body())) throw_shape(f, d.outputs[i]->name, *out.metas[i], x);
        in.key.add(f.output_type[i], out.metas[i]->dtype,
                   [&] { return std::string(d.outputs[i]->name); });
    }
}

void make_view(const FunctionEntry& f, std::span<ArrayBody* const> x, const Array& y) {
    if (y.body()->tensor.nbytes != x[0]->tensor.nbytes) {
        raise<ShapeError>("[{}] {}: expected a shape of {} elements as in {}, got {}",
                          f.descriptor.name, f.descriptor.outputs[0]->name, Array(Ref(x[0])).size(),
                          describe_inputs(f, x), y.shape());
    }
    alias(*y.body(), Ref<ArrayBody>(x[0]));
    seal(*y.body());
}

template <class T>
std::vector<T> to_vector(SmallVector<T, 2>&& values) {
    return {std::make_move_iterator(values.begin()), std::make_move_iterator(values.end())};
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
            if (f.input_flags(i) & CATENA_PORT_OPTIONAL) continue;
            raise<InvalidError>("[{}] {}: expected an array, got none", f.descriptor.name,
                                f.input_name(i));
        }
        if (!found) found = body->device;
        else if (body->device != found) {
            std::uint32_t first = 0;
            while (!x[first]) ++first;
            raise<DeviceError>("[{}] {}: expected {} as {}, got {}", f.descriptor.name,
                               f.input_name(i), found->name, f.input_name(first),
                               body->device->name);
        }
        types.add(f.input_type[f.port(i)], body->meta.dtype, [&] { return f.input_name(i); });
    }
    key = types;
    device = found ? found : Device::current().state();
}

// type: the type_var to which an earlier port gave another dtype; -1 for an unknown dtype.
void TypeKey::refuse(int type, catena_dtype given, const std::string& port) const {
    const catena_function& d = f_->descriptor;
    if (type < 0)
        raise<DtypeError>("[{}] {}: expected a dtype of catena, got {}", d.name, port, name(given));
    const auto first =
        static_cast<std::size_t>(std::ranges::find(f_->input_type, type) - f_->input_type.begin());
    const auto output = std::ranges::find(f_->output_type, type) - f_->output_type.begin();
    raise<DtypeError>("[{}] {}: expected {} as {}, got {}", d.name, port,
                      static_cast<Dtype>(bits_ >> (4 * type) & 15),
                      first < d.n_inputs ? f_->input_name(first) : d.outputs[output]->name,
                      name(given));
}

// ---- the call engine

std::uint32_t call_flags(const Config& now) noexcept {
    return (now.train ? std::uint32_t{CATENA_CALL_TRAIN} : 0) |
           (now.deterministic ? std::uint32_t{CATENA_CALL_DETERMINISTIC} : 0) |
           static_cast<std::uint32_t>(now.products);
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

// Clears the saved tensors and the failure of a kernel that declined.
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

// Runs a kernel with the saved tensors and scratch memory that plan() requests.
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

// If the kernel runs out of memory, for example in a vendor library, releases the device's cached
// memory and runs the kernel once more, with the same random numbers.
void KernelRun::run(const catena_kernel& kernel) {
    if (call.phase == CATENA_PHASE_FORWARD) add_mutated(writes, function_, x_);
    ctx.draws = 0;  // draws by plan() do not count
    ctx.draws_again = false;
    const catena_call* const calls[] = {&call};
    const catena_status status = writes.launch(function_.descriptor, kernel, calls, [&] {
        const catena_status first = kernel.run(&ctx, &call);
        if (first != CATENA_E_NOMEM || !can_run_again() || !make_room(ctx, first)) return first;
        ctx.draws_again = ctx.draws == 1;
        ctx.draws = 0;
        return kernel.run(&ctx, &call);
    });
    if (status != CATENA_OK) fail(status);
}

// Whether a second run gives the result that the first would have given.
bool KernelRun::can_run_again() const noexcept {
    if (ctx.draws > 1) return false;  // the context stores only the first
    if (call.phase == CATENA_PHASE_FORWARD) return !function_.mutates;
    return std::find(call.req, call.req + call.n_x, CATENA_REQ_ADD) == call.req + call.n_x;
}

// ---- forward calls

// Every return statement names `result`, so that it is constructed in the caller's object.
ForwardResult run_forward(FunctionEntry& f, const BoundAttributes& attributes,
                          std::span<ArrayBody* const> x, const Config& now, bool needs_backward) {
    ForwardInputs in(f, x);
    DeviceState& device = *in.device;
    Queue& queue = current_queue(device);
    for (ArrayBody* body : x)
        if (body) before_read(*body, queue);
    ForwardResult result;
    result.device = &device;
    result.flags = call_flags(now);
    Outputs out;
    KernelRun run(f, attributes, queue, CATENA_PHASE_FORWARD, result.flags, x, &result.saved);
    infer(f, x, in, run, result, out);
    result.key =
        selection_key(device.index, result.flags & CATENA_CALL_DETERMINISTIC, in.key.bits());
    if (f.descriptor.flags & CATENA_FUNCTION_VIEW) {
        make_view(f, x, result.y[0]);
        return result;
    }
    for (const Array& y : result.y) {
        allocate(*y.body(), queue);
        run.writes.add_new(*y.body());
    }
    run.call.n_x = static_cast<std::uint32_t>(x.size());
    run.call.n_y = out.n;
    run.call.x = in.tensors.data();
    run.call.y = out.tensors;
    run.call.req = out.req;
    const Selection& selection = f.select(result.key, device);
    for (const Candidate& candidate : selection.forward) {
        // A variant without a backward kernel is used only for calls that need no gradient.
        if (candidate.forward->variant && needs_backward && !candidate.paired) continue;
        if (!run.attempt(*candidate.forward)) continue;
        result.paired = candidate.paired;
        return result;
    }
    if (DeviceState* other = fallback_for(device)) {
        run_elsewhere(f, attributes, x, now, needs_backward, *other, result);
        return result;
    }
    diagnostics().no_kernel(f, x, device, in.key.bits(), !selection.forward.empty());
    raise<UnsupportedError>("[{}] kernel: expected one for {} on {}, got none", f.descriptor.name,
                            describe_inputs(f, x), device.name);
}

bool masks_as_numbers(const FunctionEntry& f, std::span<ArrayBody* const> x,
                      SmallVector<Array, 6>& numbers) {
    const auto type = [&](std::size_t i) { return f.input_type[f.port(i)]; };
    const auto is_mask = [&](std::size_t i) {
        return x[i]->meta.dtype.code == CATENA_CODE_BOOL && !f.is_mutated(i);
    };
    bool any = false;
    numbers.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t k = 0; x[i] && is_mask(i) && !numbers[i] && k < x.size(); ++k) {
            Dtype dtype;
            if (!x[k] || type(k) != type(i) || !from_abi(x[k]->meta.dtype, dtype)) continue;
            if (dtype == Dtype::bool8) continue;
            numbers[i] = Array(Ref(x[i])).astype(dtype);
            any = true;
        }
    }
    return any;
}

ForwardResult forward_arrays(FunctionEntry& function, const BoundAttributes& attributes,
                             std::span<const Array> inputs) {
    check_arity(function, inputs.size());
    SmallVector<ArrayBody*, 6> x;
    bool any_bool = false;
    for (const Array& input : inputs) {
        x.push_back(input.body());
        any_bool = any_bool || (input && input.body()->meta.dtype.code == CATENA_CODE_BOOL);
    }
    while (x.size() < function.descriptor.n_inputs) x.push_back(nullptr);
    SmallVector<Array, 6> numbers;
    if (any_bool && masks_as_numbers(function, x, numbers)) [[unlikely]] {
        for (std::size_t i = 0; i < x.size(); ++i)
            if (numbers[i]) x[i] = numbers[i].body();
    }
    const Config& now = config();
    ForwardResult result = run_forward(function, attributes, x, now, false);
    if (now.debug) [[unlikely]]
        diagnostics().check_forward(function, x, result.y);
    return result;
}

// Runs a backward kernel of the addition, which adds the gradient of y to that of its first input.
bool add_in_place(const Array& there, const Array& gradient) {
    FunctionEntry* const addition = Registry::get().addition();
    if (!addition || !addition->defaults) return false;
    const catena_function& d = addition->descriptor;
    ArrayBody& target = *there.body();
    const int dtype = dtype_index(target.meta.dtype);
    if (d.retain_x || d.retain_y || addition->type_vars != 1 || dtype < 0) return false;
    if (!same_kind(target, *gradient.body())) return false;
    DeviceState& device = *target.device;
    Queue& queue = current_queue(device);
    const std::uint32_t flags = call_flags(config());
    const std::uint64_t key = selection_key(device.index, flags & CATENA_CALL_DETERMINISTIC,
                                            static_cast<std::uint64_t>(dtype));
    KernelRun run(*addition, *addition->defaults, queue, CATENA_PHASE_BACKWARD, flags);
    const catena_tensor* const x[2] = {};
    catena_tensor* const y[1] = {};
    const catena_tensor* const gy[1] = {&gradient.body()->tensor};
    catena_tensor* const gx[2] = {&target.tensor};
    const std::uint8_t req[2] = {CATENA_REQ_ADD, CATENA_REQ_NONE};
    const std::uint64_t targets = 1;
    run.call.n_x = 2;
    run.call.n_y = 1;
    run.call.x = x;
    run.call.y = y;
    run.call.gy = gy;
    run.call.gx = gx;
    run.call.req = req;
    run.call.targets = &targets;
    before_read(*gradient.body(), queue);
    run.writes.add(target);
    for (const catena_kernel* kernel : addition->select(key, device).backward)
        if (kernel->flags & CATENA_KERNEL_ADDS && run.attempt(*kernel)) return true;
    return false;
}

// ---- handles of functions

PluginFunction::PluginFunction(std::string_view name, std::span<const Attribute> attributes)
    : PluginFunction(Registry::get().require(name), attributes) {}
PluginFunction::PluginFunction(FunctionEntry& entry, std::span<const Attribute> attributes)
    : entry_(&entry), attributes_(BoundAttributes::make(entry, attributes)) {}
PluginFunction::PluginFunction(const PluginFunction& other) noexcept = default;
PluginFunction& PluginFunction::operator=(const PluginFunction& other) noexcept = default;
PluginFunction::~PluginFunction() = default;

PluginFunction PluginFunction::with(std::initializer_list<Attribute> attributes) const {
    return with(std::span(attributes.begin(), attributes.size()));
}
PluginFunction PluginFunction::with(std::span<const Attribute> attributes) const {
    return {*entry_, attributes};
}

std::string_view PluginFunction::name() const noexcept { return entry_->descriptor.name; }
const catena_function& PluginFunction::descriptor() const noexcept { return entry_->descriptor; }

std::vector<Variable> PluginFunction::operator()(std::span<const Variable* const> inputs) const {
    return to_vector(call_function(*entry_, *attributes_, inputs));
}

std::vector<Array> PluginFunction::forward(std::span<const Array> inputs) const {
    return to_vector(forward_arrays(*entry_, *attributes_, inputs).y);
}

void PluginFunction::forward(std::span<const Array> inputs, std::span<Array> outputs) const {
    SmallVector<Array, 2> y = forward_arrays(*entry_, *attributes_, inputs).y;
    for (std::size_t i = 0; i < std::min(outputs.size(), y.size()); ++i)
        outputs[i] = std::move(y[i]);
}

Variable PluginFunction::call(std::span<const Variable* const> inputs, std::size_t output) const {
    return std::move(call_function(*entry_, *attributes_, inputs)[output]);
}

Array PluginFunction::call(std::span<const Array> inputs, std::size_t output) const {
    return std::move(forward_arrays(*entry_, *attributes_, inputs).y[output]);
}

std::size_t PluginFunction::first_output() const {
    if (entry_->descriptor.n_outputs) return 0;
    raise<InvalidError>("[{}] first(): expected an output, it has none", name());
}

// Returns the index of the only output that is not hidden.
std::size_t PluginFunction::only_output() const {
    const catena_function& d = entry_->descriptor;
    const auto hidden = [](const catena_port_spec* port) {
        return port->flags & CATENA_PORT_HIDDEN;
    };
    const std::span outputs(d.outputs, d.n_outputs);
    const auto n =
        outputs.size() - static_cast<std::size_t>(std::ranges::count_if(outputs, hidden));
    const auto shown = std::ranges::find_if_not(outputs, hidden) - outputs.begin();
    if (n == 1) return static_cast<std::size_t>(shown);
    raise<InvalidError>(
        "[{}] call: expected a function of one output, got one of {}: use f({{&x, ...}}) or "
        "forward()",
        name(), n);
}

}  // namespace catena
