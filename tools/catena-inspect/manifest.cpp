// What plugins say of themselves before any of their code runs.
#include "inspect.hpp"

#include <catena/core/error.hpp>
#include <catena/data_error.hpp>

#include <elf_file.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace catena::inspect {
namespace {

Json split(const std::string& list) {
    Json words = Json::array();
    std::istringstream in(list);
    for (std::string word; std::getline(in, word, ',');) words.push_back(word);
    return words;
}

std::vector<std::string> exports(const ElfFile& file) {
    std::vector<std::string> names;
    for (const ElfFile::Symbol& symbol : file.symbols(SHT_DYNSYM))
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
    const ElfFile library(file);
    const catena_manifest m = manifest_of(library);
    Json result{{"file", file.string()}};
    Json abi{{"major", m.abi_major}};
    // What another major writes behind its number is not ours to read.
    if (m.abi_major == CATENA_ABI_MAJOR) {
        result.update({{"id", field_text(m.id)},
                       {"version", field_text(m.version)},
                       {"vendor", field_text(m.vendor)},
                       {"license", field_text(m.license)},
                       {"devices", split(field_text(m.devices))}});
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
