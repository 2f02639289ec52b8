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

// Which lock holds for which folder: the program's word, else $CATENA_PLUGIN_LOCK, else a lock file
// beside the plugins, which is strict.
class PluginLocks {
public:
    void set(PluginLockMode mode, const std::filesystem::path& file);
    // Off if nothing asks for a lock. Throws PluginError if the environment's words mean nothing.
    PluginLockMode mode(const std::filesystem::path& folder) const;
    // Throws PluginError if the folder's lock does not allow it, or is itself at fault. A lock that
    // only warns returns that text, the first time; else "".
    std::string check(const LoadedPlugin& plugin, const std::filesystem::path& folder);

private:
    struct Wish {
        PluginLockMode mode;
        std::filesystem::path file;  // "": beside the plugins
    };
    // nullopt: nobody said anything
    std::optional<Wish> wish() const;
    std::filesystem::path file_for(const std::filesystem::path& folder) const;

    std::optional<Wish> program_;
    std::map<std::filesystem::path, PluginLock> read_;
    std::set<std::string> warned_;
};

// A text as one word: spaces, control characters, # and % become %XX; nothing becomes "-".
std::string as_word(std::string_view text);

}  // namespace catena
