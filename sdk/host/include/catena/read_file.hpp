// Reads files that may be of another kind than the program expects.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace catena {

// Describes a file for messages: "a folder", "an ONNX model; ...", with a way to convert files of
// other programs; "none: there is no such file"; "" if unknown. Looks at the first bytes.
std::string file_kind(const std::filesystem::path& file);

// Throws DataError, "[where] FILE: expected EXPECTED, got ...", unless the file can be opened and
// is a regular one. For a missing file, EXPECTED is "a file". Pipes and devices, such as /dev/zero,
// may have no end.
void require_regular(std::string_view where, const std::filesystem::path& file,
                     std::string_view expected);

// Returns the bytes of a regular file. Throws DataError, also for a file of more than `most` bytes.
std::string read_regular(std::string_view where, const std::filesystem::path& file,
                         std::string_view expected, std::uint64_t most = std::uint64_t{1} << 31);

}  // namespace catena
