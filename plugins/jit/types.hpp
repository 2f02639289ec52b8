// Element types as formulas name them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "catena/abi.h"

namespace catena_jit {

// What went wrong, on its way to the host.
struct Failure {
    catena_status status;
    std::string text;
};

struct Type {
    catena_dtype dtype;
    const char* name;
    const char* storage;  // in memory, by the dialect's name
    const char* value;    // what a formula computes with
};

// Halves are stored, and computed with in float32.
inline constexpr std::array<Type, 8> types = {{
    {{CATENA_CODE_FLOAT, 16, 1}, "float16", "float16", "float32"},
    {{CATENA_CODE_BFLOAT, 16, 1}, "bfloat16", "bfloat16", "float32"},
    {{CATENA_CODE_FLOAT, 32, 1}, "float32", "float32", "float32"},
    {{CATENA_CODE_FLOAT, 64, 1}, "float64", "float64", "float64"},
    {{CATENA_CODE_INT, 32, 1}, "int32", "int32", "int32"},
    {{CATENA_CODE_INT, 64, 1}, "int64", "int64", "int64"},
    {{CATENA_CODE_UINT, 8, 1}, "uint8", "uint8", "uint8"},
    {{CATENA_CODE_BOOL, 8, 1}, "bool", "bool", "bool"},
}};

constexpr bool is_half(int type) { return type < 2; }
constexpr bool is_floating(int type) { return type < 4; }

// Index into types, -1 if it is none of them.
constexpr int type_of(catena_dtype dtype) {
    for (int i = 0; i < static_cast<int>(types.size()); ++i) {
        const catena_dtype& known = types[static_cast<std::size_t>(i)].dtype;
        if (known.code == dtype.code && known.bits == dtype.bits && known.lanes == dtype.lanes)
            return i;
    }
    return -1;
}
// By NumPy's names and C's; -1 if there is none.
int type_by_name(const std::string& name);

inline const Type& type_at(int i) { return types[static_cast<std::size_t>(i)]; }

}  // namespace catena_jit
