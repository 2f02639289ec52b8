// Files that nobody but root and the user can change: core/doc/threat-model.md.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>

namespace catena {

// A file descriptor that is closed with its owner.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}
    Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~Descriptor();
    explicit operator bool() const { return fd_ >= 0; }
    int get() const { return fd_; }

private:
    int fd_ = -1;
};

// Who may write to a file: its owner alone, or also a group that has no other members.
enum class Writers { owner, private_group };

// An open file. The constructor refuses a file, folder or link that belongs to neither root nor the
// user, and every folder on the path, links included, that others can write to. Sticky folders are
// accepted above the file's own folder. The folders above catena's libraries are not checked: whoever
// can write there can replace catena itself.
class TrustedFile {
public:
    // Throws PluginError with the bare reason.
    TrustedFile(const std::filesystem::path& path, Writers writers);

    int fd() const { return fd_.get(); }
    const std::filesystem::path& path() const { return path_; }  // without links
    uid_t owner() const { return status_.st_uid; }
    mode_t mode() const { return status_.st_mode & 07777; }
    // Throws PluginError if the path names another file now, or if the file was written to. An upgrade
    // may replace plugins while a program starts.
    void check_unchanged() const;

private:
    std::filesystem::path path_;
    Descriptor fd_;
    struct stat status_ {};
};

// The folder of catena's libraries, without links; "" if it is unknown.
const std::filesystem::path& own_folder();
// SHA-256 of a file, in hexadecimal. Throws PluginError with the bare reason.
std::string sha256_of(int fd);
// The text of errno, such as "Permission denied".
std::string system_error();

}  // namespace catena
