// AtomicFile, by fsync and rename; and whether a file could be written so.
#include "atomic_file.hpp"

#include <catena/data_error.hpp>
#include <catena/write_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>

namespace catena {
namespace {

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& got) {
    throw DataError(
        fmt::format("[save] {}: expected a file that can be written, got {}", file.string(), got));
}

// Brings a file's content or a folder's entries to the disk.
bool flush(const std::filesystem::path& path, int flags) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
    if (fd < 0) return false;
    if (fsync(fd) == 0) return close(fd) == 0;
    const int why = errno;
    close(fd);
    errno = why;
    return false;
}

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

// What a program that was killed on this machine left behind.
void remove_left_over(const std::filesystem::path& folder, const std::string& stem) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename();
        if (!name.starts_with(stem)) continue;
        pid_t pid = 0;
        const char* end = name.data() + name.size();
        const auto [rest, wrong] = std::from_chars(name.data() + stem.size(), end, pid);
        const bool ours = wrong == std::errc() && rest != end && *rest == '-' && pid > 0;
        if (ours && kill(pid, 0) != 0 && errno == ESRCH) {
            std::filesystem::remove(entry.path(), error);
        }
    }
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path file) : file_(std::move(file)) {
    static std::atomic<unsigned> count = 0;  // threads may save at once
    const std::filesystem::path folder = file_.has_parent_path() ? file_.parent_path() : ".";
    const std::string stem = fmt::format("{}.tmp-{}-", file_.filename().string(), host_name());
    remove_left_over(folder, stem);
    temporary_ = folder / fmt::format("{}{}-{}", stem, getpid(), count++);
}

AtomicFile::~AtomicFile() {
    std::error_code error;
    std::filesystem::remove(temporary_, error);
}

void AtomicFile::commit() {
    std::error_code error;
    if (flush(temporary_, O_RDONLY)) std::filesystem::rename(temporary_, file_, error);
    else error.assign(errno, std::generic_category());
    if (error) fail(file_, error.message());
    // A file system without folders that can be flushed is no reason to fail.
    if (!flush(file_.has_parent_path() ? file_.parent_path() : ".", O_RDONLY | O_DIRECTORY) &&
        errno == EIO)
        fail(file_, std::strerror(errno));
}

void write_file(const std::filesystem::path& file, std::string_view content) {
    AtomicFile atomic(file);
    std::ofstream out(atomic.temporary(), std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    if (!out) fail(file, std::strerror(errno));
    atomic.commit();
}

void require_writable(const std::filesystem::path& file) {
    std::error_code error;
    const auto kind = std::filesystem::status(file, error).type();
    if (kind != std::filesystem::file_type::regular &&
        kind != std::filesystem::file_type::not_found) {
        fail(file, kind == std::filesystem::file_type::directory ? "a folder" : "no ordinary file");
    }
    const AtomicFile atomic(file);
    const int fd = ::open(atomic.temporary().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) fail(file, std::strerror(errno));
    close(fd);
}

}  // namespace catena
