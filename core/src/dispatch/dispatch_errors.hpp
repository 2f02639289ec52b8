// Messages of calls that cannot be made.
#pragma once

#include "registry/registry.hpp"

#include <catena/core/array_body.hpp>

#include <span>
#include <string>

namespace catena {

// "x (2, 3) float32, W (4, 3) float32".
std::string describe_inputs(const FunctionEntry& function, std::span<ArrayBody* const> x);

[[noreturn]] void throw_arity(const FunctionEntry& function, std::size_t inputs);
inline void check_arity(const FunctionEntry& function, std::size_t inputs) {
    const bool too_many = !function.variadic && inputs > function.descriptor.n_inputs;
    if (inputs < function.min_inputs || too_many) throw_arity(function, inputs);
}
[[noreturn]] void throw_shape(const FunctionEntry& function, const char* what,
                              const catena_meta& meta, std::span<ArrayBody* const> x);
// For a tensor that plan() wants to save in a dtype of no known size.
[[noreturn]] void throw_saved(const FunctionEntry& function, const catena_meta& meta);
[[noreturn]] void throw_scratch(const catena_function& function, std::uint64_t bytes);
// key: 4 bits of Dtype for each type_var; declined: kernels for it are there, but say no. DtypeError
// where one dtype fits no kernel of the device, else UnsupportedError that lists what there is.
[[noreturn]] void throw_no_kernel(const FunctionEntry& function, std::span<ArrayBody* const> x,
                                  const DeviceState& device, std::uint64_t key, bool declined);

}  // namespace catena
