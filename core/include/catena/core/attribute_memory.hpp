// Attributes of calls in the memory of devices, so that each launch of a recording can have others.
#pragma once

#include <catena/abi/kernel.h>
#include <catena/core/array.hpp>
#include <catena/core/plugin_function.hpp>

#include <vector>

struct catena_many;

namespace catena {

// Of one function, for calls by PluginFunction::forward_each(). A call that is not recorded writes its
// attributes here first; a recorded one reads, in each launch, what is here by then:
//
//     AttributeMemory memory;
//     update(lr).forward_each(n, inputs, &memory);
//     const Capture step(stream, [&] { update(lr).forward_each(n, inputs, &memory); }, 0);
//     memory.write(update(lr / 2));
//     step.launch();  // with half the rate
//
// On devices, and of kernels, that take attributes with the call alone, nothing is kept here, and
// recorded calls are an UnsupportedError, as are those of a kernel that was not called before. Not for
// several threads at once.
class AttributeMemory {
public:
    // For all kernels that were called with this memory. Work that was given to the device before has
    // the attributes of before.
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
