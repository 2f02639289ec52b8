// Debug mode: NaN is an error that says which call made it, and where that call stands.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/error.hpp>
#include <catena/core/graph.hpp>

#include <span>
#include <string_view>

namespace catena {

// NaNs among the elements; 0 if they are not floating. Copies them if the host cannot read them.
std::int64_t count_nan(const Array& array);

// Throws NanError if array has a NaN. what: "forward: y"; trace: where the call was made.
void check_numbers(const Array& array, std::string_view function, std::string_view what,
                   std::span<void* const> trace);

// "; the call was made at ...", or nothing.
std::string place(std::span<void* const> trace);

}  // namespace catena
