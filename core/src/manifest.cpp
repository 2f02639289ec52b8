// Reads a plugin's manifest from the file: no code of the plugin runs.
#include "abi_sizes.hpp"
#include "elf_file.hpp"
#include "loader.hpp"
#include "trusted_file.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace catena {
namespace {

template <std::size_t N>
std::string field(const char (&text)[N]) {
    return std::string(text, strnlen(text, N));
}

}  // namespace

catena_manifest read_raw_manifest(const ElfFile& file) {
    const auto section = file.section(CATENA_MANIFEST_SECTION);
    if (!section) throw PluginError("no catena plugin: it has no manifest (section .catena)");
    if (section->sh_size < size_1_0<catena_manifest>) {
        throw PluginError(fmt::format("its manifest: expected at least {} bytes, got {}",
                                      size_1_0<catena_manifest>, section->sh_size));
    }
    catena_manifest manifest{};  // an older plugin's may be shorter than this host's
    file.read(section->sh_offset, &manifest,
              std::min<std::uint64_t>(section->sh_size, sizeof(manifest)));
    if (std::memcmp(manifest.magic, CATENA_MANIFEST_MAGIC, sizeof(manifest.magic)) != 0) {
        throw PluginError("its manifest does not begin with CATENAPL");
    }
    file.check_segments();
    return manifest;
}

LoadedPlugin check_manifest(const catena_manifest& m, const std::filesystem::path& path) {
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
    return info;
}

LoadedPlugin read_manifest(const std::filesystem::path& file) {
    try {
        struct stat status {};
        const Descriptor fd(open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
        if (!fd && errno == ENOENT) throw PluginError("there is no such file");
        if (!fd) throw PluginError(fmt::format("the file cannot be opened: {}", system_error()));
        if (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
            throw PluginError("it is no regular file");
        }
        return check_manifest(read_raw_manifest(ElfFile(fd.get())), file);
    } catch (const PluginError& error) {
        throw PluginError(fmt::format("{}: {}", file.string(), error.what()));
    }
}

}  // namespace catena
