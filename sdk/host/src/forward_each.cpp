// forward_each(): calls one function on many lists of inputs; runs the calls of a kernel at once if possible.
#include "dispatch/dispatch.hpp"
#include "support.hpp"

#include <catena/abi/ext/draft/many.h>
#include <catena/core/error.hpp>
#include <catena/forward_each.hpp>

#include <algorithm>

namespace catena {
namespace {

// Returns the table that runs many calls of this kernel at once, or null.
const catena_many* many_of(const DeviceState& device, const catena_kernel& kernel) {
    for (const void* const* table =
             Registry::get().extensions(&device.backend, CATENA_MANY_DRAFT_1);
         *table; ++table) {
        const auto* many = static_cast<const catena_many*>(*table);
        if (many->has(&kernel)) return many;
    }
    return nullptr;
}

}  // namespace

// Collects calls of a function, and runs those of the same kernel at once.
class CallGroup {
public:
    CallGroup(const PluginFunction& function, AttributeMemory* memory)
        : function_(function), f_(function.entry()), now_(config()), memory_(memory) {}

    // Adds a call, or runs it now if it cannot run together with others. Arrays must live until flush().
    void add(std::span<ArrayBody* const> x) {
        ForwardInputs in(f_, x);
        DeviceState& device = *in.device;
        if (!*Registry::get().extensions(&device.backend, CATENA_MANY_DRAFT_1))
            return run_alone(x, device);
        Queue& queue = current_queue(device);
        const std::uint32_t flags = call_flags(now_);
        KernelRun checked(f_, *function_.attributes(), queue, CATENA_PHASE_FORWARD, flags, x);
        checked.call.n_x = static_cast<std::uint32_t>(x.size());
        const catena_status status = f_.descriptor.infer(
            &checked.ctx, checked.call.attrs, in.metas.data(), checked.call.n_x, nullptr, 0);
        if (status != CATENA_OK) checked.fail(status);
        const Selection& selection = f_.select(
            selection_key(device.index, flags & CATENA_CALL_DETERMINISTIC, in.key.bits()), device);
        const catena_kernel* kernel =
            selection.forward.empty() ? nullptr : selection.forward[0].forward;
        // Kernels with supports(), plan() or a variant run one call at a time.
        if (!kernel || kernel->supports || kernel->plan || kernel->variant)
            return run_alone(x, device);
        auto same = std::ranges::find_if(
            groups_, [&](const Same& s) { return s.kernel == kernel && s.queue == &queue; });
        if (same == groups_.end()) {
            const catena_many* many = many_of(device, *kernel);
            if (!many) return run_alone(x, device);
            same = groups_.insert(same, Same{kernel, &queue, many, {}});
        }
        same->calls.push_back(
            {SmallVector<ArrayBody*, 6>(x.begin(), x.end()), std::move(in.tensors), checked.call});
    }
    void flush() {
        for (Same& same : groups_) run(same);
        groups_.clear();
    }

private:
    struct Call {
        SmallVector<ArrayBody*, 6> x;
        SmallVector<const catena_tensor*, 6> tensors;
        catena_call call;
    };
    struct Same {
        const catena_kernel* kernel;
        Queue* queue;
        const catena_many* many;
        std::vector<Call> calls;
    };
    void run(Same& same) {
        Queue& queue = *same.queue;
        const Array* const own = attributes(same);
        catena_ctx ctx;
        ctx.device = &queue.device;
        std::vector<const catena_call*> list;
        for (Call& call : same.calls) {
            call.call.x = call.tensors.data();
            list.push_back(&call.call);
            for (ArrayBody* x : call.x)
                if (x) before_read(*x, queue);
        }
        Writes writes(queue);
        for (const Call& call : same.calls) add_mutated(writes, f_, {call.x.data(), call.x.size()});
        const catena_status status = writes.launch(f_.descriptor, *same.kernel, list, [&] {
            return same.many->run(&ctx, same.kernel, list.data(),
                                  static_cast<std::uint32_t>(list.size()),
                                  own ? own->body()->tensor.dl.data : nullptr);
        });
        if (status != CATENA_OK) throw_failure(ctx, status, f_.descriptor.name);
        if (!now_.debug) return;
        for (const Call& call : same.calls)
            diagnostics().check_forward(f_, {call.x.data(), call.x.size()}, {});
    }
    void run_alone(std::span<ArrayBody* const> x, DeviceState& device) {
        if (memory_ && current_queue(device).recording.load())
            fail<UnsupportedError>(
                "[{}] recording: expected a kernel that reads attributes from memory, got one on "
                "{} "
                "that takes them with the call",
                f_.descriptor.name, device.name);
        run_forward(f_, *function_.attributes(), x, now_, false);
        if (now_.debug) diagnostics().check_forward(f_, x, {});
    }
    // Returns the array with the kernel's attributes, or null. Writes them unless the call is recorded.
    const Array* attributes(const Same& same) {
        if (!memory_) return nullptr;
        const Device device(&same.queue->device);
        const bool recorded = same.queue->recording.load();
        auto place = std::find_if(
            memory_->places_.begin(), memory_->places_.end(),
            [&](const auto& p) { return p.kernel == same.kernel && p.bytes.device() == device; });
        if (place == memory_->places_.end()) {
            if (recorded)
                fail<UnsupportedError>(
                    "[{}] recording: expected a call like this one before, got none",
                    f_.descriptor.name);
            const auto n = static_cast<std::int64_t>(same.many->attribute_bytes(same.kernel));
            memory_->places_.push_back(
                {same.many, same.kernel, Array::empty({n}, Dtype::uint8, device)});
            place = memory_->places_.end() - 1;
        }
        if (!recorded) AttributeMemory::write(*place, function_);
        before_read(*place->bytes.body(), *same.queue);
        return &place->bytes;
    }

    const PluginFunction& function_;
    FunctionEntry& f_;
    const Config& now_;
    AttributeMemory* memory_;
    std::vector<Same> groups_;
};

void AttributeMemory::write(const Place& place, const PluginFunction& function) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(place.bytes.size()));
    catena_ctx ctx;
    ctx.device = place.bytes.device().state();
    const catena_status status =
        place.many->attributes(&ctx, place.kernel, function.attributes()->values(), bytes.data());
    if (status != CATENA_OK) throw_failure(ctx, status, std::string(function.name()));
    write_bytes(place.bytes, bytes.data());
}
void AttributeMemory::write(const PluginFunction& function) const {
    for (const Place& place : places_) write(place, function);
}

void forward_each(const PluginFunction& function, std::size_t n,
                  const std::function<std::span<const Array>(std::size_t)>& inputs,
                  AttributeMemory* memory) {
    const FunctionEntry& f = function.entry();
    if (f.descriptor.n_outputs != 0)
        fail<InvalidError>(
            "[{}] forward_each(): expected a function without outputs, got one with {}",
            f.descriptor.name, f.descriptor.n_outputs);
    CallGroup group(function, memory);
    for (std::size_t i = 0; i < n; ++i) {
        const std::span<const Array> given = inputs(i);
        if (given.empty()) continue;
        check_arity(f, given.size());
        SmallVector<ArrayBody*, 6> x;
        for (const Array& input : given) x.push_back(input.body());
        while (x.size() < f.descriptor.n_inputs) x.push_back(nullptr);
        group.add({x.data(), x.size()});
    }
    group.flush();
}

}  // namespace catena
