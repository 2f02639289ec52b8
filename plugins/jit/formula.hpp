// A formula as its author wrote it, argument lists taken apart.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "catena/abi/ext/draft/kernels.h"
#include "types.hpp"

namespace catena_jit {

constexpr std::size_t max_arguments = 32;  // inputs and outputs

// Whether the author asked for the source; older hosts do not know the field.
inline bool keeps_source(const catena_formula& f) {
    return f.struct_size >= offsetof(catena_formula, reserved) &&
           (f.flags & CATENA_FORMULA_KEEP_SOURCE) != 0;
}

struct Parameter {
    std::string name;
    int type = -1;        // index into types; -1: the letter's
    char letter = 0;      // of a placeholder
    bool raw = false;     // indexed by the formula
    bool writes = false;  // an input to be written: a pointer without const
};

// A piece of the author's code, with the name that compilers know it by.
struct Code {
    std::string label;
    std::string text;
    bool empty() const { return text.find_first_not_of(" \t\r\n") == std::string::npos; }
};

struct Formula {
    // Throws Failure with "[name] what: expected X, got Y".
    explicit Formula(const catena_formula& source);

    bool is_reduction() const { return kind == CATENA_FORMULA_REDUCTION; }
    std::size_t count() const { return parameters.size(); }
    const Parameter& at(std::size_t i) const { return parameters[i]; }
    bool is_output(std::size_t i) const { return i >= n_x; }
    // The kernel's symbol: any name is free for users, those of functions too.
    std::string entry() const { return "catena_formula_" + name; }
    // "T x, T y -> T w", for messages.
    std::string signature() const;

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
