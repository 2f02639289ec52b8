// The plugin host: where plugins are looked for, what was loaded, what was refused and why.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

struct LoadedPlugin {
    std::string id;
    std::string version;
    std::string vendor;
    std::string devices;
    std::filesystem::path path;
    int n_functions;
    int n_kernels;
    int n_backends;
};
struct RefusedPlugin {
    std::filesystem::path path;
    std::string reason;
};
struct PluginReport {
    std::vector<std::filesystem::path> searched;  // folders and files, in order
    std::vector<LoadedPlugin> loaded;
    std::vector<RefusedPlugin> refused;
    std::vector<LoadedPlugin> left_out;  // as asked for
};

// Loads one file. Throws PluginError with the reason if it is refused; loading a file twice is
// nothing. Plugins stay loaded until the process ends.
void load_plugin(const std::filesystem::path& file);
// Loads every *.catena of a folder, by name; refused files go to the report.
void load_plugins(const std::filesystem::path& folder);
// Loads from the usual places, once: the folders of $CATENA_PLUGIN_PATH, then catena/plugins beside
// the core's library. Called by the first search for a function or device. CATENA_PLUGINS=off stops
// all of it.
void load_default_plugins();
// Says that the usual places shall not be searched: the program names its own.
void disable_default_plugins();
// Passes over the plugin of that id (of its manifest) from now on, wherever it is found; what is
// loaded stays.
void leave_out_plugin(std::string_view id);

PluginReport plugin_report();
// The report as text for people: a line each.
std::string to_string(const PluginReport& report);

// What a file says of itself, read without running it. Throws PluginError with the reason.
LoadedPlugin read_manifest(const std::filesystem::path& file);

}  // namespace catena
