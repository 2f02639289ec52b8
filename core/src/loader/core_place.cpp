// Finds the core's own file in /proc/self/maps.
#include "loader/core_place.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace catena {
namespace {

namespace fs = std::filesystem;

void here() {}

std::optional<uid_t> owner_of(const fs::path& file, std::optional<ino_t> inode) {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0 || (inode && *inode != status.st_ino)) return std::nullopt;
    return status.st_uid;
}

}  // namespace

bool CorePlace::is_below(const fs::path& above) const {
    const auto [at, end] = std::mismatch(above.begin(), above.end(), folder.begin(), folder.end());
    return at == above.end();
}

CorePlace find_place(std::uintptr_t address, std::istream& maps, const fs::path& loaders_name) {
    for (std::string line; std::getline(maps, line);) {
        // 7f0012000-7f0034000 r-xp 00001000 08:01 1234        /a/name of /spaces (deleted)
        std::istringstream words(line);
        std::uintptr_t from = 0, to = 0;
        std::string mode, offset, device, name;
        ino_t inode = 0;
        words >> std::hex >> from&& words.ignore() >> to;
        if (address < from || address >= to) continue;
        words >> mode >> offset >> device >> std::dec >> inode >> std::ws;
        if (!std::getline(words, name) || name[0] != '/') break;
        // The name of a file that was deleted has a word more; its folder has not.
        return {fs::path(name).parent_path(), owner_of(name, inode)};
    }
    std::error_code error;
    const fs::path file = fs::canonical(loaders_name, error);
    if (error || !loaders_name.is_absolute()) return {};
    return {file.parent_path(), owner_of(file, std::nullopt)};
}

const CorePlace& core_place() {
    static const CorePlace place = [] {
        const auto address = reinterpret_cast<std::uintptr_t>(&here);
        std::ifstream maps("/proc/self/maps");
        Dl_info info{};
        const bool named = dladdr(reinterpret_cast<const void*>(address), &info) && info.dli_fname;
        return find_place(address, maps, named ? info.dli_fname : "");
    }();
    return place;
}

}  // namespace catena
