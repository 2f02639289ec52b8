// Lists functions and describes single ones; lists plugins by folder, with the reasons why some
// were not loaded; and locks plugins.
#include "commands.hpp"

#include <catena/core/dtype.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/core/tables.hpp>
#include <catena/diagnostics/kernels.hpp>

#include <fmt/ranges.h>
#include <inspect.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <tuple>

namespace catena::command {
namespace {

// Kernels that differ only in dtypes, priority and instruction set.
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

// Returns the places of the forward kernels: "org.catena.math on cpu: float32, float64".
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
    if (!text.empty()) return text;
    return f.compose ? "a composition: where its parts run" : "a view: any device and dtype";
}

namespace fs = std::filesystem;

struct Row {
    std::string state;  // loaded, refused, overridden, left out, idle
    fs::path path;
    LoadedPlugin plugin;  // empty if refused
    std::string reason;
};

std::vector<Row> rows_of(const PluginReport& report) {
    std::vector<Row> rows;
    for (const auto& p : report.loaded) rows.push_back({"loaded", p.path, p, ""});
    for (const auto& p : report.refused) rows.push_back({"refused", p.path, {}, p.reason});
    for (const auto& p : report.overridden)
        rows.push_back({"overridden", p.plugin.path, p.plugin, p.by.string() + " came first"});
    for (const auto& p : report.left_out) rows.push_back({"left out", p.path, p, "as asked for"});
    for (const auto& p : report.idle) rows.push_back({"idle", p.plugin.path, p.plugin, p.reason});
    return rows;
}

// Returns the hash of the loaded file, else of the current file; "" if it is not safe to read.
std::string hash_of(const Row& row) {
    if (!row.plugin.sha256.empty()) return row.plugin.sha256;
    try {
        return plugin_sha256(row.path);
    } catch (const PluginError&) {
        return "";
    }
}

std::string number(int n, const char* what) {
    return n == 0 ? "" : fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string text_of(const Row& row, std::size_t width, bool hash) {
    const LoadedPlugin& p = row.plugin;
    const std::string file =
        row.path.filename().string() + (p.is_another_file() ? " -> " + p.file.string() : "");
    std::string what = file;
    if (row.state != "refused") what = fmt::format("{:{}}  {:7}  {}", p.id, width, p.version, file);
    if (!row.reason.empty()) what += ": " + row.reason;
    if (row.state == "loaded")
        for (const auto& count : {number(p.n_functions, "function"), number(p.n_kernels, "kernel"),
                                  number(p.n_backends, "device backend")})
            if (!count.empty()) what += ", " + count;
    std::string text = fmt::format("   {:10}  {}\n", row.state, one_line(what));
    if (const std::string sum = hash ? hash_of(row) : ""; !sum.empty())
        text += fmt::format("   {:10}  sha256 {}\n", "", sum);
    return text;
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

std::string list_plugins(const PluginReport& report, bool hash) {
    std::string text;
    if (report.switched_off) text += switched_off_text(*report.switched_off) + '\n';
    std::vector<Row> rows = rows_of(report);
    std::size_t width = 0;
    for (const Row& row : rows) width = std::max(width, row.plugin.id.size());
    int place = 0;
    for (const SearchedFolder& folder : report.searched) {
        std::error_code error;
        text += fmt::format("{}. {} ({}){}\n", ++place, one_line(folder.path.string()), folder.from,
                            fs::is_directory(folder.path, error) ? "" : ": no such folder");
        std::erase_if(rows, [&](const Row& row) {
            if (row.path != folder.path && row.path.parent_path() != folder.path) return false;
            text += text_of(row, width, hash);
            return true;
        });
    }
    for (const Row& row : rows)
        text += fmt::format("{}\n{}", one_line(row.path.string()), text_of(row, width, hash));
    for (const BackendInfo& b : report.backends) {
        if (b.devices == 0)
            text += one_line(fmt::format("{}: no device ({})", b.name, b.reason)) + '\n';
    }
    for (const KernelsWithoutFunction& k : report.kernels_without_function)
        text += one_line(to_string(k)) + '\n';
    const std::string idle =
        report.idle.empty() ? "" : fmt::format(", {} idle", report.idle.size());
    return text + fmt::format("{} loaded, {} refused, {} overridden, {} left out{}\n",
                              report.loaded.size(), report.refused.size(), report.overridden.size(),
                              report.left_out.size(), idle);
}

std::string list_plugins_as_json(const PluginReport& report, bool hash) {
    using Json = nlohmann::ordered_json;
    Json searched = Json::array(), plugins = Json::array();
    for (const SearchedFolder& folder : report.searched) {
        std::error_code error;
        searched.push_back({{"path", folder.path.string()},
                            {"from", folder.from},
                            {"exists", fs::is_directory(folder.path, error)}});
    }
    for (const Row& row : rows_of(report)) {
        Json plugin{{"state", row.state}, {"path", row.path.string()}};
        if (row.state != "refused") {
            const LoadedPlugin& p = row.plugin;
            plugin.update({{"id", p.id},
                           {"version", p.version},
                           {"vendor", p.vendor},
                           {"devices", p.devices}});
            if (p.is_another_file()) plugin["file"] = p.file.string();
        }
        if (row.state == "loaded")
            plugin.update({{"functions", row.plugin.n_functions},
                           {"kernels", row.plugin.n_kernels},
                           {"backends", row.plugin.n_backends}});
        if (!row.reason.empty()) plugin["reason"] = row.reason;
        const std::string sum = hash ? hash_of(row) : row.plugin.sha256;
        if (!sum.empty()) plugin["sha256"] = sum;
        plugins.push_back(plugin);
    }
    Json backends = Json::array();
    for (const BackendInfo& b : report.backends) {
        backends.push_back({{"name", b.name}, {"plugin", b.plugin}, {"devices", b.devices}});
        if (!b.reason.empty()) backends.back()["reason"] = b.reason;
    }
    Json without_function = Json::array();
    for (const KernelsWithoutFunction& k : report.kernels_without_function) {
        without_function.push_back({{"plugin", k.plugin}, {"function", k.function}});
        if (!k.guess.empty()) without_function.back()["guess"] = k.guess;
    }
    Json all{{"format", 1},          {"switched_off", nullptr},
             {"searched", searched}, {"plugins", plugins},
             {"backends", backends}, {"kernels_without_function", without_function}};
    if (report.switched_off) all["switched_off"] = *report.switched_off;
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

void lock_plugins(const std::vector<std::string>& folders, const std::string& out) {
    std::vector<fs::path> places;
    for (const auto& folder : folders) places.push_back(fs::absolute(folder));
    if (folders.empty()) {
        for (const auto& folder : default_plugin_folders()) {
            // The system's folder belongs to a package; only a single lock `out` includes it.
            if (folder.from != "system" || !out.empty()) places.push_back(folder.path);
        }
    }
    std::vector<std::pair<fs::path, std::vector<LoadedPlugin>>> locks;
    std::vector<std::string> names;
    for (const fs::path& place : places) {
        std::vector<fs::path> files;
        std::error_code error;
        for (const auto& item : fs::directory_iterator(place, error)) {
            if (item.path().extension() == ".catena") files.push_back(item.path());
        }
        if (error && !folders.empty())
            throw PluginError(fmt::format("[lock] plugins: expected a folder to read, got {} ({})",
                                          place.string(), error.message()));
        std::ranges::sort(files);
        std::vector<LoadedPlugin> plugins;  // all are read before any lock is written
        for (const fs::path& file : files) plugins.push_back(read_hashed_manifest(file));
        names.push_back(place.string());
        if (plugins.empty()) continue;
        if (out.empty()) locks.emplace_back(place / "catena.plugins.lock", plugins);
        else if (locks.empty()) locks.emplace_back(out, plugins);
        else locks[0].second.insert(locks[0].second.end(), plugins.begin(), plugins.end());
    }
    if (locks.empty())
        throw PluginError(fmt::format(
            "[lock] plugins in {}: expected some, got none{}",
            names.empty() ? "the user's folders" : fmt::format("{}", fmt::join(names, ", ")),
            folders.empty() && out.empty() ? "; for those of another folder: --plugins DIR" : ""));
    for (const auto& [file, plugins] : locks) {
        write_plugin_lock(file, plugins);
        fmt::print("wrote {}: {}\n", file.string(),
                   number(static_cast<int>(plugins.size()), "plugin"));
        std::fflush(stdout);  // before the next file may cause an error
    }
}

}  // namespace catena::command
