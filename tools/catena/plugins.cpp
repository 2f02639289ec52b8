// catena plugins: what was found where, what was loaded, refused or passed over, and why.
#include "commands.hpp"

#include <catena/core/tables.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>

namespace catena::command {
namespace {

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

// The hash of what was loaded, else of the file as it is now; "" if it cannot be read safely.
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
            // A package's folder gets no lock unasked; one lock for all has its plugins, too.
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
        std::vector<LoadedPlugin> plugins;  // all are fine before anything is written
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
        std::fflush(stdout);  // before an error of the next one
    }
}

}  // namespace catena::command
