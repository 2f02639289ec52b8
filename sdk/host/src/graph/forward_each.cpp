// forward_each(): calls one function on many lists of inputs; runs the calls of a kernel at once if possible.
#include "../support.hpp"

#include <catena/abi/ext/draft/many.h>
#include <catena/capture.hpp>
#include <catena/core/extend/batch.hpp>
#include <catena/core/extend/context.hpp>
#include <catena/core/extend/order.hpp>
#include <catena/forward_each.hpp>

namespace catena {

// Collects calls of a function, and runs those of the same kernel at once.
class Batch {
public:
    Batch(const PluginFunction& function, AttributeMemory* memory)
        : function_(function), memory_(memory) {}

    // Adds a call, or runs it now if it cannot run together with others. Arrays must live until flush().
    void add(std::span<const Array> inputs) {
        const auto first = std::ranges::find_if(inputs, [](const Array& x) { return bool(x); });
        const Device device = first == inputs.end() ? Device::current() : first->device();
        const auto tables = device.extensions(CATENA_MANY_DRAFT_1);
        if (tables.empty()) return run_alone(inputs, device);
        BatchedCall call = check_call(function_, inputs);
        if (!call.kernel) return run_alone(inputs, device);
        auto same = std::ranges::find_if(groups_, [&](const Same& s) {
            return s.calls[0].kernel == call.kernel && s.calls[0].queue == call.queue;
        });
        if (same == groups_.end()) {
            const auto many = std::ranges::find_if(tables, [&](const void* table) {
                return static_cast<const catena_many*>(table)->has(call.kernel);
            });
            if (many == tables.end()) return run_alone(inputs, device);
            same = groups_.insert(same, Same{static_cast<const catena_many*>(*many), {}});
        }
        same->calls.push_back(std::move(call));
    }
    void flush() {
        for (Same& same : groups_) {
            const Array* const own = attributes(same);
            run_together(function_, same.calls, [&](catena_ctx* ctx, auto calls) {
                return same.many->run(ctx, same.calls[0].kernel, calls.data(),
                                      static_cast<std::uint32_t>(calls.size()),
                                      own ? address_of(*own) : nullptr);
            });
        }
        groups_.clear();
    }

private:
    struct Same {
        const catena_many* many;
        std::vector<BatchedCall> calls;
    };
    void run_alone(std::span<const Array> inputs, Device device) {
        if (memory_ && is_recorded(device))
            fail<UnsupportedError>(
                "[{}] recording: expected a kernel that reads attributes from memory, got one on "
                "{} that takes them with the call",
                function_.name(), device.name());
        function_.forward(inputs, std::span<Array>());
    }
    // Returns the array with the kernel's attributes, or null. Writes them unless the call is recorded.
    const Array* attributes(const Same& same) {
        if (!memory_) return nullptr;
        Queue& queue = *same.calls[0].queue;
        const catena_kernel* const kernel = same.calls[0].kernel;
        const Device device(&queue.device);
        const bool recorded = queue.recording.load();
        auto place = std::ranges::find_if(memory_->places_, [&](const auto& p) {
            return p.kernel == kernel && p.bytes.device() == device;
        });
        if (place == memory_->places_.end()) {
            if (recorded)
                fail<UnsupportedError>(
                    "[{}] recording: expected a call like this one before, got none",
                    function_.name());
            const auto n = static_cast<std::int64_t>(same.many->attribute_bytes(kernel));
            memory_->places_.push_back(
                {same.many, kernel, Array::empty({n}, Dtype::uint8, device)});
            place = memory_->places_.end() - 1;
        }
        if (!recorded) AttributeMemory::write(*place, function_);
        before_read(*place->bytes.body(), queue);
        return &place->bytes;
    }

    const PluginFunction& function_;
    AttributeMemory* memory_;
    std::vector<Same> groups_;
};

void AttributeMemory::write(const Place& place, const PluginFunction& function) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(place.bytes.size()));
    catena_ctx ctx;
    ctx.device = place.bytes.device().state();
    const catena_status status =
        place.many->attributes(&ctx, place.kernel, values_of(function), bytes.data());
    if (status != CATENA_OK) throw_failure(ctx, status, std::string(function.name()));
    write_bytes(place.bytes, bytes.data());
}
void AttributeMemory::write(const PluginFunction& function) const {
    for (const Place& place : places_) write(place, function);
}

void forward_each(const PluginFunction& function, std::size_t n,
                  const std::function<std::span<const Array>(std::size_t)>& inputs,
                  AttributeMemory* memory) {
    if (function.descriptor().n_outputs != 0)
        fail<InvalidError>(
            "[{}] forward_each(): expected a function without outputs, got one with {}",
            function.name(), function.descriptor().n_outputs);
    Batch calls(function, memory);
    for (std::size_t i = 0; i < n; ++i)
        if (const std::span<const Array> given = inputs(i); !given.empty()) calls.add(given);
    calls.flush();
}

}  // namespace catena
