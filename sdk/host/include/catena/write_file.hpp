// Files that have their old or their new content at any moment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace catena {

//     AtomicFile atomic(file);
//     atomic.write(content);
//     atomic.commit();
//
// Writes a temporary file in the same folder, flushes it to the disk and renames it to `file`.
// Without commit() the temporary file is removed, and `file` stays as it was.
//
// - The temporary file is created under a random name, and never opened through a symbolic link.
// - `file` must be a regular file, or must not exist. A symbolic link is refused, not followed.
//   (Links in the names of the folders above it are followed.)
// - An existing file keeps its permission bits, and its owner and group where the process may set
//   them; where it may not set the group, the group gets no more than others. Hard links, access
//   lists and extended attributes are not kept. A new file has the mode that the umask leaves.
// - In a sticky folder, such as /tmp, mode and owner of another user's file are not taken over.
//
// All functions throw DataError, "[save] FILE: expected ..., got ...". One thread may use an object
// at a time; several objects for one file may be used at once, and the last commit() wins.
class AtomicFile {
public:
    // most: the permission bits that the file may have at most.
    explicit AtomicFile(std::filesystem::path file, unsigned most = 0777);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile();

    // The temporary file, for programs that write to a name. It exists.
    const std::filesystem::path& temporary() const noexcept { return temporary_; }
    // Appends to it.
    void write(std::string_view bytes);
    // Its descriptor, open for writing.
    int fd() const noexcept { return fd_; }
    void commit();

private:
    std::filesystem::path file_;
    std::filesystem::path temporary_;
    unsigned most_;
    bool keeps_ = false;  // the mode, owner and group of the file that is there:
    unsigned mode_ = 0;
    std::uint32_t owner_ = 0, group_ = 0;
    int fd_ = -1;
};

// Writes a file by AtomicFile.
void write_file(const std::filesystem::path& file, std::string_view content);

// Throws DataError if AtomicFile could not write a file of this name. To be called before long
// work.
void require_writable(const std::filesystem::path& file);

}  // namespace catena
