// Reads and writes folders of binaries.
#include "binaries.hpp"

#include <fcntl.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <pwd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <system_error>

#include <catena/plugin/error.hpp>

namespace catena_jit {
namespace {

using catena::plugin::Error;

constexpr std::string_view suffix = ".kernel";
constexpr std::string_view source_suffix = ".source";
constexpr std::string_view temporary = ".new-";
constexpr std::chrono::hours stale{1};  // the writer of an older temporary file has died

std::string digest(std::string_view text) {
    sha256_ctx state;
    sha256_init(&state);
    sha256_update(&state, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
    std::string bytes(SHA256_DIGEST_SIZE, '\0');
    sha256_digest(&state, bytes.size(), reinterpret_cast<std::uint8_t*>(bytes.data()));
    return bytes;
}

// The trailer that follows the bytes in a file: a magic number, their size and their digest.
constexpr std::size_t trailer_bytes = 8 + sizeof(std::uint64_t) + SHA256_DIGEST_SIZE;
std::string trailer_of(std::string_view bytes) {
    const std::uint64_t size = bytes.size();
    return "CATKRN01" + std::string(reinterpret_cast<const char*>(&size), sizeof size) +
           digest(bytes);
}

std::string system_error() { return std::generic_category().message(errno); }

std::string variable(const char* name) {
    const char* value = secure_getenv(name);
    return value != nullptr ? value : "";
}

std::string default_path() {
    if (std::string path = variable("CATENA_KERNEL_CACHE"); !path.empty()) return path;
    if (const std::string path = variable("XDG_CACHE_HOME"); path.starts_with('/'))
        return path + "/catena/kernels";
    std::string home = variable("HOME");
    std::array<char, 16384> texts;
    passwd entry, *user = nullptr;
    if (!home.starts_with('/') &&
        getpwuid_r(geteuid(), &entry, texts.data(), texts.size(), &user) == 0 && user != nullptr)
        home = user->pw_dir;
    return home.empty() ? "" : home + "/.cache/catena/kernels";
}

// Parses "1000000", "64K", "256M" or "2G".
std::optional<std::uint64_t> parse_size(std::string_view text) {
    std::uint64_t n = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, n);
    if (error != std::errc()) return std::nullopt;
    if (stop == end) return n;
    const std::size_t power = std::string_view("KMG").find(*stop);
    if (stop + 1 != end || power == std::string_view::npos) return std::nullopt;
    const std::size_t bits = 10 * (power + 1);
    if (n > std::numeric_limits<std::uint64_t>::max() >> bits) return std::nullopt;
    return n << bits;
}

void make_folders(const std::string& path) {
    for (std::size_t end = 0; end != std::string::npos;) {
        end = path.find('/', end + 1);
        mkdir(path.substr(0, end).c_str(), 0700);
    }
}

// Returns why code from a file or folder with this status is not trusted, or "" if it is.
std::string distrust(const struct stat& status, bool root_too) {
    if (status.st_uid != geteuid() && !(root_too && status.st_uid == 0))
        return std::string("owner: expected ") + (root_too ? "root or " : "") + "this user (uid " +
               std::to_string(geteuid()) + "), got uid " + std::to_string(status.st_uid);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return "";
    char mode[8];
    std::snprintf(mode, sizeof mode, "%o", status.st_mode & 07777);
    return std::string("mode: expected that only its owner can write, got ") + mode;
}

// Returns the start of a file name. The target of a shipped binary follows it.
std::string stem_of(const std::string& name, const std::string& key) { return name + "-" + key; }
std::string binary_of(const std::string& stem) { return stem + std::string(suffix); }
std::string source_of(const std::string& stem) { return stem + std::string(source_suffix); }

}  // namespace

std::string sha256(std::string_view text) {
    const std::string bytes = digest(text);
    std::string hex(BASE16_ENCODE_LENGTH(bytes.size()), '\0');
    base16_encode_update(hex.data(), bytes.size(),
                         reinterpret_cast<const std::uint8_t*>(bytes.data()));
    return hex;
}

void warn(const std::string& text) {
    catena::plugin::host().log(nullptr, CATENA_LOG_WARNING, ("[kernels] " + text).c_str());
}

Folder::Folder(const std::string& path, bool root_too, std::string& why)
    : path_(path), root_too_(root_too) {
    if (!path.starts_with('/')) {
        why = "expected an absolute path";
        return;
    }
    Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    if (!folder || fstat(folder.get(), &status) != 0) why = system_error();
    else why = distrust(status, root_too);
    if (why.empty()) descriptor_ = std::move(folder);
}

std::optional<Binary> Folder::read(const std::string& file, std::string& why) const {
    Descriptor fd(openat(get(), file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status {};
    if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    const auto size = static_cast<std::size_t>(status.st_size);
    std::string bytes;
    why = distrust(status, root_too_);
    if (why.empty() && size <= trailer_bytes)
        why = "expected a kernel, got a file that is too short";
    if (!why.empty()) return std::nullopt;
    bytes.resize(size);
    if (pread(fd.get(), bytes.data(), size, 0) != status.st_size) {
        why = "it cannot be read";
        return std::nullopt;
    }
    const std::string_view content = std::string_view(bytes).substr(0, size - trailer_bytes);
    if (!bytes.ends_with(trailer_of(content))) {
        why = "expected bytes that fit their checksum, got others";
        return std::nullopt;
    }
    bytes.resize(content.size());
    return Binary{std::move(bytes), std::move(fd)};
}

bool Folder::write(const std::string& file, std::string_view bytes, unsigned mode) const {
    // Processes on other machines or in other containers that share the folder may have the same ID. Only
    // the owner can write to the folder, so the name need not be secret.
    static std::atomic<std::uint64_t> count = 0;
    std::string unfinished;
    Descriptor fd;
    do {
        unfinished =
            std::string(temporary) + std::to_string(getpid()) + "-" + std::to_string(count++);
        fd = Descriptor(openat(get(), unfinished.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    } while (!fd && errno == EEXIST);
    if (!fd) return false;
    ssize_t n = 0;
    while (!bytes.empty() && (n = ::write(fd.get(), bytes.data(), bytes.size())) > 0)
        bytes.remove_prefix(static_cast<std::size_t>(n));
    // Syncs before it renames, so that a power failure leaves no truncated file.
    if (bytes.empty() && fsync(fd.get()) == 0 &&
        renameat(get(), unfinished.c_str(), get(), file.c_str()) == 0)
        return true;
    const int error = errno;
    unlinkat(get(), unfinished.c_str(), 0);
    errno = error;
    return false;
}

BinaryCache::BinaryCache() {
    if (const std::string text = variable("CATENA_KERNEL_CACHE_SIZE"); !text.empty()) {
        if (const auto size = parse_size(text)) limit_ = *size;
        else warn("CATENA_KERNEL_CACHE_SIZE: expected bytes as 256M, got '" + text + "'");
    }
    const std::string path = default_path();
    if (path == "off") return;
    if (path.starts_with('/')) make_folders(path);
    std::string why;
    folder_ = Folder(path, /*root_too=*/false, why);
    if (folder_ && faccessat(folder_.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
        why = system_error();
        folder_ = Folder();
    }
    if (folder_) return;
    if (!path.starts_with('/')) why += " in CATENA_KERNEL_CACHE, or HOME";
    warn("folder of compiled kernels " + path + ": " + why +
         "; every process compiles its own kernels");
}

std::optional<Binary> BinaryCache::find(const std::string& name, const std::string& key) {
    if (!folder_) {
        const std::lock_guard guard(mutex_);
        const auto found = in_memory_.find(key);
        if (found == in_memory_.end()) return std::nullopt;
        return Binary{found->second, {}};
    }
    const std::string file = binary_of(stem_of(name, key));
    std::string why;
    std::optional<Binary> binary = folder_.read(file, why);
    if (binary) futimens(binary->file.get(), nullptr);  // sets its time of last use
    if (why.empty()) return binary;
    warn(folder_.path() + "/" + file + ": " + why + "; it is compiled again");
    unlinkat(folder_.get(), file.c_str(), 0);  // so that the warning appears once
    return std::nullopt;
}

Binary BinaryCache::store(const std::string& name, const std::string& key, std::string bytes) {
    if (!folder_) {
        const std::lock_guard guard(mutex_);
        in_memory_[key] = bytes;
        return {std::move(bytes), {}};
    }
    const std::string stem = stem_of(name, key), file = binary_of(stem);
    // If the disk is full, this process uses the bytes in memory; the next one compiles again.
    if (!folder_.write(file, bytes + trailer_of(bytes), 0600)) return {std::move(bytes), {}};
    evict(stem);
    return {std::move(bytes),
            Descriptor(openat(folder_.get(), file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC))};
}

std::string BinaryCache::keep_source(const std::string& name, const std::string& key,
                                     const std::string& source) {
    const std::string file = source_of(stem_of(name, key));
    return folder_ && folder_.write(file, source, 0600) ? folder_.path() + "/" + file : "";
}

void BinaryCache::evict(const std::string& newest) {
    namespace fs = std::filesystem;
    struct Entry {  // a binary and its source
        std::uint64_t bytes = 0;
        fs::file_time_type used = fs::file_time_type::min();
    };
    std::map<std::string, Entry> entries;  // by file name without suffix
    std::uint64_t total = 0;
    std::error_code error;  // for instance, another process deleted a file
    fs::directory_iterator file("/proc/self/fd/" + std::to_string(folder_.get()), error);
    for (; file != fs::directory_iterator(); file.increment(error)) {
        const fs::path name = file->path().filename(), extension = name.extension();
        if (!fs::is_regular_file(file->symlink_status(error))) continue;
        const std::uint64_t bytes = file->file_size(error);
        const fs::file_time_type used = file->last_write_time(error);
        if (error) continue;
        if (name.native().starts_with(temporary) && used + stale < fs::file_time_type::clock::now())
            unlinkat(folder_.get(), name.c_str(), 0);
        if (extension != suffix && extension != source_suffix) continue;
        Entry& entry = entries[name.stem()];
        entry.bytes += bytes;
        entry.used = std::max(entry.used, used);
        total += bytes;
    }
    entries.erase(newest);
    std::vector<std::pair<std::string, Entry>> oldest(entries.begin(), entries.end());
    std::ranges::sort(oldest, {}, [](const auto& entry) { return entry.second.used; });
    for (const auto& [stem, entry] : oldest) {
        if (total <= limit_) return;
        const bool source = unlinkat(folder_.get(), source_of(stem).c_str(), 0) == 0;
        const bool binary = unlinkat(folder_.get(), binary_of(stem).c_str(), 0) == 0;
        if (source || binary) total -= entry.bytes;
        if (binary) evicted_.fetch_add(1, std::memory_order_relaxed);
    }
}

// Locks one byte per key of a shared file: no lock files to delete, and a process that dies releases it.
Descriptor BinaryCache::lock(const std::string& key) const {
    if (!folder_) return {};
    Descriptor file(openat(folder_.get(), "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    struct flock region = {};
    region.l_type = F_WRLCK;
    region.l_whence = SEEK_SET;
    region.l_start = static_cast<off_t>(std::stoull(key.substr(0, 15), nullptr, 16));
    region.l_len = 1;
    while (file && fcntl(file.get(), F_OFD_SETLKW, &region) != 0 && errno == EINTR) {
    }
    return file;  // without a lock, as on some network disks, two processes may compile the same
}

Shipped::Shipped() {
    std::string list = variable("CATENA_KERNEL_PATH");
    while (!list.empty()) {
        const std::string path = list.substr(0, list.find(':'));
        list.erase(0, path.size() + 1);
        std::string why;
        if (path.empty()) continue;
        if (Folder folder(path, /*root_too=*/true, why); folder)
            folders_.push_back(std::move(folder));
        else warn("CATENA_KERNEL_PATH: " + path + ": " + why + "; no kernel is taken from there");
    }
    if (const std::string path = variable("CATENA_KERNEL_EXPORT"); !path.empty()) {
        std::string why;
        if (path[0] == '/') mkdir(path.c_str(), 0755);
        export_folder_ = Folder(path, /*root_too=*/true, why);
        if (!export_folder_) warn("CATENA_KERNEL_EXPORT: " + path + ": " + why);
    }
}

void Shipped::use(const std::string& path) {
    std::string why;
    Folder folder(path, /*root_too=*/true, why);
    if (!folder)
        throw Error(CATENA_E_INVALID, "[kernels] folder of compiled kernels " + path + ": " + why);
    const std::lock_guard guard(mutex_);
    for (const Folder& known : folders_)
        if (known.path() == path) return;
    folders_.push_back(std::move(folder));
}

std::optional<Binary> Shipped::find(const std::string& name, const std::string& key,
                                    const char* const* targets) const {
    const std::lock_guard guard(mutex_);
    for (const Folder& folder : folders_)
        for (const char* const* target = targets; *target != nullptr; ++target) {
            const std::string file = binary_of(stem_of(name, key) + "." + *target);
            std::string why;
            if (std::optional<Binary> binary = folder.read(file, why)) return binary;
            if (!why.empty()) warn(folder.path() + "/" + file + ": " + why + "; it is not used");
        }
    return std::nullopt;
}

void Shipped::put(const std::string& name, const std::string& key, const char* target,
                  const std::string& bytes) {
    const std::lock_guard guard(mutex_);
    if (target != nullptr) {
        const std::string file = binary_of(stem_of(name, key) + "." + target);
        if (!export_folder_.write(file, bytes + trailer_of(bytes), 0644))
            warn("CATENA_KERNEL_EXPORT: " + file + ": cannot be written: " + system_error());
    } else if (!said_) {
        said_ = true;
        warn(
            "CATENA_KERNEL_EXPORT: expected kernels for a target that other machines have, as "
            "CATENA_CPU_MARCH=x86-64-v3 makes them, got kernels for this machine; nothing is "
            "exported");
    }
}

}  // namespace catena_jit
