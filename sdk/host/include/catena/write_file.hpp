// Writes files so that at any moment a file has either its old or its new content.
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
// - An existing file keeps its permission bits, and its owner and group if the process may set
//   them. If the process may not set the group, the group gets no more permissions than others.
//   Hard links, access lists and extended attributes are not kept. The umask determines the mode of
//   a new file.
// - In a sticky folder, such as /tmp, mode and owner of another user's file are not taken over.
//
// All functions throw DataError, "[save] FILE: expected ..., got ...". One thread may use an object
// at a time; several objects for one file may be used at once, and the last commit() wins.
class AtomicFile {
public:
    // The file gets only permission bits that are in `most`.
    explicit AtomicFile(std::filesystem::path file, unsigned most = 0777);
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;
    ~AtomicFile();

    // The path of the temporary file, for code that writes to a path. The file exists.
    const std::filesystem::path& temporary() const noexcept { return temporary_; }
    // Appends to the temporary file.
    void write(std::string_view bytes);
    // The descriptor of the temporary file, open for writing.
    int fd() const noexcept { return fd_; }
    void commit();

private:
    std::filesystem::path file_;
    std::filesystem::path temporary_;
    unsigned most_;
    bool keeps_ = false;  // true: keep the mode, owner and group of the existing file:
    unsigned mode_ = 0;
    std::uint32_t owner_ = 0, group_ = 0;
    int fd_ = -1;
};

// Writes a file by AtomicFile.
void write_file(const std::filesystem::path& file, std::string_view content);

// Throws DataError if AtomicFile could not write a file with this name. Call it before long work.
void require_writable(const std::filesystem::path& file);

}  // namespace catena
