// Reading descriptors.
#include "testing/functions.hpp"

#include <algorithm>

namespace catena::testing::detail {

TypeVars::TypeVars(const catena_function& f) : f_(f) {
    for (std::uint32_t i = 0; i < f.n_inputs; ++i) in_.push_back(add(f.inputs[i]->type_var));
    for (std::uint32_t i = 0; i < f.n_outputs; ++i) out_.push_back(add(f.outputs[i]->type_var));
}
std::size_t TypeVars::add(const std::string& name) {
    const auto i =
        static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
    if (i == names_.size()) names_.push_back(name);
    return i;
}

std::string text_of(const Row& row) {
    std::string text;
    for (const catena_dtype d : row) text += (text.empty() ? "" : ",") + plugin::text_of(d);
    return text;
}

bool fits(const catena_function& f, const catena_kernel& k, const Metas& x, const Metas& y) {
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

std::string label_of(const World& world, const catena_kernel& k, const std::string& row) {
    return std::string(is_forward(k) ? "forward" : "backward") + " " + row + " '" + k.isa +
           "' of " + world.origin(k) + (on_cpu(k) ? "" : std::string(" on ") + k.device);
}
std::uint32_t input_flags(const catena_function& f, std::size_t i) {
    return f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->flags;
}
std::string input_name(const catena_function& f, std::size_t i) {
    const std::string name = f.inputs[std::min<std::size_t>(i, f.n_inputs - 1)]->name;
    return i < f.n_inputs ? name : name + "[" + std::to_string(i - f.n_inputs + 1) + "]";
}
std::string result_name(const catena_function& f, int phase, std::size_t i) {
    if (phase == CATENA_PHASE_BACKWARD) return "gradient of " + input_name(f, i);
    if (i < f.n_outputs) return f.outputs[i]->name;
    std::size_t updated = i - f.n_outputs;
    for (std::size_t k = 0; k < f.n_inputs; ++k)
        if ((f.inputs[k]->flags & CATENA_PORT_MUTATED) != 0 && updated-- == 0)
            return std::string(f.inputs[k]->name) + " as updated";
    return std::to_string(i);
}

template <class Input>
std::vector<Input> complete(const catena_function& f, std::vector<Input> x) {
    const std::size_t n = f.n_inputs;
    const bool variadic = n > 0 && (f.inputs[n - 1]->flags & CATENA_PORT_VARIADIC) != 0;
    std::size_t least = n;
    while (least > 0 && (f.inputs[least - 1]->flags & CATENA_PORT_OPTIONAL) != 0) --least;
    if (x.size() < least || (x.size() > n && !variadic)) {
        std::string most = variadic ? " or more" : " to " + std::to_string(n);
        if (!variadic && least == n) most.clear();
        throw Failure(CATENA_E_INVALID, std::string("[") + f.name + "] inputs: expected " +
                                            std::to_string(least) + most + ", got " +
                                            std::to_string(x.size()));
    }
    x.resize(std::max(x.size(), n));
    for (std::size_t i = 0; i < x.size(); ++i)
        if (!x[i] && (input_flags(f, i) & CATENA_PORT_OPTIONAL) == 0)
            throw Failure(CATENA_E_INVALID, std::string("[") + f.name + "] " + input_name(f, i) +
                                                ": expected an array, got none");
    return x;
}
template std::vector<Array> complete(const catena_function&, std::vector<Array>);
template Metas complete(const catena_function&, Metas);

Metas metas_of(const std::vector<Array>& arrays) {
    Metas metas(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i)
        if (arrays[i]) metas[i] = arrays[i].meta();
    return metas;
}
bool takes_gradient(const catena_function& f, std::size_t i, const Array& x) {
    return x && x.floating() && (input_flags(f, i) & CATENA_PORT_NON_DIFFERENTIABLE) == 0;
}
bool gives_gradient(const catena_function& f, std::size_t i, const Array& y) {
    return y && y.floating() &&
           (f.outputs[i]->flags & (CATENA_PORT_HIDDEN | CATENA_PORT_NON_DIFFERENTIABLE)) == 0;
}
bool retains(std::uint64_t set, std::size_t i, std::size_t n_ports) {
    if (i + 1 >= n_ports && (set & CATENA_RETAIN_REST) != 0) return true;
    return i < 63 && (set >> i & 1) != 0;
}
Array zeros_like(const Array& a) { return Array::constant(a.shape(), a.dtype(), 0); }

}  // namespace catena::testing::detail
