// Reads a plugin's manifest from the file: no code of the plugin runs.
#include "manifest.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <abi_sizes.hpp>
#include <ids.hpp>

#include <algorithm>
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
    if (!is_id(info.id))
        throw PluginError(fmt::format("its manifest: id: expected {}, got '{}'", id_rule, info.id));
    return info;
}

LoadedPlugin read_manifest(const std::filesystem::path& file) {
    try {
        return check_manifest(read_raw_manifest(ElfFile(file)), file);
    } catch (const PluginError& error) {
        throw PluginError(fmt::format("{}: {}", file.string(), error.what()));
    }
}

}  // namespace catena
