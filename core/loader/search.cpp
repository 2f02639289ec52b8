// The usual places of plugins.
#include "search.hpp"

#include "trusted_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace catena {

namespace fs = std::filesystem;

// secure_getenv(): a setuid program must not follow the environment of the user who starts it.
std::vector<SearchedFolder> usual_folders(std::vector<RefusedPlugin>& refused) {
    std::vector<SearchedFolder> folders;
    const char* list = secure_getenv("CATENA_PLUGIN_PATH");
    for (std::string_view rest = list ? list : ""; !rest.empty();) {
        const std::string_view word = rest.substr(0, rest.find(':'));
        const fs::path folder(word);
        if (folder.is_absolute()) {
            folders.push_back({folder, "CATENA_PLUGIN_PATH"});
        } else if (!word.empty()) {
            refused.push_back({folder, "CATENA_PLUGIN_PATH: expected absolute folders"});
        }
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
    const char* data = secure_getenv("XDG_DATA_HOME");
    const char* home = secure_getenv("HOME");
    fs::path user = data ? data : "";
    if (!user.is_absolute()) user = home && *home ? fs::path(home) / ".local/share" : fs::path();
    if (user.is_absolute()) folders.push_back({user / "catena" / "plugins", "user"});
    if (!own_folder().empty()) folders.push_back({own_folder() / "catena" / "plugins", "system"});
    return folders;
}

std::vector<fs::path> plugin_files(const SearchedFolder& folder,
                                   std::vector<RefusedPlugin>& refused) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator item(folder.path, error), end; !error && item != end;
         item.increment(error)) {
        if (item->path().extension() == ".catena") files.push_back(item->path());
    }
    if (error && error != std::errc::no_such_file_or_directory) {
        refused.push_back(
            {folder.path, fmt::format("the folder cannot be read: {}", error.message())});
    }
    std::ranges::sort(files);
    return files;
}

}  // namespace catena
