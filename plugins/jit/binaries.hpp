// Folders of compiled kernels: the cache of one user, and kernels that were shipped with a program.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "descriptor.hpp"

namespace catena_jit {

using catena::Descriptor;

struct Binary {
    std::string bytes;
    Descriptor file;  // an open file that begins with the bytes, or none
};

// Returns the SHA-256 of text in lower-case hexadecimal.
std::string sha256(std::string_view text);

// Logs "[kernels] text".
void warn(const std::string& text);

// An open folder of binaries. They are executed, so the folder and its files must belong to the user, or to
// root if root_too is set, and only their owner may be able to write to them. A binary ends with a checksum.
class Folder {
public:
    Folder() = default;
    // If the folder cannot be used, it stays closed and `why` is set to the reason.
    Folder(const std::string& path, bool root_too, std::string& why);
    explicit operator bool() const { return static_cast<bool>(descriptor_); }
    int get() const { return descriptor_.get(); }
    const std::string& path() const { return path_; }

    // Returns nothing if the file does not exist (`why` is "" then), is not trusted or is damaged.
    std::optional<Binary> read(const std::string& file, std::string& why) const;
    // Writes to a temporary file, then renames it. Returns false and sets errno on failure.
    bool write(const std::string& file, std::string_view bytes, unsigned mode) const;

private:
    std::string path_;
    bool root_too_ = false;
    Descriptor descriptor_;
};

// The user's cache: $CATENA_KERNEL_CACHE, else catena/kernels in $XDG_CACHE_HOME or ~/.cache. If it
// cannot be used, or with CATENA_KERNEL_CACHE=off, binaries are kept in memory. Damaged files are compiled
// again. Safe for concurrent threads and processes.
class BinaryCache {
public:
    BinaryCache();  // reads the environment

    // Returns a binary of the cache. key: 64 hexadecimal digits. name: the kernel's, part of the file name.
    std::optional<Binary> find(const std::string& name, const std::string& key);
    // Returns the binary as find() would. If the total size exceeds the limit, deletes the least recently
    // used binaries with their sources.
    Binary store(const std::string& name, const std::string& key, std::string bytes);
    // Writes a kernel's source beside its binary and returns the path; "" if that is impossible.
    std::string keep_source(const std::string& name, const std::string& key,
                            const std::string& source);
    // Locks the key until the result is destroyed, so that no other process compiles it.
    Descriptor lock(const std::string& key) const;

    std::uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }

private:
    void evict(const std::string& newest);

    Folder folder_;
    std::uint64_t limit_ = std::uint64_t{256} << 20;
    std::atomic<std::uint64_t> evicted_{0};
    std::mutex mutex_;
    std::map<std::string, std::string> in_memory_;  // by key, if there is no folder
};

// Read-only folders of binaries by name, key and target, from $CATENA_KERNEL_PATH and use(). Binaries for
// other machines are written to the folder $CATENA_KERNEL_EXPORT. Safe for concurrent threads.
class Shipped {
public:
    Shipped();  // reads the environment

    // Adds a folder. Throws Error if it cannot be used.
    void use(const std::string& path);
    // Returns the first intact binary; searches each folder for the NULL-terminated targets in order.
    std::optional<Binary> find(const std::string& name, const std::string& key,
                               const char* const* targets) const;

    bool exports() const { return static_cast<bool>(export_folder_); }
    // Writes a binary to the export folder. target: NULL if it runs only here; then warns once.
    void put(const std::string& name, const std::string& key, const char* target,
             const std::string& bytes);

private:
    mutable std::mutex mutex_;
    std::vector<Folder> folders_;
    Folder export_folder_;
    bool said_ = false;  // whether put() has warned
};

}  // namespace catena_jit
