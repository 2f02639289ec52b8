// Lock files: which plugins may be loaded, by id, version and hash.
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

// "ID VERSION SHA256" a line; '#' begins a comment. An id may have several lines.
class PluginLock {
public:
    // Throws PluginError, "lock FILE, line N: ..." where a line is at fault.
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

// The folder of the name that was asked for, and the folder of the file behind it: a lock in either
// applies, so that a link does not bypass a lock.
struct PluginFolders {
    std::filesystem::path named, real;
};

// Which locks apply to a plugin: what the program set, else $CATENA_PLUGIN_LOCK, else a lock file in
// one of its folders, which is strict.
class PluginLocks {
public:
    void set(PluginLockMode mode, const std::filesystem::path& file);
    // Off if nothing asks for a lock. Throws PluginError if $CATENA_PLUGIN_LOCK is invalid.
    PluginLockMode mode(const PluginFolders& folders) const;
    // Throws PluginError if a lock does not allow the plugin or cannot be read. In mode warn, returns
    // these texts instead, each once.
    std::vector<std::string> check(const LoadedPlugin& plugin, const PluginFolders& folders);

private:
    struct Wish {
        PluginLockMode mode;
        std::filesystem::path file;  // "": beside the plugins
    };
    // nullopt: neither the program nor the environment asks for one.
    std::optional<Wish> wish() const;
    // The locks that are asked for or exist.
    std::vector<std::filesystem::path> files_for(const PluginFolders& folders) const;

    std::optional<Wish> program_;
    std::map<std::filesystem::path, PluginLock> read_;
    std::set<std::string> warned_;
};

// A text as one word: spaces, control characters, # and % become %XX; nothing becomes "-".
std::string as_word(std::string_view text);

}  // namespace catena
