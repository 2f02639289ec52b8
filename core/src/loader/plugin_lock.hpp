// Lock files: which plugins may be loaded, by id, version and hash.
#pragma once

#include <catena/core/plugins.hpp>

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
    // Throws PluginError unless a line says just this.
    void check(const LoadedPlugin& plugin) const;

private:
    struct Line {
        int number;
        std::string id, version, sha256;
    };
    std::filesystem::path file_;
    std::vector<Line> lines_;
};

// The folders of a plugin: that of the name which was asked for, and that of the file which it
// stands for, so that no link leads around a lock.
struct PluginFolders {
    std::filesystem::path named, real;
};

// Which locks hold for which plugin: the program's word, else $CATENA_PLUGIN_LOCK, else a lock file
// in one of its folders, which is strict.
class PluginLocks {
public:
    void set(PluginLockMode mode, const std::filesystem::path& file);
    // Off if nothing asks for a lock. Throws PluginError if the environment's words mean nothing.
    PluginLockMode mode(const PluginFolders& folders) const;
    // Throws PluginError if one of the locks does not allow it, or is itself at fault. Locks that
    // only warn return these texts, each once.
    std::vector<std::string> check(const LoadedPlugin& plugin, const PluginFolders& folders);

private:
    struct Wish {
        PluginLockMode mode;
        std::filesystem::path file;  // "": beside the plugins
    };
    // nullopt: nobody said anything
    std::optional<Wish> wish() const;
    // The locks that are asked for or there.
    std::vector<std::filesystem::path> files_for(const PluginFolders& folders) const;
    const PluginLock& lock_of(const std::filesystem::path& file);

    std::optional<Wish> program_;
    std::map<std::filesystem::path, PluginLock> read_;
    std::set<std::string> warned_;
};

// A text as one word: spaces, control characters, # and % become %XX; nothing becomes "-".
std::string as_word(std::string_view text);

}  // namespace catena
