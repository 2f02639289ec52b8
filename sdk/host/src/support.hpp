// Helpers that several sources of the library use.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/fail.hpp>
#include <catena/link.hpp>

#include <algorithm>
#include <typeinfo>

namespace catena {

// Calls a function at the end of the scope.
template <class F>
struct OnExit {
    F call;
    ~OnExit() { call(); }
};
template <class F>
OnExit(F) -> OnExit<F>;

// Returns the address of the first element, in the device's memory.
inline std::byte* address_of(const Array& array) {
    const catena_dl_tensor& memory = array.body()->tensor.dl;
    return static_cast<std::byte*>(memory.data) + memory.byte_offset;
}

// Writes bytes to an array, in the order of the thread's current stream. If the backend can fill memory,
// launches contain the bytes, so the host does not wait. The caller may free `bytes` at once.
void write_bytes(const Array& array, const void* bytes);

// A string literal as a template argument.
template <std::size_t n>
struct Name {
    consteval Name(const char (&literal)[n]) { std::copy_n(literal, n, text); }  // NOLINT
    char text[n];
};
// Returns the function with this name. The first call looks it up.
template <Name name>
const PluginFunction& plain() {
    static const PluginFunction function(name.text);
    return function;
}
// The same for a function with one attribute.
template <Name name, Name attribute>
const PluginFunction& with(double value) {
    thread_local constinit ThreadFunction function(name.text, {attribute.text});
    return function({value});
}

// Returns "Linear" for catena::links::Linear. Template arguments keep their namespaces.
std::string class_name(const std::type_info& type);

// Marks a leaf that requires a gradient as a parameter. Throws InvalidError for other variables.
inline void require_parameter(std::string_view where, std::string_view name,
                              const Variable& variable) {
    VariableNode& node = variable.node();
    if (!node.is_parameter && (!node.requires_grad || node.creator))
        fail<InvalidError>("[{}] {}: expected a Parameter, got a variable that {}", where, name,
                           node.creator ? "a call made" : "takes no gradient");
    // Written only if needed, because several threads may list the parameters of one link.
    if (!node.is_parameter) node.is_parameter = true;
}

// Returns the parameters in the order of visit(). Shared ones may occur several times.
std::vector<NamedParameter> listed_parameters(Visitable& object);

// Adds gradients[i] to the gradient of parameters[i], also on another device; an empty array adds nothing.
// Throws ShapeError, "[where] ...", before any change if numbers, shapes or dtypes differ.
void add_gradients(std::string_view where, std::span<const NamedParameter> parameters,
                   std::span<const Array> gradients);

}  // namespace catena
