// The plugin loader: which folders are searched, what may be loaded, what was refused and why.
#pragma once

#include <catena/core/device.hpp>

#include <filesystem>
#include <optional>
#include <span>
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
    int n_functions = 0;
    int n_kernels = 0;
    int n_backends = 0;
    std::string sha256 = {};          // of the bytes that were loaded or read, if requested
    std::filesystem::path file = {};  // the actual file, without links; "" if only read

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
    std::string reason;  // for each of its devices
};
// Kernels for a function that no loaded plugin has: the name is misspelled, or the plugin with the
// function is not loaded, or is loaded later.
struct KernelsWithoutFunction {
    std::string plugin;    // id
    std::string function;  // as the kernels name it
    std::string guess;     // suggested name; "" if no name is similar
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

// A plugin has all rights of the process. So a file is refused if anybody except root and the user
// can change it or a folder above it, if it is replaced before it is mapped, or if a lock file does
// not allow it. core/doc/adr/0010-what-is-loaded.md has the rules and the reasons. If two plugins
// have the same id, the first is loaded and the other is reported as overridden.

// Loads one file. Throws PluginError with the reason if it is refused. Loading a file again does
// nothing. Plugins stay loaded until the process ends. CATENA_PLUGINS=off refuses every file.
void load_plugin(const std::filesystem::path& file);
// Loads every *.catena of a folder in alphabetical order. Plugins that name no devices come first,
// because they may provide backends. A plugin is not loaded if every backend that it names is
// loaded but has no device. The report lists such plugins, and refused files. Throws PluginError
// for an unreadable folder.
void load_plugins(const std::filesystem::path& folder);
// Loads from the usual folders, once: those of $CATENA_PLUGIN_PATH, then catena/plugins in
// $XDG_DATA_HOME (~/.local/share), then catena/plugins next to the core's library; never the
// current folder. Called by the first search for a function or device. CATENA_PLUGINS=off disables
// it.
void load_default_plugins();
// The folders that load_default_plugins() searches, in order. Loads nothing.
std::vector<SearchedFolder> default_plugin_folders();
// Turns off the search in the usual folders: the program names its own.
void disable_default_plugins();
// Skips the plugin with this manifest id from now on, in all folders. A plugin that is already
// loaded stays loaded.
void leave_out_plugin(std::string_view id);

// The effect of a lock file that does not match: none, a log message, or a refusal.
enum class PluginLockMode { off, warn, strict };
// Sets the lock file for all later loading. Without a file, each folder's own catena.plugins.lock
// is used, and for a link to a plugin also that of the actual file's folder. Has priority over
// $CATENA_PLUGIN_LOCK ("strict", "warn", "off", or one followed by ":/FILE"). By default, a lock
// file next to the plugins is strict; without one there is no check.
void set_plugin_lock(PluginLockMode mode, const std::filesystem::path& file = {});
// Reads a file's manifest and the hash of the same bytes, without running code of the file. Throws
// PluginError if the owner or mode of the file would be refused.
LoadedPlugin read_hashed_manifest(const std::filesystem::path& file);
// Writes a lock file for plugins from read_hashed_manifest(). Throws PluginError.
void write_plugin_lock(const std::filesystem::path& file, std::span<const LoadedPlugin> plugins);
// The hash of any file, 64 hexadecimal digits. Throws PluginError if its owner or mode is refused.
std::string plugin_sha256(const std::filesystem::path& file);

PluginReport plugin_report();
std::string to_string(const KernelsWithoutFunction& kernels);
// The report as text, one line per entry.
std::string to_string(const PluginReport& report);

// Reads a file's manifest without running code of the file. Throws PluginError with the reason.
LoadedPlugin read_manifest(const std::filesystem::path& file);

}  // namespace catena
