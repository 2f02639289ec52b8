// The report of the plugin host as text.
#include <catena/core/plugins.hpp>

#include <fmt/format.h>

namespace catena {

std::string to_string(const PluginReport& report) {
    std::string text;
    if (report.switched_off) {
        text += fmt::format("plugins are switched off: CATENA_PLUGINS={}\n", *report.switched_off);
    }
    for (const SearchedFolder& folder : report.searched) {
        std::error_code error;
        const bool there = std::filesystem::is_directory(folder.path, error);
        text +=
            fmt::format("looked in {}{}\n", folder.path.string(), there ? "" : " (no such folder)");
    }
    for (const LoadedPlugin& p : report.loaded) {
        text += fmt::format("loaded {} {} from {}\n", p.id, p.version, p.path.string());
    }
    for (const RefusedPlugin& p : report.refused) {
        text += fmt::format("refused {}: {}\n", p.path.string(), p.reason);
    }
    for (const LoadedPlugin& p : report.left_out) {
        text += fmt::format("left out {}: {}\n", p.id, p.path.string());
    }
    for (const OverriddenPlugin& p : report.overridden) {
        text += fmt::format("overridden {} {} of {}: {} came first\n", p.plugin.id,
                            p.plugin.version, p.plugin.path.string(), p.by.string());
    }
    if (report.loaded.empty()) text += "no plugin is loaded\n";
    text.pop_back();
    return text;
}

}  // namespace catena
