// Files that nobody but root and the user can change: core/doc/threat-model.md.
#pragma once

#include <descriptor.hpp>

#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace catena {

// Who may write to a file: its owner alone, or also a group that has no other members.
enum class Writers { owner, private_group };

// An open file. The constructor refuses a file, folder or link that belongs to neither root nor the
// user, and every folder on the path, links included, that others can write to. Sticky folders are
// accepted above the file's own folder. The folders above catena's libraries are not checked: a
// user who can write there can replace catena itself.
class TrustedFile {
public:
    // Throws PluginError with the bare reason.
    TrustedFile(const std::filesystem::path& path, Writers writers);

    int fd() const { return file_.get(); }
    const std::filesystem::path& path() const { return path_; }  // without links
    // Throws PluginError if the path names another file now, or if the file was written to. An upgrade
    // may replace plugins while a program starts.
    void check_unchanged() const;

private:
    std::filesystem::path path_;
    Descriptor file_;
    struct stat status_ {};
};

// The folder of catena's libraries, without links; "" if it is unknown.
std::filesystem::path own_folder();
// SHA-256 of a file, in hexadecimal. Throws PluginError with the bare reason.
std::string sha256_of(int fd);

}  // namespace catena
