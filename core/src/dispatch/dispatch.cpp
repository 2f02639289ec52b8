// The call engine: input checks, kernel calls, forward calls, calls that run together.
#include "dispatch/dispatch.hpp"

#include <catena/core/extend/batch.hpp>

#include <limits.hpp>

namespace catena {

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

// Runs the call on `other`, and copies the results to result.y, which is allocated already.
void run_elsewhere(FunctionEntry& f, const BoundAttributes& attributes,
                   std::span<ArrayBody* const> x, const Config& now, bool needs_backward,
                   DeviceState& other, ForwardResult& result) {
    const catena_function& d = f.descriptor;
    tell(CATENA_LOG_DEBUG, fmt::format("[{}] no kernel for {} on {}: runs on {}", d.name,
                                       describe_inputs(f, x), result.device->name, other.name));
    SmallVector<Array, 6> copies;
    SmallVector<ArrayBody*, 6> bodies;
    for (ArrayBody* body : x) {
        copies.push_back(body ? Array(Ref(body)).to(Device(&other)) : Array());
        bodies.push_back(body ? copies.back().body() : nullptr);
    }
    const using_device scope{Device(&other)};  // for a call without inputs
    const using_value draws(draws_from, draws_from ? draws_from : result.device);
    ForwardResult there = run_forward(f, attributes, bodies, now, needs_backward);
    const auto bring = [](const Array& to, const Array& from) {
        to.copy_from(from);
        seal(*to.body());
    };
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) bring(result.y[i], there.y[i]);
    for (std::uint32_t i = 0; f.mutates && i < x.size(); ++i)
        if (x[i] && f.is_mutated(i)) bring(Array(Ref(x[i])), copies[i]);
    there.y = std::move(result.y);
    result = std::move(there);
}

// The results of a forward call as infer() and kernels get them.
struct Outputs {
    catena_meta* metas[CATENA_MAX_PORTS];
    catena_tensor* tensors[CATENA_MAX_PORTS];
    std::uint8_t req[CATENA_MAX_PORTS];
};

// Creates the results without memory, and adds their dtypes to in.key.
void infer(const FunctionEntry& f, std::span<ArrayBody* const> x, ForwardInputs& in, KernelRun& run,
           ForwardResult& result, Outputs& out, std::span<const Array> like) {
    const catena_function& d = f.descriptor;
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) {
        ArrayBody& body = *result.y.emplace_back(Array(new_body(*in.device))).body();
        out.metas[i] = &body.meta;
        out.tensors[i] = &body.tensor;
        out.req[i] = CATENA_REQ_WRITE;
    }
    const auto n_x = static_cast<std::uint32_t>(x.size());
    for (std::size_t i = 0; i < like.size(); ++i) *out.metas[i] = like[i].body()->meta;
    const catena_status status = like.empty() ? d.infer(&run.ctx, run.call.attrs, in.metas.data(),
                                                        n_x, out.metas, d.n_outputs)
                                              : CATENA_OK;
    if (status != CATENA_OK) run.fail(status);
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) {
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
    call.scratch_bytes = plan.scratch_bytes;
    if (call.scratch_bytes > largest_memory) {
        raise<MemoryError>("[{}] plan(): scratch_bytes: expected at most {}, got {}",
                           function_.descriptor.name, largest_memory, call.scratch_bytes);
    }
    CachingAllocator& pool = *queue_.pool.load(std::memory_order_relaxed);
    std::uint64_t capacity = 0;
    const auto give_back = [&](void* block) { pool.free(block, capacity); };
    call.scratch = call.scratch_bytes ? pool.allocate(call.scratch_bytes, capacity) : nullptr;
    const std::unique_ptr<void, decltype(give_back)> scratch(call.scratch, give_back);
    run(kernel);
    return true;
}

