// AtomicFile: writes files that have either the old or the new content at any moment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace catena {

//     AtomicFile atomic(file);
//     atomic.write(content);
//     atomic.commit();
//
// Writes a temporary file in the same folder, flushes it to disk and renames it to `file`. Without
// commit() the temporary file is removed and `file` does not change.
//
// - The temporary file is created under a random name, and never opened through a symbolic link.
// - `file` must be a regular file, or must not exist. A symbolic link is refused, not followed. (Links
//   in the names of the folders above it are followed.)
// - An existing file keeps its permission bits, and its owner and group if the process may set
// them; if it may not set the group, the group gets at most the permissions of others. Hard links,
// access lists and extended attributes are not kept. The umask determines the mode of a new file.
// - In a sticky folder, such as /tmp, the mode and owner of another user's file are not copied.
//
// All functions throw DataError, "[save] FILE: expected ..., got ...". An object is not
// thread-safe; several objects may write the same file concurrently, and the last commit() wins.
class AtomicFile {
public:
    // most: the maximum permission bits of the file.
    explicit AtomicFile(std::filesystem::path file, unsigned most = 0777);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile();

    // The temporary file, for programs that need a path. It exists.
    const std::filesystem::path& temporary() const noexcept { return temporary_; }
    // Appends bytes.
    void write(std::string_view bytes);
    // Its descriptor, open for writing.
    int fd() const noexcept { return fd_; }
    void commit();

private:
    std::filesystem::path file_;
    std::filesystem::path temporary_;
    unsigned most_;
    bool keeps_ = false;  // the existing file's mode, owner and group:
    unsigned mode_ = 0;
    std::uint32_t owner_ = 0, group_ = 0;
    int fd_ = -1;
};

// Writes a file with AtomicFile.
void write_file(const std::filesystem::path& file, std::string_view content);

// Throws DataError if AtomicFile could not write a file with this name. Call it before long work.
void require_writable(const std::filesystem::path& file);

}  // namespace catena
