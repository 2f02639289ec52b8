// What a plugin needs loaded before it, found and checked before any of it runs.
#pragma once

#include "loader/trusted_file.hpp"

#include <catena/core/error.hpp>

#include <elf_file.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace catena {

struct NeededLibrary {
    std::string name;                      // as it is asked for
    std::optional<TrustedFile> file = {};  // none: the system's, or loaded already
};

// To any depth, each library after those that it needs itself. A file is one that lies in the
// folders that the plugin, or a library that it brings, names; it is held to what a plugin is held
// to. Throws PluginError with the bare reason.
std::vector<NeededLibrary> needed_libraries(const ElfFile& plugin,
                                            const std::filesystem::path& path);

// "its library FILE: REASON"
[[noreturn]] void refuse_library(const std::filesystem::path& file, const PluginError& reason);

}  // namespace catena
