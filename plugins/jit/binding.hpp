// One call of a formula: binds dtypes, broadcasts shapes, determines layouts; generates kernel source.
#pragma once

#include <algorithm>
#include <cstring>

#include "formula.hpp"

namespace catena_jit {

// The memory layout of an argument, as far as the generated source depends on it.
enum Form : uint8_t {
    form_once = 0,     // stride 0: the same element for a whole run
    form_next = 1,     // stride 1: contiguous elements
    form_strided = 2,  // a stride known at run time
    form_number = 3,   // a number passed by the call
    form_raw = 4       // the formula indexes it
};

// All that determines a kernel's source besides the formula and the dialect. Compared bytewise.
struct Key {
    const void* dev;
    uint8_t type[max_arguments];  // index into types
    uint8_t form[max_arguments];
    uint8_t dims;  // elementwise: dimensions of the loop; reduction: those that are kept
    uint8_t reduced;
    uint8_t along;  // reduction: lanes run along the reduced axes
    uint8_t unused[5];

    bool operator==(const Key& other) const { return std::memcmp(this, &other, sizeof *this) == 0; }
};

// Dimensions that a kernel iterates over, outermost first, and the strides of each argument.
struct Dims {
    int n = 0;
    int64_t extent[CATENA_MAX_NDIM];
    int64_t stride[max_arguments][CATENA_MAX_NDIM];
};

struct Extents {
    int ndim = 0;
    int64_t at[CATENA_MAX_NDIM];

    catena::plugin::Shape shape() const { return {at, static_cast<std::size_t>(ndim)}; }
    int64_t size() const { return catena::plugin::size_of(shape()); }
    std::string text() const { return catena::plugin::text_of(shape()); }
    bool operator==(const Extents& other) const {
        return std::ranges::equal(shape(), other.shape());
    }
};

struct Binding {
    // Throws Error. Outputs for which the call has no tensors get a row-major layout.
    Binding(const Formula& formula, const catena_formula_call& call);

    const catena_tensor* tensor(std::size_t i) const {
        if (i < formula.n_x) return call.x[i].tensor;
        return call.y != nullptr ? call.y[i - formula.n_x] : nullptr;
    }
    // Throws "[name] what: expected X, got Y".
    template <class Expected, class Got>
    [[noreturn]] void refuse(catena_status status, const std::string& what,
                             const Expected& expected, const Got& got) const {
        catena::plugin::fail(status, formula.name.c_str(), what.c_str(), expected, got);
    }
    // Returns the arguments with their bound dtypes: "float32 x, float32 y".
    std::string types_text() const;

    const Formula& formula;
    const catena_formula_call& call;
    Key key;
    int letter[26];    // types of placeholders; -1: not bound
    Extents loop;      // shape that the call iterates over
    Extents output;    // shape of the outputs
    int64_t size = 0;  // elements of loop
    int64_t outputs = 0;
    int64_t reduced = 0;  // elements that are reduced into each output
    Dims dims;            // elementwise: all; reduction: those that are kept
    Dims reduced_dims;

private:
    const std::string& name_of(std::size_t i) const { return formula.at(i).name; }
    [[noreturn]] void refuse_letter(std::size_t i, int bound, int type) const;
    void bind_types();
    void find_loop();
    void join(std::size_t i, const Extents& shape);
    bool lay_out_flat();
    void lay_out();
    void lay_out_reduction();
    void strides_of(std::size_t i, int64_t* strides) const;
    void set_forms(const Dims& lanes);
};

// Generates the source for the key's dtypes, forms and dimensions; nothing else of the call affects it.
std::string make_source(const Binding& binding, const char* dialect);

// Writes the entry's argument struct to `to`, which has room for max_args_bytes, and returns its size. Throws
// Error if it does not fit. Cut: how a reduction is split.
constexpr std::size_t max_args_bytes = 4000;
struct Cut {
    int64_t pieces = 1;
    int64_t length = 0;  // elements of a piece
    int64_t phase = 0;   // 0: not split, 1: computes pieces, 2: joins them
    void* partial = nullptr;
};
std::size_t pack_arguments(const Binding& binding, const Cut& cut, unsigned char* to);

// Returns a readable error: the author's source line, the compiler's messages, and the bound dtypes.
std::string explain(const Binding& binding, const char* compiler, const std::string& messages);

}  // namespace catena_jit
