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
// Kernels for a function that no loaded plugin has: its name is misspelt, or its plugin is not loaded,
// or not yet.
struct KernelsWithoutFunction {
    std::string plugin;    // id
    std::string function;  // as the kernels name it
    std::string guess;     // the loaded function that was probably meant; "" if none is near
};
struct PluginReport {
    std::vector<SearchedFolder> searched;  // in order
    std::vector<LoadedPlugin> loaded;
    std::vector<RefusedPlugin> refused;
    std::vector<LoadedPlugin> left_out;  // as asked for
    std::vector<OverriddenPlugin> overridden;
    std::vector<IdlePlugin> idle;       // not loaded: no device of those that they serve is here
    std::vector<BackendInfo> backends;  // of what is loaded
    std::vector<KernelsWithoutFunction> kernels_without_function;
    std::optional<std::string> switched_off;  // the word in CATENA_PLUGINS that does
};

// What is loaded has the full rights of the process, so a file is refused if anybody but root and
// the user can change it or a folder above it, if it is another one by the time it is mapped, and
// if a lock says so. core/doc/adr/0010-what-is-loaded.md has the rules and their reasons. Of two
// plugins of one id the first is taken; the other is reported as overridden.

// Loads one file. Throws PluginError with the reason if it is refused; loading a file twice is
// nothing. Plugins stay loaded until the process ends. CATENA_PLUGINS=off refuses every file.
void load_plugin(const std::filesystem::path& file);
// Loads every *.catena of a folder, by name, those first that name no devices, for such bring them.
// A plugin whose devices are all of backends that are there and have no device is not loaded; that
// and refused files go to the report. Throws PluginError if the folder cannot be read.
void load_plugins(const std::filesystem::path& folder);
// Loads from the usual places, once: the folders of $CATENA_PLUGIN_PATH, then catena/plugins in
// $XDG_DATA_HOME (~/.local/share), then catena/plugins beside the core's library; never the current
// directory; in all of them as load_plugins() does. Called by the first search for a function or device. CATENA_PLUGINS=off stops it.
void load_default_plugins();
// Those places, in order; nothing is loaded.
std::vector<SearchedFolder> default_plugin_folders();
// Says that the usual places shall not be searched: the program names its own.
void disable_default_plugins();
// Passes over the plugin of that id (of its manifest) from now on, wherever it is found; what is
// loaded stays.
void leave_out_plugin(std::string_view id);

// What a lock that does not fit means: nothing, a line in the log, or a refusal.
enum class PluginLockMode { off, warn, strict };
// Says which lock holds for what is loaded from now on; without a file each folder's own
// catena.plugins.lock, and for a link to a plugin also that of the true file's folder. Goes before
// $CATENA_PLUGIN_LOCK ("strict", "warn", "off", or one with ":/FILE"). Where neither says anything, a
// lock beside the plugins is strict, and none is off.
void set_plugin_lock(PluginLockMode mode, const std::filesystem::path& file = {});
// What a file says of itself and the hash of the same bytes, read without running it. Throws
// PluginError if the file would be refused for its owner or mode.
LoadedPlugin read_hashed_manifest(const std::filesystem::path& file);
// Writes a lock of plugins that were read so. Throws PluginError.
void write_plugin_lock(const std::filesystem::path& file, std::span<const LoadedPlugin> plugins);
// 64 hexadecimal digits, of any file. Throws PluginError if it would be refused for its owner or mode.
std::string plugin_sha256(const std::filesystem::path& file);

PluginReport plugin_report();
std::string to_string(const KernelsWithoutFunction& kernels);
// The report as text for people: a line each.
std::string to_string(const PluginReport& report);

// What a file says of itself, read without running it. Throws PluginError with the reason.
LoadedPlugin read_manifest(const std::filesystem::path& file);

}  // namespace catena
