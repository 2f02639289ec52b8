// Lists functions and shows single ones, for people.
#include "commands.hpp"

#include <catena/core/dtype.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/diagnostics/kernels.hpp>

#include <fmt/ranges.h>
#include <inspect.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <tuple>

namespace catena::command {
namespace {

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
        if (kernel.phase == CATENA_PHASE_FORWARD)
            places[{kernel.plugin, kernel.device}].push_back(kernel);
    }
    std::string text;
    for (const auto& [place, kernels] : places)
        text += fmt::format("{}{} on {}: {}", text.empty() ? "" : "; ", place.first, place.second,
                            dtypes_to_string(f, kernels));
    return text.empty() ? "a view: any device and dtype" : text;
}

}  // namespace

std::string list_functions() {
    std::string text;
    auto list = inspect::functions({})["functions"];
    std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
        return inspect::text(a, "name") < inspect::text(b, "name");
    });
    for (const auto& f : list) {
        if (inspect::is(f, "internal")) continue;
        const std::string call = inspect::call(f), order = inspect::text(f["gradient"], "order");
        text +=
            fmt::format("{}\n    {}\n    {}; {}\n", call.substr(0, call.find(" -> ")),
                        inspect::summary(f), where(function_descriptor(inspect::text(f, "name"))),
                        order == "none"    ? "not differentiable"
                        : order == "first" ? "differentiable once"
                                           : "differentiable to any order");
    }
    return text;
}

std::string describe(const std::string& function) {
    const catena_function& f = find_function(function);
    std::string text = inspect::to_text(inspect::functions({{}, {f.name}}), true) + "\nkernels\n";
    for (const Group& group : groups_of(f)) text += group_line(f, group);
    return text;
}

}  // namespace catena::command
