// Reads and checks manifests.
#pragma once

#include <catena/abi/plugin.h>
#include <catena/loader/plugins.hpp>

#include <elf_file.hpp>

namespace catena {

// Both throw PluginError with the bare reason.
catena_manifest read_raw_manifest(const ElfFile& file);
LoadedPlugin check_manifest(const catena_manifest& manifest, const std::filesystem::path& file);

}  // namespace catena
