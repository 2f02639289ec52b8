// Reads and writes the folder of binaries.
#include "binary_cache.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "sha256.hpp"

namespace catena_jit {
namespace {

constexpr std::uint64_t default_limit = std::uint64_t{256} << 20;
constexpr std::string_view suffix = ".kernel";
constexpr std::string_view source_suffix = ".source";
constexpr std::string_view temporary = ".new-";
constexpr time_t stale = 3600;  // seconds: the writer of an older temporary file has died

// Behind the bytes of a file.
struct Trailer {
    std::array<char, 8> magic;
    std::uint64_t bytes;
    std::array<unsigned char, 32> digest;
};
constexpr std::array<char, 8> magic = {'C', 'A', 'T', 'K', 'R', 'N', '0', '1'};

Trailer trailer_of(const std::vector<unsigned char>& bytes) {
    Sha256 hash;
    hash.add(bytes.data(), bytes.size());
    return {magic, bytes.size(), hash.digest()};
}

std::string system_error() { return std::strerror(errno); }  // NOLINT(concurrency-mt-unsafe)

const char* variable(const char* name) {
    const char* value = secure_getenv(name);
    return value != nullptr && *value != '\0' ? value : nullptr;
}

std::string default_path() {
    if (const char* path = variable("CATENA_KERNEL_CACHE")) return path;
    if (const char* path = variable("XDG_CACHE_HOME"); path != nullptr && *path == '/')
        return std::string(path) + "/catena/kernels";
    if (const char* home = variable("HOME"); home != nullptr && *home == '/')
        return std::string(home) + "/.cache/catena/kernels";
    std::array<char, 16384> texts;
    passwd entry, *user = nullptr;
    if (getpwuid_r(geteuid(), &entry, texts.data(), texts.size(), &user) != 0 || user == nullptr)
        return "";
    return std::string(user->pw_dir) + "/.cache/catena/kernels";
}

// "1000000", "64K", "256M", "2G".
std::optional<std::uint64_t> parse_size(std::string_view text) {
    std::uint64_t n = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (error != std::errc()) return std::nullopt;
    const std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
    if (unit.empty()) return n;
    const std::size_t power = std::string_view("KMG").find(unit);
    if (unit.size() != 1 || power == std::string_view::npos) return std::nullopt;
    const std::size_t bits = 10 * (power + 1);
    if (n > std::numeric_limits<std::uint64_t>::max() >> bits) return std::nullopt;
    return n << bits;
}

void make_folders(const std::string& path) {
    for (std::size_t end = path.find('/', 1); end != std::string::npos;
         end = path.find('/', end + 1))
        mkdir(path.substr(0, end).c_str(), 0700);
    mkdir(path.c_str(), 0700);
}

bool write_all(int fd, const void* data, std::size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

std::string file_name(const std::string& name, const std::string& key,
                      std::string_view end = suffix) {
    return name + "-" + key + std::string(end);
}

using Part = std::pair<const void*, std::size_t>;

// The parts as one new file, which others see once it is complete, and on the disk: a power failure
// leaves none that is cut off. errno says why if it fails.
bool write_file(int folder, const std::string& file, std::initializer_list<Part> parts,
                unsigned mode) {
    // Machines and containers that share a folder have processes of the same number. Nobody but the owner
    // can write to it, so the name need not be a secret.
    static std::atomic<std::uint64_t> count = 0;
    std::string unfinished;
    Descriptor fd;
    do {
        unfinished =
            std::string(temporary) + std::to_string(getpid()) + "-" + std::to_string(count++);
        fd = Descriptor(openat(folder, unfinished.c_str(),
                               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    } while (!fd && errno == EEXIST);
    if (!fd) return false;
    const bool done = std::ranges::all_of(
        parts, [&](const Part& part) { return write_all(fd.get(), part.first, part.second); });
    if (done && fsync(fd.get()) == 0 &&
        renameat(folder, unfinished.c_str(), folder, file.c_str()) == 0)
        return true;
    const int error = errno;
    unlinkat(folder, unfinished.c_str(), 0);
    errno = error;
    return false;
}

// Where there is no folder.
struct Memory {
    std::mutex mutex;
    std::map<std::string, std::vector<unsigned char>> binaries;
};
Memory& memory() {
    static auto* all = new Memory;
    return *all;
}

}  // namespace

std::string distrust(const struct stat& status, bool root_too) {
    if (status.st_uid != geteuid() && !(root_too && status.st_uid == 0))
        return std::string("owner: expected ") + (root_too ? "root or " : "") + "this user (uid " +
               std::to_string(geteuid()) + "), got uid " + std::to_string(status.st_uid);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        std::array<char, 8> mode;
        const auto end =
            std::to_chars(mode.data(), mode.data() + mode.size(), status.st_mode & 07777, 8);
        return "mode: expected that only its owner can write, got " +
               std::string(mode.data(), end.ptr);
    }
    return "";
}

std::optional<Binary> read_binary(int folder, const std::string& file, bool root_too,
                                  std::string& why) {
    Descriptor fd(openat(folder, file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    why = distrust(status, root_too);
    if (!why.empty()) return std::nullopt;
    Trailer trailer;
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size <= sizeof trailer) {
        why = "expected a kernel, got a file that is too short";
        return std::nullopt;
    }
    std::vector<unsigned char> bytes(size);
    std::size_t got = 0;
    while (got < size) {
        const ssize_t n = pread(fd.get(), bytes.data() + got, size - got, static_cast<off_t>(got));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            why = "it cannot be read";
            return std::nullopt;
        }
        got += static_cast<std::size_t>(n);
    }
    std::memcpy(&trailer, bytes.data() + size - sizeof trailer, sizeof trailer);
    bytes.resize(size - sizeof trailer);
    const Trailer expected = trailer_of(bytes);
    if (trailer.magic != expected.magic || trailer.bytes != expected.bytes ||
        trailer.digest != expected.digest) {
        why = "expected bytes that fit their checksum, got others";
        return std::nullopt;
    }
    return Binary{std::move(bytes), std::move(fd)};
}

bool write_binary(int folder, const std::string& file, const std::vector<unsigned char>& bytes,
                  unsigned mode) {
    const Trailer trailer = trailer_of(bytes);
    return write_file(folder, file, {{bytes.data(), bytes.size()}, {&trailer, sizeof trailer}},
                      mode);
}

BinaryCache::BinaryCache(const catena_host& host) : host_(host), limit_(default_limit) {
    if (const char* text = variable("CATENA_KERNEL_CACHE_SIZE")) {
        const auto size = parse_size(text);
        if (size) limit_ = *size;
        else
            host_.log(nullptr, CATENA_LOG_WARNING,
                      ("[kernels] CATENA_KERNEL_CACHE_SIZE: expected bytes as 256M, got '" +
                       std::string(text) + "'")
                          .c_str());
    }
    const std::string path = default_path();
    if (path != "off") open_folder(path);
}

void BinaryCache::open_folder(const std::string& path) {
    const auto refuse = [&](const std::string& why) {
        host_.log(nullptr, CATENA_LOG_WARNING,
                  ("[kernels] folder of compiled kernels " + path + ": " + why +
                   "; every process compiles its own kernels")
                      .c_str());
    };
    if (path.empty() || path[0] != '/')
        return refuse("expected an absolute path in CATENA_KERNEL_CACHE, or HOME");
    make_folders(path);
    Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    if (!folder || fstat(folder.get(), &status) != 0) return refuse(system_error());
    if (const std::string why = distrust(status); !why.empty()) return refuse(why);
    if (faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return refuse(system_error());
    path_ = path;
    folder_ = std::move(folder);
}

std::optional<Binary> BinaryCache::read(const std::string& file) {
    std::string why;
    std::optional<Binary> binary = read_binary(folder_.get(), file, /*root_too=*/false, why);
    if (binary) futimens(binary->file.get(), nullptr);  // used now
    if (why.empty()) return binary;
    host_.log(nullptr, CATENA_LOG_WARNING,
              ("[kernels] " + path_ + "/" + file + ": " + why + "; it is compiled again").c_str());
    unlinkat(folder_.get(), file.c_str(), 0);  // said once
    return std::nullopt;
}

std::optional<Binary> BinaryCache::find(const std::string& name, const std::string& key) {
    if (folder_) return read(file_name(name, key));
    const std::lock_guard guard(memory().mutex);
    const auto found = memory().binaries.find(key);
    if (found == memory().binaries.end()) return std::nullopt;
    return Binary{found->second, {}};
}

Binary BinaryCache::store(const std::string& name, const std::string& key,
                          std::vector<unsigned char> bytes) {
    if (!folder_) {
        const std::lock_guard guard(memory().mutex);
        memory().binaries[key] = bytes;
        return {std::move(bytes), {}};
    }
    const std::string file = file_name(name, key);
    // A full disk costs the next process a compilation, and this one nothing.
    if (!write_binary(folder_.get(), file, bytes, 0600)) return {std::move(bytes), {}};
    evict(file_name(name, key, ""));
    return {std::move(bytes),
            Descriptor(openat(folder_.get(), file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC))};
}

std::string BinaryCache::keep_source(const std::string& name, const std::string& key,
                                     const std::string& source) {
    const std::string file = file_name(name, key, source_suffix);
    if (!folder_ || !write_file(folder_.get(), file, {{source.data(), source.size()}}, 0600))
        return "";
    return path_ + "/" + file;
}

void BinaryCache::evict(const std::string& newest) {
    struct Entry {  // a binary and its source
        std::uint64_t bytes = 0;
        std::pair<time_t, long> used;
    };
    std::map<std::string, Entry> entries;  // by their names without suffix
    std::uint64_t total = 0;
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(
        fdopendir(openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), closedir);
    if (folder == nullptr) return;
    while (const dirent* file = readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe)
        const std::string_view name = file->d_name;
        struct stat status {};
        if (fstatat(folder_.get(), file->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (name.starts_with(temporary) && status.st_mtim.tv_sec + stale < std::time(nullptr))
            unlinkat(folder_.get(), file->d_name, 0);
        const bool binary = name.ends_with(suffix);
        if ((!binary && !name.ends_with(source_suffix)) || !S_ISREG(status.st_mode)) continue;
        const std::size_t end = name.size() - (binary ? suffix : source_suffix).size();
        Entry& entry = entries[std::string(name.substr(0, end))];
        entry.bytes += static_cast<std::uint64_t>(status.st_size);
        entry.used = std::max(entry.used, {status.st_mtim.tv_sec, status.st_mtim.tv_nsec});
        total += static_cast<std::uint64_t>(status.st_size);
    }
    entries.erase(newest);
    std::vector<std::pair<std::string, Entry>> oldest(entries.begin(), entries.end());
    std::ranges::sort(oldest, {}, [](const auto& entry) { return entry.second.used; });
    for (const auto& [name, entry] : oldest) {
        if (total <= limit_) return;
        const auto gone = [&](std::string_view end) {
            return unlinkat(folder_.get(), (name + std::string(end)).c_str(), 0) == 0;
        };
        const bool source = gone(source_suffix), binary = gone(suffix);
        if (source || binary) total -= entry.bytes;
        if (binary) evicted_.fetch_add(1, std::memory_order_relaxed);
    }
}

// A byte of one file for each key: nothing has to be tidied away, and a process that dies lets go.
Descriptor BinaryCache::lock(const std::string& key) const {
    if (!folder_) return {};
    Descriptor file(openat(folder_.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    struct flock region = {};
    region.l_type = F_WRLCK;
    region.l_whence = SEEK_SET;
    std::uint64_t place = 0;
    std::from_chars(key.data(), key.data() + 15, place, 16);
    region.l_start = static_cast<off_t>(place);
    region.l_len = 1;
    int done = -1;
    do done = file ? fcntl(file.get(), F_OFD_SETLKW, &region) : -1;
    while (done != 0 && file && errno == EINTR);
    return file;  // without locks, on some network's disk, two may make the same: no harm
}

}  // namespace catena_jit
