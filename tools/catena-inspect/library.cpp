// What a plugin's file says, of what any shared library's says.
#include "library.hpp"

#include <catena/core/error.hpp>

#include <elf_image.hpp>

#include <algorithm>
#include <cstring>

namespace catena::inspect {
namespace {

std::vector<std::string> exports(const ElfImage& file) {
    std::vector<std::string> names;
    for (ElfImage::Symbol& symbol : file.symbols(SHT_DYNSYM)) {
        if (symbol.defined && !symbol.absolute && symbol.binding != STB_LOCAL)
            names.push_back(std::move(symbol.name));
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace

Library read_library(const std::filesystem::path& path) {
    const ElfImage file(path);
    const ElfImage::Section* const section = file.section(CATENA_MANIFEST_SECTION);
    if (!section || section->header.sh_type == SHT_NOBITS) {
        throw Error("no catena plugin: it has no manifest (section .catena)");
    }
    Library library{
        file.size(), file.machine(), file.build_id(), file.strings(DT_NEEDED), exports(file), {}};
    catena_manifest& m = library.manifest;
    const auto bytes = file.contents(*section);
    std::memcpy(&m, bytes.data(), std::min(bytes.size(), sizeof(m)));
    if (std::memcmp(m.magic, CATENA_MANIFEST_MAGIC, sizeof(m.magic)) != 0) {
        throw Error("its manifest does not begin with CATENAPL");
    }
    return library;
}

}  // namespace catena::inspect
