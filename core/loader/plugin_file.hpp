// Plugin files: where they are, what their manifests say, and an audit line for each.
#pragma once

#include <catena/loader/plugins.hpp>

#include <sys/types.h>

#include <optional>
#include <string_view>
#include <vector>

namespace catena {

// The usual folders in order of precedence, never the current directory. Invalid entries of the
// environment are added to `refused`.
std::vector<SearchedFolder> usual_folders(std::vector<RefusedPlugin>& refused);
// Adds the files *.catena of a folder, sorted by name. Returns the folder if it cannot be read.
std::vector<RefusedPlugin> add_plugin_files(const std::filesystem::path& folder,
                                            std::vector<std::filesystem::path>& files);

// The manifest of an open file. Throws PluginError with the bare reason.
LoadedPlugin read_manifest(int fd, const std::filesystem::path& path);

// What is known of a file so far.
struct Attempt {
    explicit Attempt(const std::filesystem::path& file);

    LoadedPlugin info;
    std::optional<uid_t> owner;
    mode_t mode = 0;
};

// True if $CATENA_PLUGIN_AUDIT names a file, whose lines have hashes.
bool audit_has_file();
// Writes to the host's log, and appends to that file. The verdict is one word: loaded, refused or why the
// file was skipped; reason may be "".
void audit(std::string_view verdict, const Attempt& attempt, std::string_view reason);
// Appends to the file only.
void audit_to_file(std::string_view verdict, const Attempt& attempt, std::string_view reason);

}  // namespace catena
