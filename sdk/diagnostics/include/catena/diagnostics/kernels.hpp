// The kernels of a function, and functions with similar names or other names elsewhere: for tools
// and messages.
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

// Which function was probably meant: "did you mean org.me.swish?" for "Swish" or "org.me.swihs",
// "conv2d is called catena.convolution_2d here"; "" if that is unknown.
std::string function_suggestion(std::string_view name);
// The name here of a function of PyTorch, TensorFlow or NumPy that has another name there:
// "convolution_2d" for "conv2d" and "Conv2d"; "" if there is none.
std::string_view name_here(std::string_view other) noexcept;

}  // namespace catena
