// Where plugins are looked for when the program does not say.
#pragma once

#include <catena/core/plugins.hpp>

#include <vector>

namespace catena {

// In order of precedence; what is odd in the environment goes to `refused`. Never the current
// directory.
std::vector<SearchedFolder> usual_folders(std::vector<RefusedPlugin>& refused);
// *.catena of a folder, by name.
std::vector<std::filesystem::path> plugin_files(const SearchedFolder& folder,
                                                std::vector<RefusedPlugin>& refused);

}  // namespace catena
