// Checks owners, modes and access lists along a path, and hashes files.
#include "plugin_file.hpp"

#include "device/hooks.hpp"

#include <boost/dll/runtime_symbol_info.hpp>

#include <acl/libacl.h>
#include <fcntl.h>
#include <grp.h>
#include <nettle/sha2.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <list>
#include <ranges>

namespace catena {
namespace {

namespace fs = std::filesystem;
using Uids = std::vector<uid_t>;

// This library. Found at the start, because the name may be relative to the directory that is current
// then.
const fs::path own_file = [] {
    std::error_code error;
    return fs::canonical(boost::dll::this_line_location(error), error);
}();

// A user who can write to a folder above this library can replace the library itself.
bool is_above_this(const fs::path& folder) {
    return std::mismatch(folder.begin(), folder.end(), own_file.begin(), own_file.end()).first ==
           folder.end();
}

// Root, the user, the owner of this library, and the uids of $CATENA_PLUGIN_OWNERS ("1001:1002").
Uids trusted_owners() {
    Uids owners{0, geteuid()};
    struct stat status {};
    if (stat(own_file.c_str(), &status) == 0) owners.push_back(status.st_uid);
    const char* more = secure_getenv("CATENA_PLUGIN_OWNERS");
    std::string_view list = more ? more : "";
    if (list.ends_with(':')) list.remove_suffix(1);
    for (const auto part : std::views::split(list, ':')) {
        const std::string_view word(part.begin(), part.end());
        uid_t uid = 0;
        const auto [stop, error] = std::from_chars(word.begin(), word.end(), uid);
        if (error != std::errc() || stop != word.end()) {
            raise<PluginError>("CATENA_PLUGIN_OWNERS: expected uids with ':' between, got '{}'",
                               more);
        }
        owners.push_back(uid);
    }
    return owners;
}

// A group's list of members leaves out the users whose primary group it is.
bool is_primary_group_of_others(uid_t user, gid_t group) {
    std::array<char, 16384> texts;
    passwd entry, *other = nullptr;
    int error = 0;
    bool found = false;
    setpwent();
    while ((error = getpwent_r(&entry, texts.data(), texts.size(), &other)) == 0 && other)
        found = found || (other->pw_gid == group && other->pw_uid != user);
    endpwent();
    return found || (error != 0 && error != ENOENT);  // ENOENT: that was the last one
}

// Whether the group has the user's name and no other member. Systems that make such a group for each
// account use umask 002, and the group can write to the user's folders.
bool is_private_group_of(uid_t user, gid_t group) {
    std::array<char, 16384> user_texts, group_texts;
    passwd user_entry, *u = nullptr;
    ::group group_entry, *g = nullptr;
    if (getpwuid_r(user, &user_entry, user_texts.data(), user_texts.size(), &u) != 0 || !u ||
        getgrgid_r(group, &group_entry, group_texts.data(), group_texts.size(), &g) != 0 || !g ||
        u->pw_gid != group || std::strcmp(u->pw_name, g->gr_name) != 0)
        return false;
    for (char** member = g->gr_mem; *member; ++member)
        if (std::strcmp(*member, u->pw_name) != 0) return false;
    return !is_primary_group_of_others(user, group);
}

// what: "file", "folder" or "link".
void check_owner(const char* what, const fs::path& path, const struct stat& status) {
    if (std::ranges::count(trusted_owners(), status.st_uid) > 0) return;
    raise<PluginError>(
        "owner of the {} {}: expected root or this user (uid {}), got uid {}; if that owner is "
        "trusted: CATENA_PLUGIN_OWNERS={}",
        what, path.string(), geteuid(), status.st_uid, status.st_uid);
}

void check_mode(const char* what, const fs::path& path, const struct stat& status,
                Writers writers) {
    if (!(status.st_mode & (S_IWGRP | S_IWOTH))) return;
    const Uids trusted = trusted_owners();
    const auto is_private = [&] {
        return std::ranges::any_of(trusted,
                                   [&](uid_t u) { return is_private_group_of(u, status.st_gid); });
    };
    if (status.st_mode & S_IWOTH || writers == Writers::owner || !is_private()) {
        raise<PluginError>(
            "mode of the {} {}: expected that only its owner can write, got {:04o} (group {}); "
            "chmod go-w {}",
            what, path.string(), status.st_mode & 07777, status.st_gid, path.string());
    }
    // The group's bits are then those of an access list (POSIX ACL), which may name other users.
    if (acl_extended_file(path.c_str()) > 0) {
        raise<PluginError>(
            "access list of the {} {}: expected none where a group can write; setfacl -b {}", what,
            path.string(), path.string());
    }
}

// Follows a path from the root and checks each folder and each link on the way. No other user can
// change what has been checked, so the path leads to the same file afterwards.
class Walk {
public:
    explicit Walk(const fs::path& path) {
        enter("/");
        std::error_code error;
        const fs::path relative = fs::absolute(path, error).relative_path();
        rest_.assign(relative.begin(), relative.end());
        while (!rest_.empty()) step();
        if (file.empty()) throw PluginError("it is no regular file");
        if (!is_above_this(at_)) check_mode("folder", at_, folder_, Writers::private_group);
    }
    fs::path file;
    struct stat status {};

private:
    static struct stat status_of(const fs::path& path) {
        struct stat found {};
        if (lstat(path.c_str(), &found) == 0) return found;
        if (errno == ENOENT) throw PluginError("there is no such file");
        raise<PluginError>("{}: {}", path.string(), std::strerror(errno));
    }

