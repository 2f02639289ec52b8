// Finds plugin files, and reads their manifests.
#pragma once

#include <catena/abi/plugin.h>
#include <catena/loader/plugins.hpp>

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

}  // namespace catena
