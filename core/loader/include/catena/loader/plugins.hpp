// Loads plugins from files, and reports what was searched, loaded and refused.
#pragma once

#include <catena/core/device.hpp>
#include <catena/core/tables.hpp>

#include <filesystem>
#include <optional>

namespace catena {

struct LoadedPlugin {
    std::string id;
    std::string version;
    std::string vendor;
    std::string devices;
    std::filesystem::path path;
    int n_functions = 0;
    int n_kernels = 0;
    int n_backends = 0;
    std::string sha256 = {};          // of the file, if a lock or an audit needs it
    std::filesystem::path file = {};  // `path` without links; "" if the plugin was only read

    bool is_another_file() const { return !file.empty() && file != path.lexically_normal(); }
};
struct RefusedPlugin {
    std::filesystem::path path;
    std::string reason;
};
struct OverriddenPlugin {
    LoadedPlugin plugin;
    std::filesystem::path by;  // the file with the same id that was loaded first
};
struct SearchedFolder {
    std::filesystem::path path;
    std::string from;  // who named it: "program", "CATENA_PLUGIN_PATH", "user" or "system"
};
struct IdlePlugin {
    LoadedPlugin plugin;
    std::string reason;  // for each backend in `plugin.devices`
};
struct PluginReport {
    std::vector<SearchedFolder> searched;  // in order
    std::vector<LoadedPlugin> loaded;
    std::vector<RefusedPlugin> refused;
    std::vector<LoadedPlugin> left_out;  // by leave_out_plugin()
    std::vector<OverriddenPlugin> overridden;
    std::vector<IdlePlugin> idle;       // not loaded: no device for them
    std::vector<BackendInfo> backends;  // of loaded plugins
    std::vector<KernelsWithoutFunction> kernels_without_function;
    std::optional<std::string> switched_off;  // the value of CATENA_PLUGINS that disables loading
};

// A plugin has the full rights of the process. A file is refused if anybody but root and the user
// can change it or a folder above it, or if a lock does not list it: core/doc/threat-model.md. If
// two plugins have the same id, the first is loaded and the other is reported as overridden.

// Loads one file. Throws PluginError with the reason if it is refused. Loading a file again does
// nothing, and throws PluginError if the file was replaced: plugins stay loaded until the process
// ends. CATENA_PLUGINS=off refuses every file.
void load_plugin(const std::filesystem::path& file);
// Loads every *.catena of a folder in the order of names, first those that name no devices, because
// backends are among them. A plugin is not loaded if every backend it names is loaded and has no
// device. The report lists these and refused files. Throws PluginError if the folder is unreadable.
void load_plugins(const std::filesystem::path& folder);
// Loads from the usual places, once: the folders of $CATENA_PLUGIN_PATH, then catena/plugins in
// $XDG_DATA_HOME (~/.local/share), then catena/plugins beside catena's libraries; never the current
// directory. Called by the first search for a function or device. CATENA_PLUGINS=off prevents it.
void load_default_plugins();
// The folders that load_default_plugins() searches, in order. Loads nothing.
std::vector<SearchedFolder> default_plugin_folders();
// From now on the usual places are not searched: for programs that name their own folders.
void disable_default_plugins();
// From now on skips the plugin with this id, wherever it is found. A loaded plugin stays loaded.
void leave_out_plugin(std::string_view id);

// What happens to a plugin that the lock does not list: nothing, a line in the log, or a refusal.
enum class PluginLockMode { off, warn, strict };
// Sets the lock for plugins that are loaded from now on. The default is catena.plugins.lock in the
// folder of each plugin, for a link also in that of its file. Overrides $CATENA_PLUGIN_LOCK
// ("strict", "warn", "off", each also with ":/FILE"). Without either, such a lock is strict.
void set_plugin_lock(PluginLockMode mode, const std::filesystem::path& file = {});
// Reads a file's manifest, and runs nothing of the file. Throws PluginError if the file is no
// plugin, or would be refused for its owner or mode.
LoadedPlugin read_manifest(const std::filesystem::path& file);
LoadedPlugin read_hashed_manifest(const std::filesystem::path& file);  // also computes `sha256`
// Returns a lock's text for plugins from read_hashed_manifest(). catena/plugin_lock.hpp writes it.
std::string plugin_lock_text(std::span<const LoadedPlugin> plugins);
// The hash of a file, 64 hexadecimal digits. Throws PluginError if its owner or mode is refused.
std::string plugin_sha256(const std::filesystem::path& file);

PluginReport plugin_report();
std::string to_string(const KernelsWithoutFunction& kernels);
// The report as text, one line for each entry.
std::string to_string(const PluginReport& report);
// Returns only the refused files, one line each; "" if there is none. If there are more than
// `most`, the first ones and the number of the others.
std::string refusals(const PluginReport& report, std::size_t most = std::size_t(-1));
// Returns the reason why nothing is loaded, from the value of CATENA_PLUGINS.
std::string switched_off_text(std::string_view value);
}  // namespace catena
