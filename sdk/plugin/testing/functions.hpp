// Properties of calls that follow from a function's descriptor: type variables, names, and which
// gradients exist; and the rows of dtypes, with numbers for them.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "catena/testing/sample.hpp"

namespace catena::testing::detail {

using Metas = std::vector<std::optional<catena_meta>>;
using Row = std::vector<catena_dtype>;  // of a kernel's table: one dtype for each type variable

// The type variables of a function in order of first use over inputs, then outputs: the columns of
// the rows of dtypes that kernels have.
class TypeVars {
public:
    explicit TypeVars(const catena_function& f) : f_(f) {
        for (std::uint32_t i = 0; i < f.n_inputs; ++i) in_.push_back(add(f.inputs[i]->type_var));
        for (std::uint32_t i = 0; i < f.n_outputs; ++i) out_.push_back(add(f.outputs[i]->type_var));
    }
    std::size_t size() const { return names_.size(); }
    std::size_t input(std::size_t i) const {
        return in_[std::min<std::size_t>(i, f_.n_inputs - 1)];
    }
    std::size_t output(std::size_t i) const { return out_[i]; }

private:
    std::size_t add(const std::string& name) {
        const auto found = std::find(names_.begin(), names_.end(), name);
        const auto i = static_cast<std::size_t>(found - names_.begin());
        if (i == names_.size()) names_.push_back(name);
        return i;
    }

