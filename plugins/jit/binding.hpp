// One call of a formula: dtypes bound, shapes broadcast, memory laid out.
#pragma once

#include <cstring>

#include "formula.hpp"

namespace catena_jit {

// How an argument lies in memory, as far as source code depends on it.
enum Form : uint8_t {
    form_once = 0,     // the same element for a whole run
    form_next = 1,     // neighbours
    form_strided = 2,  // a step known at run time
    form_number = 3,   // a number of the call
    form_raw = 4       // the formula indexes it
};

// What a kernel's source is made from, besides the formula and the dialect. Comparable by bytes.
struct Key {
    const void* dev;
    uint8_t type[max_arguments];  // index into types
    uint8_t form[max_arguments];
    uint8_t dims;  // elementwise: of the walk; reduction: those that stay
    uint8_t reduced;
    uint8_t along;  // reduction: the lanes are along what is reduced
    uint8_t unused[5];

    bool operator==(const Key& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};

// Dimensions that a kernel goes through, outermost first, with the steps of each argument.
struct Dims {
    int n = 0;
    int64_t extent[CATENA_MAX_NDIM];
    int64_t stride[max_arguments][CATENA_MAX_NDIM];
};

struct Extents {
    int ndim = 0;
    int64_t at[CATENA_MAX_NDIM];

    int64_t size() const {
        int64_t size = 1;
        for (int d = 0; d < ndim; ++d) size *= at[d];
        return size;
    }
    bool operator==(const Extents& other) const {
        return ndim == other.ndim &&
               std::memcmp(at, other.at, sizeof(int64_t) * static_cast<std::size_t>(ndim)) == 0;
    }
    std::string text() const;
};

struct Binding {
    // Throws Failure. Outputs that call has no tensors for are laid out densely.
    Binding(const Formula& formula, const catena_formula_call& call);

    const catena_operand* operand(std::size_t i) const {
        return i < formula.n_x ? &call.x[i] : nullptr;
    }
    const catena_tensor* tensor(std::size_t i) const {
        if (i < formula.n_x) return call.x[i].tensor;
        return call.y != nullptr ? call.y[i - formula.n_x] : nullptr;
    }
    // "float32 x, float32 y", as bound.
    std::string types_text() const;

    const Formula& formula;
    const catena_formula_call& call;
    Key key;
    int letter[26];    // types of placeholders; -1: not bound
    Extents loop;      // all that the call runs over
    Extents output;    // shape of the outputs
    int64_t size = 0;  // of loop
    int64_t outputs = 0;
    int64_t reduced = 0;  // elements that each output is made of
    Dims dims;            // elementwise: all; reduction: those that stay
    Dims reduced_dims;

private:
    [[noreturn]] void refuse(catena_status status, std::size_t i, const std::string& text) const;
    const std::string& name_of(std::size_t i) const { return formula.at(i).name; }
    void bind_letter(std::size_t i, int type);
    void bind_types();
    void find_loop();
    void join(std::size_t i, const Extents& shape);
    bool lay_out_flat();
    void lay_out();
    void lay_out_reduction();
    void strides_of(std::size_t i, int64_t* strides) const;
    void set_forms(const Dims& lanes);
};

}  // namespace catena_jit
