// Files that are there whole, or as they were before.
#pragma once

#include <filesystem>
#include <string_view>

namespace catena {

// Writes a temporary file beside it, flushes that to the disk and renames it: whatever happens, the file
// has its old or its new content. A link is replaced, not followed, and the file's mode is a new file's.
// Throws DataError.
void write_file(const std::filesystem::path& file, std::string_view content);

// Throws DataError if a file of this name could not be written: to ask before long work, not after it.
void require_writable(const std::filesystem::path& file);

}  // namespace catena
