// What a function's descriptor says of a call: type variables, names, which gradients there are.
#pragma once

#include <cstring>
#include <optional>

#include "catena/testing/world.hpp"

namespace catena::testing::detail {

using Metas = std::vector<std::optional<catena_meta>>;
using Row = std::vector<catena_dtype>;  // of a kernel's table: one for each type variable

// The type variables of a function in order of first use over inputs, then outputs: the columns of
// the rows of dtypes that kernels have.
class TypeVars {
public:
    explicit TypeVars(const catena_function& f);
    std::size_t size() const { return names_.size(); }
    std::size_t input(std::size_t i) const {
        return in_[std::min<std::size_t>(i, f_.n_inputs - 1)];
    }
    std::size_t output(std::size_t i) const { return out_[i]; }

private:
    std::size_t add(const std::string& name);

    const catena_function& f_;
    std::vector<std::string> names_;
    std::vector<std::size_t> in_;
    std::vector<std::size_t> out_;
};

inline bool on_cpu(const catena_kernel& k) { return std::strcmp(k.device, "cpu") == 0; }
inline bool is_forward(const catena_kernel& k) { return k.phase == CATENA_PHASE_FORWARD; }
inline Dims dims_of(const catena_meta& m) { return {m.shape, m.shape + m.ndim}; }
std::string text_of(const Row& row);
// body(row) for each row of a kernel's dtypes.
template <class Body>
void each_row(const catena_kernel& k, std::size_t n_vars, const Body& body) {
    for (std::uint32_t r = 0; r < k.n_types; ++r)
        body(Row(k.types + r * n_vars, k.types + (r + 1) * n_vars));
}
// Whether a row of the kernel's dtypes has those of the inputs and outputs that are there.
bool fits(const catena_function& f, const catena_kernel& k, const Metas& x, const Metas& y);

// "forward float32 'x86-64-v3' of org.example.thing".
std::string label_of(const World& world, const catena_kernel& k, const std::string& row);
std::uint32_t input_flags(const catena_function& f, std::size_t i);
std::string input_name(const catena_function& f, std::size_t i);
// A result of a call: outputs, then inputs that are updated; of backward, gradients of the inputs.
std::string result_name(const catena_function& f, int phase, std::size_t i);
// What a call is given, with what it leaves out. Throws a Failure where a host refuses it.
template <class Input>
std::vector<Input> complete(const catena_function& f, std::vector<Input> x);
Metas metas_of(const std::vector<Array>& arrays);
// Whether a gradient flows to an input or from an output.
bool takes_gradient(const catena_function& f, std::size_t i, const Array& x);
bool gives_gradient(const catena_function& f, std::size_t i, const Array& y);
bool retains(std::uint64_t set, std::size_t i, std::size_t n_ports);
Array zeros_like(const Array& a);

}  // namespace catena::testing::detail