void KernelRun::allocate_saved() {
    for (const Array& array : *saved_) {
        ArrayBody& body = *array.body();
        const catena_dtype dtype = body.meta.dtype;  // only the size of its elements matters
        if (dtype.lanes != 1 || dtype.bits < 8 || dtype.bits > 64 || dtype.bits % 8 != 0) {
            raise<DtypeError>("[{}] saved: expected a dtype of 8 to 64 bits, got {}",
                              function_.descriptor.name, name(dtype));
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
                          std::span<ArrayBody* const> x, const Config& now, bool needs_backward,
                          std::span<const Array> like) {
    ForwardInputs in(f, x);
    DeviceState& device = *in.device;
    Queue& queue = current_queue(device);
    for (ArrayBody* body : x)
        if (body && !shapes_only) before_read(*body, queue);
    ForwardResult result;
    result.device = &device;
    result.flags = call_flags(now);
    Outputs out;
    KernelRun run(f, attributes, queue, CATENA_PHASE_FORWARD, result.flags, x, &result.saved);
    infer(f, x, in, run, result, out, like);
    result.key = selection_key(device.index, result.flags, in.key.bits());
    if (shapes_only) [[unlikely]] {
        for (const Array& y : result.y) seal(*y.body());
        return result;
    }
    if (f.descriptor.flags & CATENA_FUNCTION_VIEW) {
        make_view(f, x, result.y[0]);
        return result;
    }
    const Selection& selection = f.select(result.key, device);
    result.composed = f.descriptor.compose && selection.forward.empty();
    if (result.composed) return result;
    for (const Array& y : result.y) {
        allocate(*y.body(), queue);
        run.writes.add_new(*y.body());
    }
    run.call.n_x = static_cast<std::uint32_t>(x.size());
    run.call.n_y = f.descriptor.n_outputs;
    run.call.x = in.tensors.data();
    run.call.y = out.tensors;
    run.call.req = out.req;
    for (const Candidate& candidate : selection.forward) {
        // A variant without a backward kernel is used only for calls that need no gradient.
        if (candidate.forward->variant && needs_backward && !candidate.paired) continue;
        if (!run.attempt(*candidate.forward)) continue;
        result.paired = candidate.paired;
        return result;
    }
    result.composed = f.descriptor.compose;
    if (result.composed) return result;
    if (DeviceState* other = Device::fallback().state(); other && other != &device) {
        run_elsewhere(f, attributes, x, now, needs_backward, *other, result);
        return result;
    }
    diagnostics().no_kernel(f, x, Device(&device), in.key.bits(), !selection.forward.empty());
    raise<UnsupportedError>("[{}] kernel: expected one for {} on {}, got none", f.descriptor.name,
                            describe_inputs(f, x), device.name);
}

bool promote(const FunctionEntry& f, std::span<ArrayBody* const> x,
             SmallVector<Array, 6>& converted) {
    const auto rank = [](catena_dtype dtype) {
        const bool floats = dtype.code == CATENA_CODE_FLOAT || dtype.code == CATENA_CODE_BFLOAT;
        return floats ? 99 : dtype.code == CATENA_CODE_BOOL ? 0 : int{dtype.bits};
    };
    const ArrayBody* highest[CATENA_MAX_TYPE_VARS] = {};
    for (std::size_t i = 0; i < x.size(); ++i) {
        const ArrayBody*& most = highest[f.input_type[f.port(i)]];
        if (x[i] && (!most || rank(x[i]->meta.dtype) > rank(most->meta.dtype))) most = x[i];
    }
    bool any = false;
    converted.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const int last = f.descriptor.flags & CATENA_FUNCTION_PROMOTES ? 64 : 0;
        if (!x[i] || f.is_mutated(i) || rank(x[i]->meta.dtype) > last) continue;
        Dtype dtype;
        const catena_dtype common = highest[f.input_type[f.port(i)]]->meta.dtype;
        if (rank(common) == rank(x[i]->meta.dtype) || !from_abi(common, dtype)) continue;
        const Array given{Ref(x[i])};
        converted[i] = shapes_only ? Array::without_memory(given.shape(), dtype, given.device())
                                   : given.astype(dtype);
        any = true;
    }
    return any;
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
    const std::uint64_t key = selection_key(device.index, flags, static_cast<std::uint64_t>(dtype));
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

// ---- calls of one kernel that run together

const catena_value* values_of(const PluginFunction& function) noexcept {
    return function.attributes()->values();
}

BatchedCall check_call(const PluginFunction& function, std::span<const Array> inputs) {
    FunctionEntry& f = function.entry();
    check_arity(f, inputs.size());
    BatchedCall result;
    for (const Array& input : inputs) result.x.push_back(input.body());
    while (result.x.size() < f.descriptor.n_inputs) result.x.push_back(nullptr);
    ForwardInputs in(f, result.x);
    result.queue = &current_queue(*in.device);
    KernelRun run(f, *function.attributes(), *result.queue, CATENA_PHASE_FORWARD,
                  call_flags(config()), result.x);
    run.call.n_x = static_cast<std::uint32_t>(result.x.size());
    const catena_status status =
        f.descriptor.infer(&run.ctx, run.call.attrs, in.metas.data(), run.call.n_x, nullptr, 0);
    if (status != CATENA_OK) run.fail(status);
    const std::uint64_t key = selection_key(in.device->index, run.call.flags, in.key.bits());
    // Kernels with supports(), plan() or a variant run one call at a time.
    if (const auto& kernels = f.select(key, *in.device).forward; !kernels.empty()) {
        const catena_kernel& best = *kernels[0].forward;
        if (!best.supports && !best.plan && !best.variant) result.kernel = &best;
    }
    result.tensors = std::move(in.tensors);
    result.call = run.call;
    return result;
}

void run_together(
    const PluginFunction& function, std::span<BatchedCall> calls,
    const std::function<catena_status(catena_ctx*, std::span<const catena_call* const>)>& run) {
    const FunctionEntry& f = function.entry();
    Queue& queue = *calls[0].queue;
    Writes writes(queue);
    std::vector<const catena_call*> list;
    for (BatchedCall& call : calls) {
        call.call.x = call.tensors.data();
        list.push_back(&call.call);
        for (ArrayBody* x : call.x)
            if (x) before_read(*x, queue);
    }
    for (const BatchedCall& call : calls) add_mutated(writes, f, call.x);
    catena_ctx ctx;
    ctx.device = &queue.device;
    const catena_status status =
        writes.launch(f.descriptor, *calls[0].kernel, list, [&] { return run(&ctx, list); });
    if (status != CATENA_OK) throw_failure(ctx, status, f.descriptor.name);
    if (!config().debug) return;
    for (const BatchedCall& call : calls) diagnostics().check_forward(f, call.x, {});
}

}  // namespace catena
