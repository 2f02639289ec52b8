// Calls of one kernel that run together.
#include "dispatch/dispatch.hpp"

#include <catena/core/extend/batch.hpp>

namespace catena {

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
