// AtomicFile, implemented with O_EXCL, fsync and rename.
#include <catena/write_file.hpp>

#include <catena/data_error.hpp>
#include <catena/fail.hpp>

#include <descriptor.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <memory>

namespace catena {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void cannot_write(const fs::path& file, const std::string& got) {
    catena::fail<DataError>("[save] {}: expected a file that can be written, got {}", file.string(),
                            got);
}

fs::path folder_of(const fs::path& file) {
    return file.has_parent_path() ? file.parent_path() : ".";
}

// Flushes a folder's entries to the disk. Returns false on failure.
bool flush(const fs::path& folder) {
    const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return fd && fsync(fd.get()) == 0;
}

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

// Removes the temporary files of programs that were killed on this machine. Uses readdir(), because libstdc++'s
// directory_iterator terminates the process if it cannot allocate.
void remove_left_over(const fs::path& folder, const std::string& stem) {
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
    if (!entries) return;
    while (const dirent* entry = readdir(entries.get())) {
        const std::string_view name = entry->d_name;
        if (!name.starts_with(stem)) continue;
        pid_t pid = 0;
        const char* end = name.data() + name.size();
        const auto [rest, wrong] = std::from_chars(name.data() + stem.size(), end, pid);
        const bool ours = wrong == std::errc() && rest != end && *rest == '-' && pid > 0;
        if (ours && kill(pid, 0) != 0 && errno == ESRCH)
            unlinkat(dirfd(entries.get()), entry->d_name, 0);
    }
}

// Whether the folder is sticky and the file belongs neither to this user nor to the folder's owner. The
// user who created such a file must not become the owner of the new one.
bool is_of_stranger(const fs::path& folder, const struct stat& file) {
    struct stat status {};
    if (stat(folder.c_str(), &status) != 0) return true;
    return (status.st_mode & S_ISVTX) != 0 && file.st_uid != geteuid() &&
           file.st_uid != status.st_uid;
}

}  // namespace

AtomicFile::AtomicFile(fs::path file, unsigned most) : file_(std::move(file)), most_(most) {
    struct stat old {};
    const bool exists = lstat(file_.c_str(), &old) == 0;
    if (!exists && errno != ENOENT) cannot_write(file_, std::strerror(errno));
    if (exists && S_ISLNK(old.st_mode)) cannot_write(file_, "a symbolic link");
    if (!file_.has_filename() || (exists && S_ISDIR(old.st_mode))) cannot_write(file_, "a folder");
    if (exists && !S_ISREG(old.st_mode)) cannot_write(file_, "no ordinary file");
    const fs::path folder = folder_of(file_);
    keeps_ = exists && !is_of_stranger(folder, old);
    mode_ = old.st_mode & 0777;
    owner_ = old.st_uid;
    group_ = old.st_gid;
    // File names have at most 255 bytes.
    const std::string stem =
        fmt::format("{}.tmp-{}-", file_.filename().string().substr(0, 120), host_name());
    remove_left_over(folder, stem);
    // If the old file's mode is kept, commit() sets it; until then only this user may read the new content.
    const mode_t mode = keeps_ ? 0600 : 0666 & most_;
    do {
        std::uint64_t random = 0;
        if (getentropy(&random, sizeof random) != 0) cannot_write(file_, std::strerror(errno));
        temporary_ = folder / fmt::format("{}{}-{:016x}", stem, getpid(), random);
        fd_ =
            ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    } while (fd_ < 0 && errno == EEXIST);
    if (fd_ < 0) cannot_write(file_, std::strerror(errno));
}

AtomicFile::~AtomicFile() {
    if (fd_ < 0) return;
    close(fd_);
    unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) cannot_write(file_, std::strerror(errno));
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

void AtomicFile::commit() {
    if (keeps_) {
        unsigned mode = mode_ & most_;
        if (fchown(fd_, owner_, group_) != 0 && fchown(fd_, static_cast<uid_t>(-1), group_) != 0)
            mode &= ~070U | (mode & 07U) << 3;  // another group: no more permissions than others
        // Ignores errors, because some file systems have no modes.
        (void)fchmod(fd_, mode);
    }
    if (fsync(fd_) != 0 || rename(temporary_.c_str(), file_.c_str()) != 0)
        cannot_write(file_, std::strerror(errno));
    close(fd_);
    fd_ = -1;
    // Only EIO is an error, because some file systems cannot flush folders.
    if (!flush(folder_of(file_)) && errno == EIO) cannot_write(file_, std::strerror(errno));
}

void write_file(const fs::path& file, std::string_view content) {
    AtomicFile atomic(file);
    atomic.write(content);
    atomic.commit();
}

void require_writable(const fs::path& file) { const AtomicFile atomic(file); }

}  // namespace catena
