// Where plugins are looked for when the program does not say.
#pragma once

#include <catena/loader/plugins.hpp>

#include <vector>

namespace catena {

// In order of precedence, never the current directory. Invalid entries of the environment are added
// to `refused`.
std::vector<SearchedFolder> usual_folders(std::vector<RefusedPlugin>& refused);
// The files *.catena of a folder, sorted by name.
std::vector<std::filesystem::path> plugin_files(const SearchedFolder& folder,
                                                std::vector<RefusedPlugin>& refused);

}  // namespace catena