    const catena_function& f_;
    std::vector<std::string> names_;
    std::vector<std::size_t> in_;
    std::vector<std::size_t> out_;
};

// Whether a call runs parts of the function alone: it is a composition without kernels.
inline bool has_parts_alone(const World& world, const catena_function& f) {
    return f.compose != nullptr && world.kernels(f.name, CATENA_PHASE_FORWARD).empty();
}

inline bool on_cpu(const catena_kernel& k) { return std::strcmp(k.device, "cpu") == 0; }
inline bool is_forward(const catena_kernel& k) { return k.phase == CATENA_PHASE_FORWARD; }
inline Dims dims_of(const catena_meta& m) { return {m.shape, m.shape + m.ndim}; }
inline std::string text_of(const Row& row) {
    std::string text;
    for (const catena_dtype d : row) text += (text.empty() ? "" : ",") + plugin::text_of(d);
    return text;
}
// Calls body(row) for each row of a kernel's dtypes.
template <class Body>
void each_row(const catena_kernel& k, std::size_t n_vars, const Body& body) {
    for (std::uint32_t r = 0; r < k.n_types; ++r)
        body(Row(k.types + r * n_vars, k.types + (r + 1) * n_vars));
}
// Whether a row of the kernel's dtypes matches all inputs and outputs that are present.
inline bool fits(const catena_function& f, const catena_kernel& k, const Metas& x, const Metas& y) {
    const TypeVars vars(f);
    bool any = false;
    each_row(k, vars.size(), [&](const Row& row) {
        bool all = true;
        for (std::size_t i = 0; i < x.size(); ++i)
            all = all && (!x[i] || plugin::same(row[vars.input(i)], x[i]->dtype));
        for (std::size_t i = 0; i < y.size() && i < f.n_outputs; ++i)
            all = all && (!y[i] || plugin::same(row[vars.output(i)], y[i]->dtype));
        any = any || all;
    });
    return any;
}

// Returns "forward float32 'x86-64-v3' of org.example.thing".
inline std::string label_of(const World& world, const catena_kernel& k, const std::string& row) {
    return std::string(is_forward(k) ? "forward" : "backward") + " " + row + " '" + k.isa +
           "' of " + world.origin(k) + (on_cpu(k) ? "" : std::string(" on ") + k.device);
}
inline std::uint32_t input_flags(const catena_function& f, std::size_t i) {
    return f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->flags;
}
inline std::string input_name(const catena_function& f, std::size_t i) {
    const std::string name = f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->name;
    return i < f.n_inputs ? name : name + "[" + std::to_string(i - f.n_inputs + 1) + "]";
}
// Returns the name of a result: outputs, then updated inputs; in backward, gradients of inputs.
inline std::string result_name(const catena_function& f, int phase, std::size_t i) {
    if (phase == CATENA_PHASE_BACKWARD) return "gradient of " + input_name(f, i);
    if (i < f.n_outputs) return f.outputs[i]->name;
    std::size_t updated = i - f.n_outputs;
    for (std::size_t k = 0; k < f.n_inputs; ++k)
        if ((f.inputs[k]->flags & CATENA_PORT_MUTATED) != 0 && updated-- == 0)
            return std::string(f.inputs[k]->name) + " as updated";
    return std::to_string(i);
}
// Throws "[function] what: expected X, got Y".
template <class Error = Failure, class Got>
[[noreturn]] void refuse(const catena_function& f, catena_status status, const std::string& what,
                         const std::string& expected, const Got& got) {
    throw Error(status, std::string("[") + f.name + "] " + what + ": expected " + expected +
                            ", got " + plugin::text_of(got));
}
// Adds empty inputs for those that a call leaves out. Throws a Failure if a host would refuse the call.
template <class Input>
std::vector<Input> complete(const catena_function& f, std::vector<Input> x) {
    const std::size_t n = f.n_inputs;
    const bool variadic = n > 0 && (f.inputs[n - 1]->flags & CATENA_PORT_VARIADIC) != 0;
    std::size_t least = n;
    while (least > 0 && (f.inputs[least - 1]->flags & CATENA_PORT_OPTIONAL) != 0) --least;
    if (x.size() < least || (x.size() > n && !variadic)) {
        std::string most = variadic ? " or more" : " to " + std::to_string(n);
        if (!variadic && least == n) most.clear();
        refuse(f, CATENA_E_INVALID, "inputs", std::to_string(least) + most, x.size());
    }
    x.resize(std::max(x.size(), n));
    for (std::size_t i = 0; i < x.size(); ++i)
        if (!x[i] && (input_flags(f, i) & CATENA_PORT_OPTIONAL) == 0)
            refuse(f, CATENA_E_INVALID, input_name(f, i), "an array", "none");
    return x;
}
inline Metas metas_of(const Arrays& arrays) {
    Metas metas(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i)
        if (arrays[i]) metas[i] = arrays[i].meta();
    return metas;
}
// Whether a gradient flows to an input or from an output.
inline bool takes_gradient(const catena_function& f, std::size_t i, const Array& x) {
    return x && x.floating() && (input_flags(f, i) & CATENA_PORT_NON_DIFFERENTIABLE) == 0;
}
inline bool gives_gradient(const catena_function& f, std::size_t i, const Array& y) {
    return y && y.floating() &&
           (f.outputs[i]->flags & (CATENA_PORT_HIDDEN | CATENA_PORT_NON_DIFFERENTIABLE)) == 0;
}
inline bool retains(std::uint64_t set, std::size_t i, std::size_t n_ports) {
    if (i + 1 >= n_ports && (set & CATENA_RETAIN_REST) != 0) return true;
    return i < 63 && (set >> i & 1) != 0;
}
using Dtypes = std::vector<std::optional<catena_dtype>>;  // one for each type variable
// Throws a Failure if ports of the same type variable have different dtypes. Returns the dtypes.
Dtypes check_types(const catena_function& f, const Metas& x, const Metas& y);
// Returns the dtypes with `comma` between them; "any" for unknown ones.
std::string text_of(const Dtypes& dtypes, const char* comma);
inline Array zeros_like(const Array& a) { return Array::constant(a.shape(), a.dtype(), 0); }

// Return numbers and shapes of an example; see sample.cpp.
Array draw(const Example::Input& in, catena_dtype dtype, unsigned seed);
// Returns input i for infer(): with elements only if compose() may read them.
Array draw_for_infer(const catena_function& f, const Example& e, std::size_t i, catena_dtype dtype,
                     unsigned seed);
std::optional<catena_meta> meta_of(const Example::Input& in, catena_dtype dtype);
// Returns the shapes and dtypes of the inputs in a row of dtypes.
Metas metas_in(const catena_function& f, const Example& e, const Row& row);
// Returns the rows of dtypes to try with compose(), in which the dtypes of outputs may be unknown; then
// all rows of a function's forward kernels, the widest floats first; one row for a view.
std::vector<Row> rows_of(const World& world, const catena_function& f);
std::vector<Row> rows_of_composition(const catena_function& f);
inline bool known(catena_dtype dtype) { return dtype.bits != 0; }
// Whether the function gives outputs of the row's dtypes for inputs of the row's dtypes, and of a
// size that a test can afford. Sets unknown dtypes. With `composition`, it asks compose() although there is infer(). If the dtypes differ, *why says what infer() gives.
bool gives_row(World& world, const catena_function& f, const Arrays& x, const OwnedAttrs& attrs,
               Row& row, std::string* why = nullptr, bool composition = false);

// Whether the function updates an input in place.
inline bool updates(const catena_function& f) {
    return std::any_of(f.inputs, f.inputs + f.n_inputs,
                       [](const auto* port) { return (port->flags & CATENA_PORT_MUTATED) != 0; });
}
// Returns the text of the exception that body() throws; empty if it throws none.
template <class Body>
std::string thrown_by(const Body& body) {
    try {
        body();
        return {};
    } catch (const std::exception& e) {
        return e.what();
    } catch (...) {
        return "not even a std::exception";
    }
}
// Returns a double, because the product of extents may be larger than any integer.
inline double elements(const catena_meta& m) {
    double n = 1;
    for (std::int32_t d = 0; d < m.ndim; ++d) n *= static_cast<double>(m.shape[d]);
    return n;
}

}  // namespace catena::testing::detail
