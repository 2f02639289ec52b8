// Lists functions and shows single ones, for people.
#include "commands.hpp"

#include <catena/abi/kernel.h>
#include <catena/core/dtype.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/diagnostics/kernels.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace catena::command {
namespace {

bool has(std::uint32_t flags, std::uint32_t flag) { return (flags & flag) != 0; }

std::string text_of(const catena_value& value) {
    switch (value.kind) {
        case CATENA_ATTR_INT: return fmt::format("{}", value.v.i);
        case CATENA_ATTR_FLOAT: return fmt::format("{}", value.v.f);
        case CATENA_ATTR_BOOL: return value.v.i ? "true" : "false";
        case CATENA_ATTR_STRING: return fmt::format("'{}'", value.v.s ? value.v.s : "");
        case CATENA_ATTR_INTS: return fmt::format("{}", std::span(value.v.ints, value.n));
        case CATENA_ATTR_FLOATS: return fmt::format("{}", std::span(value.v.floats, value.n));
        case CATENA_ATTR_DTYPE: return name(value.v.dtype);
        default: return "?";
    }
}

std::string_view kind_of(std::int32_t kind) {
    constexpr std::string_view names[] = {"?",      "int",  "float",  "bool",
                                          "string", "ints", "floats", "dtype"};
    return kind >= 1 && kind <= 7 ? names[kind] : names[0];
}

std::string signature(const catena_function& f) {
    std::string arguments;
    const auto add = [&](const std::string& text) {
        arguments += (arguments.empty() ? "" : ", ") + text;
    };
    for (const auto* port : std::span(f.inputs, f.n_inputs)) {
        add(std::string(port->name) + (has(port->flags, CATENA_PORT_OPTIONAL) ? "?" : "") +
            (has(port->flags, CATENA_PORT_VARIADIC) ? "..." : ""));
    }
    for (const auto* attribute : std::span(f.attrs, f.n_attrs)) {
        const bool required = has(attribute->flags, CATENA_ATTR_REQUIRED);
        add(attribute->name + (required ? "" : "=" + text_of(attribute->def)));
    }
    return fmt::format("{}({})", f.name, arguments);
}

std::string_view first_line(const char* doc) {
    const std::string_view text = doc ? doc : "";
    return text.substr(0, text.find('\n'));
}

// ": text", or nothing.
std::string colon(const char* doc) { return doc && *doc ? fmt::format(": {}", doc) : ""; }

std::string port_line(const catena_port_spec& port) {
    constexpr std::pair<std::uint32_t, std::string_view> words[] = {
        {CATENA_PORT_OPTIONAL, "optional"},
        {CATENA_PORT_VARIADIC, "one or more"},
        {CATENA_PORT_NON_DIFFERENTIABLE, "no gradient"},
        {CATENA_PORT_MUTATED, "updated in place"},
        {CATENA_PORT_HIDDEN, "not returned"}};
    std::string marks;
    for (const auto& [flag, word] : words) {
        if (has(port.flags, flag)) marks += fmt::format(", {}", word);
    }
    return fmt::format("    {} ({}{}){}\n", port.name, port.type_var, marks, colon(port.doc));
}

std::string orders(const catena_function& f) {
    if (has(f.flags, CATENA_FUNCTION_NOT_DIFFERENTIABLE)) return "not differentiable";
    if (f.gradient) return "differentiable to any order";
    if (f.grad_function) return fmt::format("differentiable, by {}", f.grad_function);
    return "differentiable once";
}

// Kernels alike but for dtypes, priority and instruction set.
struct Group {
    std::vector<KernelInfo> kernels;
    const KernelInfo& any() const { return kernels[0]; }
};

std::vector<Group> groups_of(const catena_function& f) {
    std::vector<Group> groups;
    const auto key = [](const KernelInfo& k) {
        return std::tie(k.phase, k.plugin, k.device, k.variant, k.name);
    };
    for (auto& kernel : kernels_of(f.name)) {
        const auto same = [&](const Group& group) { return key(group.any()) == key(kernel); };
        const auto group = std::ranges::find_if(groups, same);
        if (group == groups.end()) groups.push_back({{std::move(kernel)}});
        else group->kernels.push_back(std::move(kernel));
    }
    return groups;
}

// "forward cpu org.catena.math: float32, float64 (priority 100 to 102; baseline, x86-64-v4)".
std::string group_line(const catena_function& f, const Group& group) {
    const KernelInfo& k = group.any();
    std::set<int> priorities;
    std::vector<std::string> sets;
    for (const KernelInfo& kernel : group.kernels) {
        priorities.insert(kernel.priority);
        const std::string isa = kernel.isa.empty() ? "baseline" : kernel.isa;
        if (std::ranges::count(sets, isa) == 0) sets.push_back(isa);
    }
    const int low = *priorities.begin(), high = *priorities.rbegin();
    return fmt::format("    {} {} {}{}{}: {} (priority {}{}; {})\n",
                       k.phase == CATENA_PHASE_FORWARD ? "forward" : "backward", k.device, k.plugin,
                       k.name.empty() ? "" : ", " + k.name,
                       k.variant.empty() ? "" : ", variant " + k.variant,
                       dtypes_to_string(f, group.kernels), low,
                       high > low ? fmt::format(" to {}", high) : "", fmt::join(sets, ", "));
}

// Plugins, devices and dtypes of the forward kernels: "org.catena.math on cpu: float32, float64".
std::string where(const catena_function& f) {
    std::map<std::pair<std::string, std::string>, std::vector<KernelInfo>> places;
    for (const auto& kernel : kernels_of(f.name)) {
        if (kernel.phase == CATENA_PHASE_FORWARD) {
            places[{kernel.plugin, kernel.device}].push_back(kernel);
        }
    }
    std::string text;
    for (const auto& [place, kernels] : places) {
        text += fmt::format("{}{} on {}: {}", text.empty() ? "" : "; ", place.first, place.second,
                            dtypes_to_string(f, kernels));
    }
    return text.empty() ? "a view: any device and dtype" : text;
}

}  // namespace

