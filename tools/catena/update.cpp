// catena update: steps of an optimizer from arrays of a file.
#include "commands.hpp"

#include <fmt/format.h>

namespace catena::command {

Arrays update(const std::string& optimizer, const Settings& settings, const Arrays& given) {
    const std::string name = full_name(optimizer + "_update");
    const catena_function& f = function_descriptor(name);
    const auto need = [&](const std::string& key) -> const Array& {
        const auto found = given.find(key);
        if (found != given.end()) return found->second;
        throw InvalidError(fmt::format("[{}] {}: expected in the file, got none", name, key));
    };
    std::vector<Array> inputs{need("param0").copy(), need("grad1")};
    for (std::uint32_t i = 2; i < f.n_inputs; ++i) {
        const auto found = given.find(fmt::format("state_{}", f.inputs[i]->name));
        inputs.push_back(found != given.end() ? found->second.copy()
                                              : Array::zeros(inputs[0].shape(), inputs[0].dtype(),
                                                             inputs[0].device()));
    }
    // Updates that depend on their number have it as the attribute t, unless told otherwise.
    bool counts = false;
    for (const auto* spec : std::span(f.attrs, f.n_attrs)) {
        counts |= spec->name == std::string_view("t") && spec->kind == CATENA_ATTR_INT;
    }
    Attributes attributes(f, settings);
    counts = counts && !attributes.has("t");
    Arrays result;
    for (std::int64_t t = 1; t == 1 || given.contains(fmt::format("grad{}", t)); ++t) {
        inputs[1] = need(fmt::format("grad{}", t));
        if (counts) attributes.set("t", t);
        attributes.bind().forward(inputs);
        result[fmt::format("param{}", t)] = inputs[0].copy();
    }
    for (std::uint32_t i = 2; i < f.n_inputs; ++i) {
        result[fmt::format("state_{}", f.inputs[i]->name)] = inputs[i];
    }
    return result;
}

}  // namespace catena::command
