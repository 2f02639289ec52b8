// The plugin host: where plugins are looked for, what may be loaded, what was refused and why.
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
    std::string sha256 = {};  // of the bytes that were loaded or read, if somebody asked for it
    std::filesystem::path file = {};  // what `path` stands for, without links; "" if only read

    bool is_another_file() const { return !file.empty() && file != path.lexically_normal(); }
};
struct RefusedPlugin {
    std::filesystem::path path;
    std::string reason;
};
struct OverriddenPlugin {
    LoadedPlugin plugin;
    std::filesystem::path by;  // the file of the same id that came first
};
struct SearchedFolder {
    std::filesystem::path path;
    std::string from;  // who named it: "program", "CATENA_PLUGIN_PATH", "user" or "system"
};
struct IdlePlugin {
    LoadedPlugin plugin;
    std::string reason;  // of each of its devices
};
// Kernels for a function that no loaded plugin has: the name is misspelt, or the plugin that has the
// function is not loaded, or will be loaded later.
struct KernelsWithoutFunction {
    std::string plugin;    // id
    std::string function;  // as the kernels name it
    std::string guess;     // the function that was probably meant; "" if no name is similar
};
struct PluginReport {
    std::vector<SearchedFolder> searched;  // in order
    std::vector<LoadedPlugin> loaded;
    std::vector<RefusedPlugin> refused;
    std::vector<LoadedPlugin> left_out;  // as asked for
    std::vector<OverriddenPlugin> overridden;
    std::vector<IdlePlugin> idle;       // not loaded: none of their devices is here
    std::vector<BackendInfo> backends;  // of what is loaded
    std::vector<KernelsWithoutFunction> kernels_without_function;
    std::optional<std::string> switched_off;  // the word in CATENA_PLUGINS that does
};

// A plugin has the full rights of the process. So a file is refused if anybody but root and the
// user can change it or a folder above it, if it is exchanged before it is mapped, or if a lock
// says so. core/doc/adr/0010-what-is-loaded.md has the rules and their reasons. If two plugins have
// the same id, the first is loaded and the other is reported as overridden.

// Loads one file. Throws PluginError with the reason if it is refused; to load a file again does
// nothing. Plugins stay loaded until the process ends. CATENA_PLUGINS=off refuses every file.
void load_plugin(const std::filesystem::path& file);
// Loads every *.catena of a folder in the order of names; plugins that name no devices come first,
// because backends are among them. A plugin is not loaded if every backend that it names is there but
// has no device; the report lists it, and refused files. Throws PluginError for an unreadable folder.
void load_plugins(const std::filesystem::path& folder);
// Loads from the usual places, once: the folders of $CATENA_PLUGIN_PATH, then catena/plugins in
// $XDG_DATA_HOME (~/.local/share), then catena/plugins beside the core's library; never the current
// directory; in all of them as load_plugins() does. Called by the first search for a function or device. CATENA_PLUGINS=off stops it.
void load_default_plugins();
// The folders that load_default_plugins() searches, in order. Loads nothing.
std::vector<SearchedFolder> default_plugin_folders();
// From now on the usual places are not searched: the program names its own folders.
void disable_default_plugins();
// From now on skips the plugin with this id (of its manifest), wherever it is found. A plugin that is
// loaded stays loaded.
void leave_out_plugin(std::string_view id);

// What a lock that does not fit means: nothing, a line in the log, or a refusal.
enum class PluginLockMode { off, warn, strict };
// Says which lock holds for what is loaded from now on; without a file each folder's own
// catena.plugins.lock, and for a link to a plugin also that of the true file's folder. Goes before
// $CATENA_PLUGIN_LOCK ("strict", "warn", "off", or one with ":/FILE"). Where neither says anything, a
// lock beside the plugins is strict, and none is off.
void set_plugin_lock(PluginLockMode mode, const std::filesystem::path& file = {});
// Reads a file's manifest and the hash of the same bytes, and runs nothing of the file. Throws
// PluginError if the file would be refused for its owner or mode.
LoadedPlugin read_hashed_manifest(const std::filesystem::path& file);
// Writes a lock of plugins that read_hashed_manifest() returned. Throws PluginError.
void write_plugin_lock(const std::filesystem::path& file, std::span<const LoadedPlugin> plugins);
// The hash of any file, 64 hexadecimal digits. Throws PluginError if its owner or mode is refused.
std::string plugin_sha256(const std::filesystem::path& file);

PluginReport plugin_report();
std::string to_string(const KernelsWithoutFunction& kernels);
// The report as text for people: a line each.
std::string to_string(const PluginReport& report);

// Reads a file's manifest and runs nothing of the file. Throws PluginError with the reason.
LoadedPlugin read_manifest(const std::filesystem::path& file);

}  // namespace catena
