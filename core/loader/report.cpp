// The plugin report as text.
#include <catena/core/tables.hpp>
#include <catena/loader/plugins.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

std::string switched_off_text(std::string_view word) {
    if (word == "off") return "plugins are switched off: CATENA_PLUGINS=off";
    return one_line(fmt::format(
        "plugins are switched off: CATENA_PLUGINS: expected on or off, got '{}'", word));
}

std::string refusals(const PluginReport& report, std::size_t most) {
    const std::span<const RefusedPlugin> all = report.refused;
    std::string text;
    for (const RefusedPlugin& p : all.first(std::min(most, all.size())))
        text += one_line(fmt::format("refused {}: {}", p.path.string(), p.reason)) + '\n';
    if (all.size() > most)
        text += fmt::format("refused {} more files: see catena plugins\n", all.size() - most);
    if (!text.empty()) text.pop_back();
    return text;
}

std::string to_string(const KernelsWithoutFunction& k) {
    return fmt::format("{}: it has kernels for {}, a function that no plugin has{}", k.plugin,
                       k.function, k.guess.empty() ? "" : "; did you mean " + k.guess + "?");
}

std::string to_string(const PluginReport& report) {
    std::string text;
    const auto add = [&](const std::string& line) { text += one_line(line) + '\n'; };
    if (report.switched_off) add(switched_off_text(*report.switched_off));
    for (const SearchedFolder& folder : report.searched) {
        std::error_code error;
        const bool there = std::filesystem::is_directory(folder.path, error);
        add(fmt::format("looked in {}{}", folder.path.string(), there ? "" : " (no such folder)"));
    }
    for (const LoadedPlugin& p : report.loaded) {
        add(fmt::format("loaded {} {} from {}{}", p.id, p.version, p.path.string(),
                        p.is_another_file() ? " -> " + p.file.string() : ""));
    }
    if (!report.refused.empty()) text += refusals(report) + '\n';
    for (const LoadedPlugin& p : report.left_out) {
        add(fmt::format("left out {}: {}", p.id, p.path.string()));
    }
    for (const OverriddenPlugin& p : report.overridden) {
        add(fmt::format("overridden {} {} of {}: {} came first", p.plugin.id, p.plugin.version,
                        p.plugin.path.string(), p.by.string()));
    }
    for (const IdlePlugin& p : report.idle) {
        add(fmt::format("not loaded {}: {}: {}", p.plugin.id, p.plugin.path.string(), p.reason));
    }
    for (const BackendInfo& b : report.backends) {
        if (b.devices == 0) add(fmt::format("{}: no device ({})", b.name, b.reason));
    }
    for (const KernelsWithoutFunction& k : report.kernels_without_function) add(to_string(k));
    if (report.loaded.empty()) add("no plugin is loaded");
    text.pop_back();
    return text;
}

}  // namespace catena
