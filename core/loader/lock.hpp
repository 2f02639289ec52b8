// Lock files: they list the plugins that may be loaded, by id, version and hash.
#pragma once

#include <catena/loader/plugins.hpp>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

// A lock file. Each line is "ID VERSION SHA256"; '#' begins a comment. An id may have several lines.
class PluginLock {
public:
    // Throws PluginError; if a line is invalid, the message is "lock FILE, line N: ...".
    static PluginLock read(const std::filesystem::path& file);
    // Throws PluginError unless a line has this id, version and hash.
    void check(const LoadedPlugin& plugin) const;

private:
    struct Line {
        int number;
        std::string id, version, sha256;
    };
    std::filesystem::path file_;
    std::vector<Line> lines_;
};

// The folder of the path that a plugin is loaded by, and the folder of the file after links are
// resolved. A lock in either folder applies, so that a link does not bypass a lock.
struct PluginFolders {
    std::filesystem::path named, real;
};

// Decides which locks apply to a plugin: those that the program set, else those of
// $CATENA_PLUGIN_LOCK, else a lock file in one of its folders, in strict mode.
class PluginLocks {
public:
    void set(PluginLockMode mode, const std::filesystem::path& file);
    // Off if no lock is set and no lock file exists. Throws PluginError if $CATENA_PLUGIN_LOCK is invalid.
    PluginLockMode mode(const PluginFolders& folders) const;
    // Throws PluginError if a lock does not allow the plugin or cannot be read. In warn mode, returns
    // the messages instead, each only once.
    std::vector<std::string> check(const LoadedPlugin& plugin, const PluginFolders& folders);

private:
    struct Setting {
        PluginLockMode mode;
        std::filesystem::path file;  // "": the lock files in the plugin's folders
    };
    // The setting of the program, else of the environment, else nullopt.
    std::optional<Setting> setting() const;
    // The lock files that apply to a plugin in these folders.
    std::vector<std::filesystem::path> files_for(const PluginFolders& folders) const;

    std::optional<Setting> program_;
    std::map<std::filesystem::path, PluginLock> read_;
    std::set<std::string> warned_;
};

// The text as one word: spaces, control characters, # and % become %XX; an empty text becomes "-".
std::string as_word(std::string_view text);

}  // namespace catena
