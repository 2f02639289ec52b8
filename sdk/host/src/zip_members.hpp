// Where the members of a zip file are, as its directory says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace catena {

struct ZipMember {
    std::string name;          // its bytes in the directory
    std::uint64_t packed = 0;  // bytes of its data in the file
    std::uint64_t begin = 0;   // of its header
    std::uint64_t end = 0;     // of its data
};

// The members in the order of the directory. Throws DataError if the directory or a header is damaged,
// or a member does not lie before the directory.
std::vector<ZipMember> zip_members(const std::filesystem::path& file);

}  // namespace catena
