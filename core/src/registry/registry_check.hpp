// What the checks of a plugin's table share.
#pragma once

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <abi_sizes.hpp>
#include <limits.hpp>

#include <cstdint>

namespace catena {

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
    throw PluginError(fmt::format(text, std::forward<Args>(args)...));
}

// Structs of ABI 1.0 are the least that a plugin may hand over.
template <class T>
void check_struct(const T* item, const char* what, std::uint32_t index) {
    if (!item) refuse("{} {} of its table is NULL", what, index);
    static_assert(size_1_0<T> != 0 && size_1_0<T> <= sizeof(T));
    if (item->struct_size < size_1_0<T>) {
        refuse("{} {}: struct_size: expected at least {}, got {}", what, index, size_1_0<T>,
               item->struct_size);
    }
    if (item->struct_size > largest_struct) {
        refuse("{} {}: struct_size: expected at most {}, got {}", what, index, largest_struct,
               item->struct_size);
    }
}

void check_id(const char* name, const char* what);    // of a function: org.example.thing
void check_name(const char* name, const char* what);  // of anything else
// Value i of a number or a list of numbers.
double number(const catena_value& value, std::uint32_t i = 0);
void check_function(const catena_function& f);
std::uint32_t count_type_vars(const catena_function& f);  // of its ports, each counted once

// Throws PluginError unless a kernel's ports and rows of dtypes can be those of the function.
void check_kernel_of(const catena_function& f, const catena_kernel& k);

inline bool is_variadic(const catena_function& f) {
    return f.n_inputs && (f.inputs[f.n_inputs - 1]->flags & CATENA_PORT_VARIADIC);
}

// Bits of ports that are not there; RETAIN_REST is of a variadic port.
inline bool retains_beyond(std::uint64_t set, std::uint32_t n, bool variadic) {
    if (variadic) set &= ~CATENA_RETAIN_REST;
    return n < 64 && set >> n;
}

}  // namespace catena
