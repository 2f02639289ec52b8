// catena update: steps of an optimizer from arrays of a file.
#include "commands.hpp"

#include <catena/diagnostics/kernels.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena::command {
namespace {

// Of the state, by the kernels that take parameters of a dtype.
Dtype dtype_of(const catena_function& f, const catena_port_spec& state, Dtype param) {
    if (state.type_var == std::string_view(f.inputs[0]->type_var)) return param;
    for (const KernelInfo& kernel : kernels_of(f.name)) {
        for (const auto& row : kernel.dtypes) {
            if (row[0] == name(param) && row.size() == 2) return dtype_from_name(row[1]);
        }
    }
    return param;
}

}  // namespace

Arrays update(const std::string& optimizer, const Settings& settings, const Arrays& given) {
    const catena_function& f = find_function(optimizer + "_update");
    const std::int64_t last = std::max<std::int64_t>(last_number(given, "grad"), 1);
    std::vector<std::string> grads, states;
    for (std::int64_t t = 1; t <= last; ++t) {
        grads.push_back(fmt::format("grad{}", t));
        need(f, given, grads.back(), t < last ? fmt::format("grad{}", last) : "");
    }
    refuse_unknown(f, given, "grad", grads);
    std::vector<Array> inputs{need(f, given, "param0").copy(), Array()};
    for (std::uint32_t i = 2; i < f.n_inputs; ++i) {
        states.push_back(fmt::format("state_{}", f.inputs[i]->name));
        const auto found = given.find(states.back());
        inputs.push_back(found != given.end()
                             ? found->second.copy()
                             : Array::zeros(inputs[0].shape(),
                                            dtype_of(f, *f.inputs[i], inputs[0].dtype()),
                                            inputs[0].device()));
    }
    refuse_unknown(f, given, "state_", states);
    // Updates that depend on their number have it as the attribute t, unless told otherwise.
    bool counts = false;
    for (const auto* spec : std::span(f.attrs, f.n_attrs)) {
        counts |= spec->name == std::string_view("t") && spec->kind == CATENA_ATTR_INT;
    }
    Attributes attributes(f, settings);
    counts = counts && !attributes.has("t");
    Arrays result;
    for (std::int64_t t = 1; t <= last; ++t) {
        inputs[1] = need(f, given, grads[static_cast<std::size_t>(t - 1)]);
        if (counts) attributes.set("t", t);
        attributes.bind().forward(inputs);
        result[fmt::format("param{}", t)] = inputs[0].copy();
    }
    for (std::size_t i = 0; i < states.size(); ++i) result[states[i]] = inputs[i + 2];
    return result;
}

}  // namespace catena::command
