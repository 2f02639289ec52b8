// The usual places, and manifests: no code of a plugin runs.
#include "plugin_file.hpp"

#include "elf_file.hpp"
#include "trusted_file.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <abi_sizes.hpp>
#include <ids.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace catena {
namespace {

namespace fs = std::filesystem;

template <std::size_t N>
std::string field(const char (&text)[N]) {
    return std::string(text, strnlen(text, N));
}

catena_manifest read_raw_manifest(const ElfFile& file) {
    const auto section = file.section(CATENA_MANIFEST_SECTION);
    if (!section) throw PluginError("no catena plugin: it has no manifest (section .catena)");
    const auto bytes = file.contents(*section);
    if (bytes.size() < size_1_0<catena_manifest>) {
        throw PluginError(fmt::format("its manifest: expected at least {} bytes, got {}",
                                      size_1_0<catena_manifest>, bytes.size()));
    }
    catena_manifest manifest{};  // an older plugin's may be shorter than this host's
    std::memcpy(&manifest, bytes.data(), std::min(bytes.size(), sizeof(manifest)));
    if (std::memcmp(manifest.magic, CATENA_MANIFEST_MAGIC, sizeof(manifest.magic)) != 0) {
        throw PluginError("its manifest does not begin with CATENAPL");
    }
    return manifest;
}

LoadedPlugin check_manifest(const catena_manifest& m, const fs::path& path) {
    if (m.abi_major != CATENA_ABI_MAJOR) {
        throw PluginError(
            fmt::format("ABI major: expected {}, got {}", CATENA_ABI_MAJOR, m.abi_major));
    }
    if (m.abi_minor_needed > CATENA_ABI_MINOR) {
        throw PluginError(fmt::format("ABI minor: it needs {}.{}, this host has {}.{}", m.abi_major,
                                      m.abi_minor_needed, CATENA_ABI_MAJOR, CATENA_ABI_MINOR));
    }
    if (m.struct_size < size_1_0<catena_manifest>) {
        throw PluginError(fmt::format("its manifest: struct_size: expected at least {}, got {}",
                                      size_1_0<catena_manifest>, m.struct_size));
    }
    LoadedPlugin info{
        field(m.id), field(m.version), field(m.vendor), field(m.devices), path, 0, 0, 0};
    if (info.id.empty()) throw PluginError("its manifest has no id");
    if (!is_id(info.id))
        throw PluginError(fmt::format("its manifest: id: expected {}, got '{}'", id_rule, info.id));
    return info;
}

}  // namespace

LoadedPlugin read_manifest(int fd, const fs::path& path) {
    return check_manifest(read_raw_manifest(ElfFile(fd)), path);
}

// secure_getenv(): a setuid program must not follow the environment of the user who starts it.
std::vector<SearchedFolder> usual_folders(std::vector<RefusedPlugin>& refused) {
    std::vector<SearchedFolder> folders;
    for (const std::string& word : words_of(secure_getenv("CATENA_PLUGIN_PATH"))) {
        const fs::path folder(word);
        if (folder.is_absolute()) {
            folders.push_back({folder, "CATENA_PLUGIN_PATH"});
        } else if (!word.empty()) {
            refused.push_back({folder, "CATENA_PLUGIN_PATH: expected absolute folders"});
        }
    }
    const char* data = secure_getenv("XDG_DATA_HOME");
    const char* home = secure_getenv("HOME");
    fs::path user = data ? data : "";
    if (!user.is_absolute()) user = home && *home ? fs::path(home) / ".local/share" : fs::path();
    if (user.is_absolute()) folders.push_back({user / "catena" / "plugins", "user"});
    if (!own_folder().empty()) folders.push_back({own_folder() / "catena" / "plugins", "system"});
    return folders;
}

std::vector<RefusedPlugin> add_plugin_files(const fs::path& folder, std::vector<fs::path>& files) {
    const auto before = static_cast<std::ptrdiff_t>(files.size());
    std::error_code error;
    for (fs::directory_iterator item(folder, error), end; !error && item != end;
         item.increment(error))
        if (item->path().extension() == ".catena") files.push_back(item->path());
    std::sort(files.begin() + before, files.end());
    if (!error || error == std::errc::no_such_file_or_directory) return {};
    return {{folder, fmt::format("the folder cannot be read: {}", error.message())}};
}

}  // namespace catena
