// What plugins say of themselves before any of their code runs.
#include "inspect.hpp"

#include <catena/abi/plugin.h>
#include <catena/core/error.hpp>
#include <catena/data_error.hpp>
#include <catena/loader/plugins.hpp>

#include <elf_image.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace catena::inspect {
namespace {

template <std::size_t N>
std::string field(const char (&text)[N]) {
    return std::string(text, strnlen(text, N));
}

Json split(const std::string& list) {
    Json words = Json::array();
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');) words.push_back(word);
    return words;
}

// The manifest in the file; zero where an older plugin's ends.
catena_manifest manifest_of(const ElfImage& file) {
    const ElfImage::Section* const section = file.section(CATENA_MANIFEST_SECTION);
    if (!section || section->header.sh_type == SHT_NOBITS)
        throw Error("no catena plugin: it has no manifest (section .catena)");
    catena_manifest m = {};
    const auto bytes = file.contents(*section);
    std::memcpy(&m, bytes.data(), std::min(bytes.size(), sizeof(m)));
    if (std::memcmp(m.magic, CATENA_MANIFEST_MAGIC, sizeof(m.magic)) != 0)
        throw Error("its manifest does not begin with CATENAPL");
    return m;
}

std::vector<std::string> exports(const ElfImage& file) {
    std::vector<std::string> names;
    for (const ElfImage::Symbol& symbol : file.symbols(SHT_DYNSYM))
        if (symbol.defined && !symbol.absolute && symbol.binding != STB_LOCAL)
            names.push_back(symbol.name);
    std::ranges::sort(names);
    return names;
}

// "sha256", and "refused": why this catena would not load it, or null.
Json judgement(const std::filesystem::path& file) {
    Json result{{"sha256", ""}, {"refused", nullptr}};
    try {
        result["sha256"] = plugin_sha256(file);  // refuses the files of strangers
        read_manifest(file);
    } catch (const Error& error) {
        const std::string text = error.what(), prefix = file.string() + ": ";
        result["refused"] = text.starts_with(prefix) ? text.substr(prefix.size()) : text;
    }
    return result;
}

Json manifest(const std::filesystem::path& file) {
    const ElfImage library(file);
    const catena_manifest m = manifest_of(library);
    Json result{{"file", file.string()}};
    Json abi{{"major", m.abi_major}};
    // What another major writes behind its number is not ours to read.
    if (m.abi_major == CATENA_ABI_MAJOR) {
        result.update({{"id", field(m.id)},
                       {"version", field(m.version)},
                       {"vendor", field(m.vendor)},
                       {"license", field(m.license)},
                       {"devices", split(field(m.devices))}});
        abi.update({{"built", m.abi_minor_built}, {"needed", m.abi_minor_needed}});
    }
    result.update({{"abi", abi},
                   {"size", library.size()},
                   {"machine", library.machine()},
                   {"build_id", library.build_id()},
                   {"needs", library.strings(DT_NEEDED)},
                   {"exports", exports(library)}});
    result.update(judgement(file));
    return result;
}

}  // namespace

Json manifests(const std::vector<std::filesystem::path>& files) {
    Json list = Json::array();
    for (const auto& file : files) {
        try {
            list.push_back(naming_file("manifest", file, [&] { return manifest(file); }));
        } catch (const MemoryError&) {
            throw;  // says nothing about the file
        } catch (const Error& error) {
            list.push_back({{"file", file.string()}, {"error", error.what()}});
        }
    }
    return {{"manifests", list}};
}

}  // namespace catena::inspect
