// The kernels of a function, and functions with similar names: for tools and messages.
#pragma once

#include <catena/abi/function.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

// Information on one kernel, for listings and selection.
struct KernelInfo {
    std::string plugin;  // manifest id
    std::string device;
    std::string isa;
    std::string variant;
    std::string name;  // of the implementation, or ""
    int phase;         // CATENA_PHASE_*
    int priority;
    std::vector<std::vector<std::string>> dtypes;  // rows
};
std::vector<KernelInfo> kernels_of(std::string_view function);
// The dtypes of some kernels of a function as text: "float32, float64", or by type variable if they
// differ: "T=float32|float64, S=int32 or T=int32, S=int64".
std::string dtypes_to_string(const catena_function& function, std::span<const KernelInfo> kernels);

// The function that was probably meant: "org.me.swish" for "Swish" or "org.me.swihs"; "" if none.
std::string nearest_function(std::string_view name);

}  // namespace catena
