// Plugin files: search folders, checks of owners and modes, manifests, locks, and the audit of each file.
#pragma once

#include <catena/loader/plugins.hpp>

#include <descriptor.hpp>

#include <sys/stat.h>

#include <map>
#include <set>

namespace catena {

// ---- files that nobody but root and the user can change: core/doc/threat-model.md

// An open file. The constructor refuses a file, folder or link without a trusted owner, and every folder on
// the path, links included, that others can write to. Trusted are root, the user, the owner of this library
// and $CATENA_PLUGIN_OWNERS. Sticky folders are accepted above the file's own folder. Folders above catena's
// libraries are not checked: a user who can write there can replace catena itself.
class TrustedFile {
public:
    // Throws PluginError with the reason only.
    explicit TrustedFile(const std::filesystem::path& path);

    int fd() const { return file_.get(); }
    const std::filesystem::path& path() const { return path_; }  // with links resolved
    // Throws PluginError if the path names another file now, or if the file was written to. An upgrade
    // may replace plugins while a program starts.
    void check_unchanged() const;
    const struct stat& status() const { return status_; }

private:
    std::filesystem::path path_;
    Descriptor file_;
    struct stat status_ {};
};

// Whether two states of a path are of one file with the same content.
bool is_same_file(const struct stat& a, const struct stat& b);
// Returns the folder of catena's libraries, with links resolved; "" if it is unknown.
std::filesystem::path own_folder();
// Returns the SHA-256 of a file, in hexadecimal. Throws PluginError with the reason only.
std::string sha256_of(int fd);

// ---- folders, manifests, the audit

// Returns the usual folders by precedence, never the current directory; adds invalid entries to `refused`.
std::vector<SearchedFolder> usual_folders(std::vector<RefusedPlugin>& refused);
// Adds the files *.catena of a folder, sorted by name. Returns the folder if it cannot be read.
std::vector<RefusedPlugin> add_plugin_files(const std::filesystem::path& folder,
                                            std::vector<std::filesystem::path>& files);

// Reads the manifest of an open file. Throws PluginError with the reason only.
LoadedPlugin read_manifest(int fd, const std::filesystem::path& path);

// An attempt to load a file, with what is known of the file so far.
struct Attempt {
    explicit Attempt(const std::filesystem::path& file);

    LoadedPlugin info;
    std::optional<uid_t> owner;
    mode_t mode = 0;
};

// Whether $CATENA_PLUGIN_AUDIT names a file; its lines contain hashes.
bool audit_has_file();
// Writes a line to the host's log and to that file. verdict: loaded, refused, or a word for what skipped it.
void audit(std::string_view verdict, const Attempt& attempt, std::string_view reason);
// Appends to the file only.
void audit_to_file(std::string_view verdict, const Attempt& attempt, std::string_view reason);

// ---- locks: which plugins may be loaded, by id, version and hash

// A line "ID VERSION SHA256" of a lock file, where '#' begins a comment. An id may have several lines.
struct LockLine {
    int number;
    std::string id, version, sha256;
};
// Throws PluginError; if a line is invalid, the message is "lock FILE, line N: ...".
std::vector<LockLine> read_lock(const std::filesystem::path& file);
// Throws PluginError unless a line of the lock has the plugin's id, version and hash.
void check_lock(const std::filesystem::path& file, const std::vector<LockLine>& lines,
                const LoadedPlugin& plugin);

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
    // Returns off without a lock setting and lock file. Throws PluginError if $CATENA_PLUGIN_LOCK is invalid.
    PluginLockMode mode(const PluginFolders& folders) const;
    // Throws PluginError if a lock does not allow the plugin or cannot be read. In warn mode, returns
    // the messages instead, each only once.
    std::vector<std::string> check(const LoadedPlugin& plugin, const PluginFolders& folders);

private:
    struct Setting {
        PluginLockMode mode;
        std::filesystem::path file;  // "": the lock files in the plugin's folders
    };
    // Returns the setting of the program, else of the environment, else nullopt.
    std::optional<Setting> setting() const;
    // Returns the lock files that apply to a plugin in these folders.
    std::vector<std::filesystem::path> files_for(const PluginFolders& folders) const;

    std::optional<Setting> program_;
    std::map<std::filesystem::path, std::vector<LockLine>> read_;  // the lock files so far
    std::set<std::string> warned_;
};

// Returns the text as one word: spaces, control characters, # and % become %XX; an empty text becomes "-".
std::string as_word(std::string_view text);

}  // namespace catena
