// Which kernels serve a function on each device, for each choice of dtypes.
#include "inspect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace catena::inspect {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// A kernel as plugins call it, whatever the instruction set: "connection (formula)".
std::string kernel_name(const Json& k) {
    std::string plugin = text(k, "plugin");
    if (plugin.starts_with("org.catena.")) plugin.erase(0, 11);
    const std::string name = text(k, "name");
    return name.empty() ? plugin : fmt::format("{} ({})", plugin, name);
}

// "connection, onednn (forward)": in the order in which they are tried.
std::string names_of(const std::vector<const Json*>& kernels) {
    std::vector<std::string> names;
    std::map<std::string, std::set<std::string>> phases;
    for (const Json* k : kernels) {
        const std::string name = kernel_name(*k);
        if (std::ranges::count(names, name) == 0) names.push_back(name);
        phases[name].insert(text(*k, "phase"));
    }
    const bool differentiable =
        std::ranges::any_of(kernels, [](const Json* k) { return text(*k, "phase") == "backward"; });
    for (std::string& name : names) {
        const auto& own = phases[name];
        if (own.size() == 1 && differentiable) name += ", " + *own.begin();
    }
    return fmt::format("{}", fmt::join(names, "; "));
}

}  // namespace

Json coverage(const Choice& choice) {
    const Json all = kernels(choice);
    const Json described = functions(choice);
    std::set<std::string> devices;
    std::map<std::string, std::vector<const Json*>> by_function;
    for (const Json& k : all["kernels"]) {
        devices.insert(text(k, "device"));
        by_function[text(k, "function")].push_back(&k);
    }
    Json list = Json::array();
    for (const Json& f : described["functions"]) {
        const std::string name = text(f, "name");
        Rows rows;
        for (const Json* k : by_function[name])
            for (const auto& row : (*k)["dtypes"].get<Rows>())
                if (std::ranges::count(rows, row) == 0) rows.push_back(row);
        std::ranges::sort(rows);
        // Those with the same kernels everywhere are one line.
        std::vector<std::pair<Json, Rows>> lines;
        for (const auto& row : rows) {
            Json cells = Json::object();
            for (const std::string& device : devices) {
                std::vector<const Json*> own;
                for (const Json* k : by_function[name]) {
                    const auto theirs = (*k)["dtypes"].get<Rows>();
                    if (text(*k, "device") == device && std::ranges::count(theirs, row) > 0)
                        own.push_back(k);
                }
                cells[device] = names_of(own);
            }
            const auto same = std::ranges::find(lines, cells, &std::pair<Json, Rows>::first);
            if (same == lines.end()) lines.push_back({cells, {row}});
            else same->second.push_back(row);
        }
        Json own = Json::array();
        for (const auto& [cells, group] : lines)
            own.push_back({{"dtypes", dtypes_text(name, group)}, {"devices", cells}});
        list.push_back({{"function", name}, {"flags", f["flags"]}, {"kernels", own}});
    }
    return {{"coverage", list}, {"devices", devices}};
}

}  // namespace catena::inspect