std::string list_functions() {
    std::string text;
    for (const auto& name : function_names()) {
        const catena_function& f = function_descriptor(name);
        if (has(f.flags, CATENA_FUNCTION_INTERNAL)) continue;
        text += fmt::format("{}\n    {}\n    {}; {}\n", signature(f), first_line(f.doc), where(f),
                            orders(f));
    }
    return text;
}

std::string describe(const std::string& function) {
    const catena_function& f = find_function(function);
    std::string text = fmt::format("{}\nversion {}\n\n{}\n\ninputs\n", signature(f), f.version,
                                   f.doc ? f.doc : "");
    for (const auto* port : std::span(f.inputs, f.n_inputs)) text += port_line(*port);
    text += "outputs\n";
    for (const auto* port : std::span(f.outputs, f.n_outputs)) text += port_line(*port);
    if (f.n_attrs > 0) text += "attributes\n";
    for (const auto* attribute : std::span(f.attrs, f.n_attrs)) {
        text += fmt::format("    {} ({}", attribute->name, kind_of(attribute->kind));
        if (has(attribute->flags, CATENA_ATTR_REQUIRED)) text += ", required";
        else text += ", default " + text_of(attribute->def);
        if (has(attribute->flags, CATENA_ATTR_RANGED)) {
            text += fmt::format(", {} to {}", text_of(attribute->lo), text_of(attribute->hi));
        }
        for (auto choice = attribute->choices; choice && *choice; ++choice) {
            text +=
                fmt::format("{}'{}'", choice == attribute->choices ? ", one of " : ", ", *choice);
        }
        text += ")" + colon(attribute->doc) + '\n';
    }
    if (f.examples && *f.examples) text += "examples\n";
    for (auto example = f.examples; example && *example; ++example) {
        text += fmt::format("    {}\n", *example);
    }
    text += fmt::format("gradient\n    {}\nkernels\n", orders(f));
    for (const Group& group : groups_of(f)) text += group_line(f, group);
    return text;
}

}  // namespace catena::command
