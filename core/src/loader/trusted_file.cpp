// Opens files through folders that are checked one by one.
#include "loader/trusted_file.hpp"

#include "loader/access_acl.hpp"
#include "loader/core_place.hpp"
#include "sha256.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <list>
#include <vector>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U  // Linux 6.3
#endif

namespace catena {
namespace {

namespace fs = std::filesystem;

// Root, the user, the core's owner, and the uids of $CATENA_PLUGIN_OWNERS ("1001:1002").
std::vector<uid_t> trusted_owners() {
    std::vector<uid_t> owners{0, geteuid()};
    if (const auto owner = core_place().owner) owners.push_back(*owner);
    const char* more = secure_getenv("CATENA_PLUGIN_OWNERS");
    for (std::string_view rest = more ? more : ""; !rest.empty();) {
        const std::string_view word = rest.substr(0, rest.find(':'));
        const char* const end = word.data() + word.size();
        uid_t uid = 0;
        const auto [stop, error] = std::from_chars(word.data(), end, uid);
        if (error != std::errc() || stop != end) {
            throw PluginError(fmt::format(
                "CATENA_PLUGIN_OWNERS: expected uids with ':' between, got '{}'", more));
        }
        owners.push_back(uid);
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
    return owners;
}

// A group's own list leaves out those whose primary group it is.
bool is_primary_group_of_none_but(uid_t user, gid_t group) {
    std::array<char, 16384> texts;
    passwd entry, *other = nullptr;
    int error = 0;
    bool alone = true;
    setpwent();
    while ((error = getpwent_r(&entry, texts.data(), texts.size(), &other)) == 0 && other) {
        if (other->pw_gid == group && other->pw_uid != user) alone = false;
    }
    endpwent();
    return alone && (error == 0 || error == ENOENT);  // ENOENT: that was the last one
}

// The group that has a user's name and nobody else in it is the user: accounts that are made so
// come with umask 002, and their folders can be written to by the group.
bool is_group_of(uid_t user, gid_t group) {
    std::array<char, 16384> user_texts, group_texts;
    passwd user_entry, *u = nullptr;
    ::group group_entry, *g = nullptr;
    if (getpwuid_r(user, &user_entry, user_texts.data(), user_texts.size(), &u) != 0 || !u ||
        getgrgid_r(group, &group_entry, group_texts.data(), group_texts.size(), &g) != 0 || !g) {
        return false;
    }
    if (u->pw_gid != group || std::strcmp(u->pw_name, g->gr_name) != 0) return false;
    for (char** member = g->gr_mem; *member; ++member) {
        if (std::strcmp(*member, u->pw_name) != 0) return false;
    }
    return is_primary_group_of_none_but(user, group);
}

// Root's and the user's files; `what` is "file", "folder" or "link".
void check_owner(const char* what, const fs::path& path, const struct stat& status) {
    const auto trusted = trusted_owners();
    if (std::ranges::count(trusted, status.st_uid) > 0) return;
    throw PluginError(fmt::format(
        "owner of the {} {}: expected root or this user (uid {}), got uid {}; if that owner is "
        "trusted: CATENA_PLUGIN_OWNERS={}",
        what, path.string(), geteuid(), status.st_uid, status.st_uid));
}

void check_mode(const char* what, const fs::path& path, int fd, const struct stat& status,
                Writers writers) {
    if (!(status.st_mode & (S_IWGRP | S_IWOTH))) return;
    const auto trusted = trusted_owners();
    const auto is_private = [&] {
        return std::ranges::any_of(trusted, [&](uid_t u) { return is_group_of(u, status.st_gid); });
    };
    if (status.st_mode & S_IWOTH || writers == Writers::owner || !is_private()) {
        throw PluginError(fmt::format(
            "mode of the {} {}: expected that only its owner can write, got {:04o} (group {}); "
            "chmod go-w {}",
            what, path.string(), status.st_mode & 07777, status.st_gid, path.string()));
    }
    // With an access list the group's bits are what everybody in it may do at most.
    if (const std::string other = listed_writer(fd, trusted); !other.empty()) {
        throw PluginError(fmt::format(
            "access list of the {} {}: expected that only its owner can write, got {}; setfacl -b "
            "{}",
            what, path.string(), other, path.string()));
    }
}

// Goes down from the root, a step at a time.
class Walk {
public:
    explicit Walk(const fs::path& path) {
        enter("/", Descriptor(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)));
        std::error_code error;
        const fs::path relative = fs::absolute(path, error).relative_path();
        rest_.assign(relative.begin(), relative.end());
        while (!rest_.empty()) step();
        if (name_.empty()) throw PluginError("it is no regular file");
        const Folder& own = folders_.back();
        if (!core_place().is_below(own.path)) check_mode_of(own);
    }
    int folder() const { return folders_.back().fd.get(); }
    const fs::path& name() const { return name_; }
    fs::path path() const { return folders_.back().path / name_; }

private:
    struct Folder {
        fs::path path;
        Descriptor fd;
        struct stat status;
    };

    static void check_mode_of(const Folder& folder) {
        check_mode("folder", folder.path, folder.fd.get(), folder.status, Writers::private_group);
    }

    void enter(const fs::path& path, Descriptor fd) {
        struct stat status {};
        if (!fd || fstat(fd.get(), &status) != 0) {
            throw PluginError(fmt::format("{}: {}", path.string(), system_error()));
        }
        folders_.push_back({path, std::move(fd), status});
        if (core_place().is_below(path)) return;
        check_owner("folder", path, status);
        // What is in a sticky folder only its owner can replace, and the next step is checked too.
        if (!(status.st_mode & S_ISVTX)) check_mode_of(folders_.back());
    }

    void step() {
        const fs::path name = rest_.front();
        rest_.pop_front();
        if (name.empty() || name == ".") return;
        if (name == "..") {
            if (folders_.size() > 1) folders_.pop_back();
            return;
        }
        const fs::path here = folders_.back().path / name;
        Descriptor next(openat(folder(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        struct stat status {};
        if (!next || fstat(next.get(), &status) != 0) {
            if (errno == ENOENT) throw PluginError("there is no such file");
            throw PluginError(fmt::format("{}: {}", here.string(), system_error()));
        }
        if (S_ISLNK(status.st_mode)) return follow(here, next.get(), status);
        if (S_ISDIR(status.st_mode)) return enter(here, std::move(next));
        if (!rest_.empty()) throw PluginError("there is no such file");
        if (!S_ISREG(status.st_mode)) throw PluginError("it is no regular file");
        name_ = name;
    }

    void follow(const fs::path& link, int fd, const struct stat& status) {
        check_owner("link", link, status);
        if (++links_ > 40) throw PluginError(fmt::format("{}: links in a circle", link.string()));
        char target[PATH_MAX];
        const ssize_t length = readlinkat(fd, "", target, sizeof(target));
        if (length <= 0 || length == sizeof(target)) {
            throw PluginError(fmt::format("{}: the link cannot be read", link.string()));
        }
        const fs::path path(std::string(target, static_cast<std::size_t>(length)));
        if (path.is_absolute()) folders_.erase(folders_.begin() + 1, folders_.end());
        const fs::path relative = path.relative_path();
        rest_.insert(rest_.begin(), relative.begin(), relative.end());
    }

    std::vector<Folder> folders_;
    std::list<fs::path> rest_;
    fs::path name_;
    int links_ = 0;
};

bool same(const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

}  // namespace

std::string system_error() { return std::strerror(errno); }

std::string sha256_of(int fd) {
    Sha256 hash;
    std::vector<unsigned char> buffer(std::size_t{1} << 18);
    for (off_t offset = 0;;) {
        const ssize_t n = pread(fd, buffer.data(), buffer.size(), offset);
        if (n < 0) throw PluginError("the file cannot be read");
        if (n == 0) return hash.hex();
        hash.add(buffer.data(), static_cast<std::size_t>(n));
        offset += n;
    }
}

bool is_there(const fs::path& file) { return access(file.c_str(), F_OK) == 0; }

TrustedFile::TrustedFile(const fs::path& path, Writers writers) {
    const Walk walk(path);
    path_ = walk.path();
    // What the name stands for now counts: its kind again, then owner and mode.
    fd_ = Descriptor(openat(walk.folder(), walk.name().c_str(),
                            O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!fd_ || fstat(fd(), &status_) != 0) {
        throw PluginError(fmt::format("the file cannot be opened: {}", system_error()));
    }
    if (!S_ISREG(status_.st_mode)) throw PluginError("it is no regular file");
    check_owner("file", path_, status_);
    check_mode("file", path_, fd(), status_, writers);
}

void TrustedFile::check_unchanged() const {
    struct stat now {};
    if (lstat(path_.c_str(), &now) != 0) {
        throw PluginError(fmt::format("it went away after it was checked: {}", system_error()));
    }
    if (now.st_dev != status_.st_dev || now.st_ino != status_.st_ino) {
        throw PluginError(
            fmt::format("it was replaced after it was checked: expected inode {}, got {}",
                        status_.st_ino, now.st_ino));
    }
    if (now.st_size != status_.st_size || !same(now.st_mtim, status_.st_mtim) ||
        !same(now.st_ctim, status_.st_ctim)) {  // ctime: nobody can set it back
        throw PluginError(fmt::format(
            "it was changed after it was checked: expected {} bytes of time {}.{:09}, got {} bytes "
            "of {}.{:09}",
            status_.st_size, status_.st_ctim.tv_sec, status_.st_ctim.tv_nsec, now.st_size,
            now.st_ctim.tv_sec, now.st_ctim.tv_nsec));
    }
}

Descriptor TrustedFile::sealed_copy() const {
    constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    const std::string name = path_.filename().string().substr(0, 200);
    Descriptor copy(memfd_create(name.c_str(), flags | MFD_NOEXEC_SEAL));
    if (!copy && errno == EINVAL) copy = Descriptor(memfd_create(name.c_str(), flags));
    if (!copy) throw PluginError(fmt::format("no memory for a copy: {}", system_error()));
    for (off_t offset = 0;;) {
        const ssize_t n = sendfile(copy.get(), fd(), &offset, std::size_t{1} << 30);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) throw PluginError(fmt::format("it cannot be copied: {}", system_error()));
        if (n == 0) break;
    }
    if (fcntl(copy.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)) {
        throw PluginError(fmt::format("its copy cannot be sealed: {}", system_error()));
    }
    return copy;
}

}  // namespace catena
