// catena plugins: what was found where, what was loaded, refused or passed over, and why.
#include "commands.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

namespace catena::command {
namespace {

namespace fs = std::filesystem;

struct Row {
    std::string state;  // loaded, refused, overridden, left out
    fs::path path;
    LoadedPlugin plugin;  // empty if refused
    std::string reason;
};

std::vector<Row> rows_of(const PluginReport& report) {
    std::vector<Row> rows;
    for (const auto& p : report.loaded) rows.push_back({"loaded", p.path, p, ""});
    for (const auto& p : report.refused) rows.push_back({"refused", p.path, {}, p.reason});
    for (const auto& p : report.overridden) {
        rows.push_back({"overridden", p.plugin.path, p.plugin, p.by.string() + " came first"});
    }
    for (const auto& p : report.left_out) rows.push_back({"left out", p.path, p, "as asked for"});
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
    std::string what;
    if (row.state == "refused") {
        what = fmt::format("{}: {}", row.path.filename().string(), row.reason);
    } else if (row.state == "loaded") {
        what = fmt::format("{:{}}  {:7}  {}", p.id, width, p.version, row.path.filename().string());
        for (const auto& count : {number(p.n_functions, "function"), number(p.n_kernels, "kernel"),
                                  number(p.n_backends, "device backend")}) {
            if (!count.empty()) what += ", " + count;
        }
    } else {
        what = fmt::format("{:{}}  {:7}  {}: {}", p.id, width, p.version,
                           row.path.filename().string(), row.reason);
    }
    std::string text = fmt::format("   {:10}  {}\n", row.state, what);
    if (const std::string sum = hash ? hash_of(row) : ""; !sum.empty()) {
        text += fmt::format("   {:10}  sha256 {}\n", "", sum);
    }
    return text;
}

}  // namespace

std::string list_plugins(const PluginReport& report, bool hash) {
    std::string text;
    if (report.switched_off) {
        text += fmt::format("plugins are switched off: CATENA_PLUGINS={}\n", *report.switched_off);
    }
    std::vector<Row> rows = rows_of(report);
    std::size_t width = 0;
    for (const Row& row : rows) width = std::max(width, row.plugin.id.size());
    int place = 0;
    for (const SearchedFolder& folder : report.searched) {
        std::error_code error;
        text += fmt::format("{}. {} ({}){}\n", ++place, folder.path.string(), folder.from,
                            fs::is_directory(folder.path, error) ? "" : ": no such folder");
        std::erase_if(rows, [&](const Row& row) {
            if (row.path != folder.path && row.path.parent_path() != folder.path) return false;
            text += text_of(row, width, hash);
            return true;
        });
    }
    for (const Row& row : rows) {
        text += fmt::format("{}\n{}", row.path.string(), text_of(row, width, hash));
    }
    return text + fmt::format("{} loaded, {} refused, {} overridden, {} left out\n",
                              report.loaded.size(), report.refused.size(), report.overridden.size(),
                              report.left_out.size());
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
        }
        if (row.state == "loaded") {
            plugin.update({{"functions", row.plugin.n_functions},
                           {"kernels", row.plugin.n_kernels},
                           {"backends", row.plugin.n_backends}});
        }
        if (!row.reason.empty()) plugin["reason"] = row.reason;
        const std::string sum = hash ? hash_of(row) : row.plugin.sha256;
        if (!sum.empty()) plugin["sha256"] = sum;
        plugins.push_back(plugin);
    }
    Json all{{"switched_off", nullptr}, {"searched", searched}, {"plugins", plugins}};
    if (report.switched_off) all["switched_off"] = *report.switched_off;
    return all.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string lock_plugins(const std::vector<std::string>& folders, const std::string& out) {
    std::vector<fs::path> places;
    for (const auto& folder : folders) places.push_back(fs::absolute(folder));
    if (folders.empty()) {
        for (const auto& folder : default_plugin_folders()) places.push_back(folder.path);
    }
    std::string text;
    std::vector<fs::path> all;
    const auto write = [&](const fs::path& file, const std::vector<fs::path>& files) {
        write_plugin_lock(file, files);
        text += fmt::format("wrote {}: {}\n", file.string(),
                            number(static_cast<int>(files.size()), "plugin"));
    };
    for (const fs::path& place : places) {
        std::vector<fs::path> files;
        std::error_code error;
        for (const auto& item : fs::directory_iterator(place, error)) {
            if (item.path().extension() == ".catena") files.push_back(item.path());
        }
        std::ranges::sort(files);
        if (out.empty() && !files.empty()) write(place / "catena.plugins.lock", files);
        all.insert(all.end(), files.begin(), files.end());
    }
    if (all.empty()) throw PluginError("[lock] plugins to write down: expected some, got none");
    if (!out.empty()) write(out, all);
    return text;
}

}  // namespace catena::command
