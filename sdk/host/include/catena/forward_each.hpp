// forward_each(): one function on many lists of arrays. AttributeMemory: attributes of its calls in
// device memory, so that each launch of a recording can have new ones.
#pragma once

#include <catena/core/plugin_function.hpp>

struct catena_many;

namespace catena {

// Attributes of one function, for calls with forward_each(). A call that is not
// recorded first writes its attributes here; a recorded call reads the current ones at each launch:
//
//     AttributeMemory memory;
//     forward_each(update(lr), n, inputs, &memory);
//     const Capture step(stream, [&] { forward_each(update(lr), n, inputs, &memory); }, 0);
//     memory.write(update(lr / 2));
//     step.launch();  // with half the rate
//
// If a device or kernel only takes attributes with the call, nothing is stored, and recorded calls
// throw UnsupportedError, as do those of a kernel not called before. Not thread-safe.
class AttributeMemory {
public:
    // Writes new attributes for all kernels called with this memory, for later launches.
    void write(const PluginFunction& function) const;

private:
    friend class Batch;
    struct Place {
        const catena_many* many;
        const catena_kernel* kernel;
        Array bytes;
    };
    static void write(const Place& place, const PluginFunction& function);
    std::vector<Place> places_;
};

// Calls a function without outputs, which updates its inputs, on n lists of inputs; in few launches
// where the device has a kernel for that. inputs(i) is list i; empty lists are skipped. The arrays
// must live until the end, and no call may read what another writes. Throws as
// PluginFunction::forward() for the first wrong list; some others may be updated then.
void forward_each(const PluginFunction& function, std::size_t n,
                  const std::function<std::span<const Array>(std::size_t)>& inputs,
                  AttributeMemory* memory = nullptr);

}  // namespace catena
