// AttributeMemory: attributes of calls in device memory, so that each launch of a recording can
// have new ones.
#pragma once

#include <catena/abi/kernel.h>
#include <catena/core/array.hpp>
#include <catena/core/plugin_function.hpp>

#include <vector>

struct catena_many;

namespace catena {

// Attributes of one function, for calls with PluginFunction::forward_each(). A call that is not
// recorded first writes its attributes here; a recorded call reads the current ones at each launch:
//
//     AttributeMemory memory;
//     update(lr).forward_each(n, inputs, &memory);
//     const Capture step(stream, [&] { update(lr).forward_each(n, inputs, &memory); }, 0);
//     memory.write(update(lr / 2));
//     step.launch();  // with half the rate
//
// If a device or kernel only takes attributes with the call, nothing is stored here, and recorded
// calls throw UnsupportedError, as do those of a kernel that was not called before. Not
// thread-safe.
class AttributeMemory {
public:
    // Writes new attributes for all kernels that were called with this memory. Work that was
    // launched before still uses the old ones.
    void write(const PluginFunction& function) const;

private:
    friend class CallGroup;
    struct Place {
        const catena_many* many;
        const catena_kernel* kernel;
        Array bytes;
    };
    static void write(const Place& place, const PluginFunction& function);
    std::vector<Place> places_;
};

}  // namespace catena