    void enter(const fs::path& folder) {
        at_ = folder;
        folder_ = status_of(folder);
        if (is_above_this(folder)) return;
        check_owner("folder", folder, folder_);
        // Only the owner of a file can replace it in a sticky folder, and the next step checks that.
        if (!(folder_.st_mode & S_ISVTX))
            check_mode("folder", folder, folder_, Writers::private_group);
    }

    void step() {
        const fs::path name = rest_.front();
        rest_.pop_front();
        if (name.empty() || name == ".") return;
        if (name == "..") return enter(at_.parent_path());
        const fs::path here = at_ / name;
        const struct stat found = status_of(here);
        if (S_ISLNK(found.st_mode)) return follow(here, found);
        if (S_ISDIR(found.st_mode)) return enter(here);
        if (!rest_.empty()) throw PluginError("there is no such file");
        if (!S_ISREG(found.st_mode)) return;
        file = here;
        status = found;
    }

    void follow(const fs::path& link, const struct stat& found) {
        check_owner("link", link, found);
        if (++links_ > 40) raise<PluginError>("{}: links in a circle", link.string());
        std::error_code error;
        const fs::path target = fs::read_symlink(link, error);
        if (error) raise<PluginError>("{}: the link cannot be read", link.string());
        if (target.is_absolute()) enter("/");
        const fs::path relative = target.relative_path();
        rest_.insert(rest_.begin(), relative.begin(), relative.end());
    }

    fs::path at_;
    struct stat folder_ {};  // of at_
    std::list<fs::path> rest_;
    int links_ = 0;
};

}  // namespace

fs::path own_folder() { return own_file.parent_path(); }

std::string sha256_of(int fd) {
    sha256_ctx hash;
    sha256_init(&hash);
    std::vector<unsigned char> buffer(std::size_t{1} << 18);
    for (off_t offset = 0;;) {
        const ssize_t n = pread(fd, buffer.data(), buffer.size(), offset);
        if (n < 0) throw PluginError("the file cannot be read");
        if (n == 0) break;
        sha256_update(&hash, static_cast<std::size_t>(n), buffer.data());
        offset += n;
    }
    std::array<unsigned char, SHA256_DIGEST_SIZE> digest;
    sha256_digest(&hash, digest.size(), digest.data());
    return fmt::format("{:02x}", fmt::join(digest, ""));
}

TrustedFile::TrustedFile(const fs::path& path, Writers writers) {
    const Walk walk(path);
    path_ = walk.file;
    status_ = walk.status;
    check_owner("file", path_, status_);
    check_mode("file", path_, status_, writers);
    file_ = Descriptor(open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
    if (!file_) raise<PluginError>("the file cannot be opened: {}", std::strerror(errno));
}

void TrustedFile::check_unchanged() const {
    struct stat now {};
    if (lstat(path_.c_str(), &now) == 0 && now.st_dev == status_.st_dev &&
        now.st_ino == status_.st_ino && now.st_size == status_.st_size &&
        std::memcmp(&now.st_mtim, &status_.st_mtim, sizeof(timespec)) == 0 &&
        std::memcmp(&now.st_ctim, &status_.st_ctim, sizeof(timespec)) == 0)
        return;
    throw PluginError("it was replaced or changed after it was checked");
}

}  // namespace catena
