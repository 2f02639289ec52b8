// What several sources of the library need.
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

// The first element in the device's memory.
inline std::byte* address_of(const Array& array) {
    const catena_dl_tensor& memory = array.body()->tensor.dl;
    return static_cast<std::byte*>(memory.data) + memory.byte_offset;
}

// Fills an array in the order of the thread's current stream. The bytes go with launches, so that nobody
// waits, and nothing has to be kept until the device has read them.
void write_bytes(const Array& array, const void* bytes);

// A name as a template argument.
template <std::size_t n>
struct Name {
    consteval Name(const char (&literal)[n]) { std::copy_n(literal, n, text); }  // NOLINT
    char text[n];
};
// The function of this name, found at the first call.
template <Name name>
const PluginFunction& plain() {
    static const PluginFunction function(name.text);
    return function;
}
// The same with an attribute.
template <Name name, Name attribute>
const PluginFunction& with(double value) {
    thread_local constinit ThreadFunction<double> function(name.text, {attribute.text});
    return function(value);
}

// "Linear" of catena::links::Linear; template arguments stay whole.
std::string class_name(const std::type_info& type);

// Makes a leaf that takes gradients a parameter. Throws InvalidError for other variables.
inline void require_parameter(std::string_view where, std::string_view name,
                              const Variable& variable) {
    VariableNode& node = variable.node();
    if (!node.is_parameter && (!node.requires_grad || node.creator))
        fail<InvalidError>("[{}] {}: expected a Parameter, got a variable that {}", where, name,
                           node.creator ? "a call made" : "takes no gradient");
    // Written only if needed, because several threads may list the parameters of one link.
    if (!node.is_parameter) node.is_parameter = true;
}

// As visit() lists them, some perhaps several times.
std::vector<NamedParameter> listed_parameters(Visitable& object);

// Adds gradients to those of the parameters, in their order; an empty array adds nothing. Devices may
// differ. Throws ShapeError, "[where] ...", and changes nothing, if numbers, shapes or dtypes differ.
void add_gradients(std::string_view where, std::span<const NamedParameter> parameters,
                   std::span<const Array> gradients);

}  // namespace catena
