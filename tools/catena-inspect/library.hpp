// What a shared library says of itself, read from the file: none of its code runs.
#pragma once

#include <catena/abi/plugin.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace catena::inspect {

struct Library {
    std::uint64_t size = 0;            // of the file
    std::string machine;               // "x86-64"
    std::string build_id;              // hexadecimal; empty if it has none
    std::vector<std::string> needed;   // libraries that the system loads with it
    std::vector<std::string> exports;  // symbols, sorted
    catena_manifest manifest = {};     // zero where an older plugin's ends
};
// Throws Error with the bare reason if the file is no plugin.
Library read_library(const std::filesystem::path& file);

}  // namespace catena::inspect
