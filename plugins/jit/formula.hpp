// A formula: the code that its author wrote, its parsed argument lists, and the element types.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <catena/plugin/error.hpp>

#include "catena/abi/ext/kernels.h"

namespace catena_jit {

using catena::plugin::Error;  // "[name] what: expected X, got Y"

struct Type {
    catena_dtype dtype;
    const char* name;   // also the name in the dialect
    const char* value;  // the type that a formula computes in
};

// Half-precision types are for storage only; formulas compute in float32.
inline constexpr std::array<Type, 8> types = {{
    {{CATENA_CODE_FLOAT, 16, 1}, "float16", "float32"},
    {{CATENA_CODE_BFLOAT, 16, 1}, "bfloat16", "float32"},
    {{CATENA_CODE_FLOAT, 32, 1}, "float32", "float32"},
    {{CATENA_CODE_FLOAT, 64, 1}, "float64", "float64"},
    {{CATENA_CODE_INT, 32, 1}, "int32", "int32"},
    {{CATENA_CODE_INT, 64, 1}, "int64", "int64"},
    {{CATENA_CODE_UINT, 8, 1}, "uint8", "uint8"},
    {{CATENA_CODE_BOOL, 8, 1}, "bool", "bool"},
}};

constexpr bool is_half(int type) { return type < 2; }
constexpr bool is_floating(int type) { return type < 4; }

// Returns the index into types, or -1 if dtype is not one of them.
constexpr int type_of(catena_dtype dtype) {
    for (int i = 0; i < static_cast<int>(types.size()); ++i) {
        const catena_dtype& known = types[static_cast<std::size_t>(i)].dtype;
        if (known.code == dtype.code && known.bits == dtype.bits && known.lanes == dtype.lanes)
            return i;
    }
    return -1;
}
// Returns the index of a type by its NumPy or C name, or -1 if there is none.
int type_by_name(const std::string& name);

inline const Type& type_at(int i) { return types[static_cast<std::size_t>(i)]; }

constexpr std::size_t max_arguments = 32;  // inputs and outputs

// Whether the author asked to keep the source. The structs of older hosts do not have this field.
inline bool keeps_source(const catena_formula& f) {
    return f.struct_size >= offsetof(catena_formula, reserved) &&
           (f.flags & CATENA_FORMULA_KEEP_SOURCE) != 0;
}

struct Parameter {
    std::string name;
    int type = -1;        // index into types; -1: bound by letter
    char letter = 0;      // the placeholder; 0: none
    bool raw = false;     // indexed by the formula
    bool writes = false;  // an input that is written: a pointer without const
};

// A part of the author's code, and the label that compilers report as its file name.
struct Code {
    std::string label;
    std::string text;
    bool empty() const { return text.find_first_not_of(" \t\r\n") == std::string::npos; }
};

struct Formula {
    // Throws Error with "[name] what: expected X, got Y".
    explicit Formula(const catena_formula& source);

    bool is_reduction() const { return kind == CATENA_FORMULA_REDUCTION; }
    std::size_t count() const { return parameters.size(); }
    const Parameter& at(std::size_t i) const { return parameters[i]; }
    bool is_output(std::size_t i) const { return i >= n_x; }
    // Returns the kernel's symbol. Its prefix allows any name, even that of a C function.
    std::string entry() const { return "catena_formula_" + name; }
    // Returns "T x, T y -> T w", for messages.
    std::string signature() const;
    // Returns text_of(i) of all parameters, joined in this form.
    template <class Text>
    std::string listed(const Text& text_of) const {
        std::string all;
        for (std::size_t i = 0; i < count(); ++i)
            all += (i == n_x ? " -> " : i != 0 ? ", " : "") + text_of(i);
        return n_x == 0 ? all.substr(1) : all;
    }

    int kind;
    std::string name;
    std::vector<Parameter> parameters;  // inputs, then outputs
    std::size_t n_x = 0;
    std::size_t n_y = 0;
    Code operation, preamble, loop_prep, after_loop, reduce, finish, identity;
    bool has_identity;
    bool keep_source;
    std::string reduce_type;
    std::vector<std::string> options;

private:
    void parse(const std::string& list, bool output);
    [[noreturn]] void refuse(const std::string& text) const;
};

}  // namespace catena_jit
