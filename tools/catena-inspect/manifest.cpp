// What plugins say of themselves before any of their code runs.
#include "inspect.hpp"
#include "library.hpp"

#include <catena/core/error.hpp>
#include <catena/data_error.hpp>
#include <catena/loader/plugins.hpp>

#include <nlohmann/json.hpp>

#include <cstring>

namespace catena::inspect {
namespace {

template <std::size_t N>
std::string field(const char (&text)[N]) {
    return std::string(text, strnlen(text, N));
}

Json split(std::string_view list) {
    Json words = Json::array();
    while (!list.empty()) {
        const auto comma = list.find(',');
        words.push_back(std::string(list.substr(0, comma)));
        list.remove_prefix(comma == list.npos ? list.size() : comma + 1);
    }
    return words;
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
    const Library library = read_library(file);
    const catena_manifest& m = library.manifest;
    Json result{{"file", file.string()}};
    // What another major writes behind its number is not ours to read.
    if (m.abi_major == CATENA_ABI_MAJOR) {
        result.update({{"id", field(m.id)},
                       {"version", field(m.version)},
                       {"vendor", field(m.vendor)},
                       {"license", field(m.license)},
                       {"devices", split(field(m.devices))}});
    }
    result["abi"] = {{"major", m.abi_major}};
    if (m.abi_major == CATENA_ABI_MAJOR) {
        result["abi"].update({{"built", m.abi_minor_built}, {"needed", m.abi_minor_needed}});
    }
    result.update({{"size", library.size},
                   {"machine", library.machine},
                   {"build_id", library.build_id},
                   {"needs", library.needed},
                   {"exports", library.exports}});
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
