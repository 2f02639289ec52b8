// What catena-inspect can show.
#pragma once

#include <catena/abi/function.h>

#include <cstdint>
#include <span>
#include <string>

namespace catena::inspect {

struct HeaderOptions {
    std::string prefix = "catena.";           // of the functions' names; cut off
    std::string space = "catena::functions";  // the namespace
};
// A C++ header with a typed inline wrapper for each function whose name has the prefix. Left out:
// functions that update an input in place and those that are there for the gradients of others.
std::string write_header(const HeaderOptions& options);

inline bool has(std::uint32_t flags, std::uint32_t flag) { return (flags & flag) != 0; }
inline std::span<const catena_port_spec* const> inputs(const catena_function& f) {
    return {f.inputs, f.n_inputs};
}
inline std::span<const catena_port_spec* const> outputs(const catena_function& f) {
    return {f.outputs, f.n_outputs};
}
inline std::span<const catena_attr_spec* const> attributes(const catena_function& f) {
    return {f.attrs, f.n_attrs};
}

}  // namespace catena::inspect
