// A file that nobody but root and the user can change, opened once.
#pragma once

#include "descriptor.hpp"

#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <string>

namespace catena {

// Who may write to a file: nobody but its owner, or also a group in which nobody else is.
enum class Writers { owner, private_group };

// Opened folder by folder from the root, so that what was checked is what is read. Refused are a
// file, folder or link that belongs to neither root nor the user, and folders on the way that others
// can write to, or a group in which somebody else is. A sticky folder above the file's own is no
// harm; nor is one above the core's library: who can write there can replace the core.
class TrustedFile {
public:
    // Throws PluginError with the bare reason.
    explicit TrustedFile(const std::filesystem::path& path, Writers writers);

    int fd() const { return fd_.get(); }
    // Without links: what the rest of the process has to use.
    const std::filesystem::path& path() const { return path_; }
    uid_t owner() const { return status_.st_uid; }
    mode_t mode() const { return status_.st_mode & 07777; }
    // Throws PluginError if the path names another file now, or if this one was touched.
    void check_unchanged() const;
    // Exactly the bytes read now, in memory that nobody can write to any more.
    Descriptor sealed_copy() const;

private:
    std::filesystem::path path_;
    Descriptor fd_;
    struct stat status_ {};
};

// Of all bytes of a file, from its begin, in hexadecimal. Throws PluginError with the bare reason.
std::string sha256_of(int fd);
bool is_there(const std::filesystem::path& file);
// "Permission denied" and the like.
std::string system_error();

}  // namespace catena
