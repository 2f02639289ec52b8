// Compiled kernels in folders: those of one user, and those that are shipped with a program.
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
    Descriptor file;  // begins with the bytes; or none
};

// SHA-256 in lower-case hexadecimal.
std::string sha256(std::string_view text);

// Logs "[kernels] text".
void warn(const std::string& text);

// An open folder. Its files will be run: it and they must belong to the user, or to root if root_too is
// set, and nobody else may write to them. A binary ends in a checksum.
class Folder {
public:
    Folder() = default;
    // If it cannot be used, it stays closed and why has the reason.
    Folder(const std::string& path, bool root_too, std::string& why);
    explicit operator bool() const { return static_cast<bool>(descriptor_); }
    int get() const { return descriptor_.get(); }
    const std::string& path() const { return path_; }

    // None if there is no such file (why is "" then), or if it must not be run or is damaged.
    std::optional<Binary> read(const std::string& file, std::string& why) const;
    // Under another name first, then renamed. False, and errno, if it cannot be written.
    bool write(const std::string& file, std::string_view bytes, unsigned mode) const;

private:
    std::string path_;
    bool root_too_ = false;
    Descriptor descriptor_;
};

// The user's folder: $CATENA_KERNEL_CACHE, else catena/kernels in $XDG_CACHE_HOME or ~/.cache. If it
// cannot be used, or with CATENA_KERNEL_CACHE=off, binaries live in memory. A damaged file is compiled
// again. For any thread, and any number of processes.
class BinaryCache {
public:
    BinaryCache();  // reads the environment

    // key: 64 hexadecimal digits. name: of the kernel, part of the file's name.
    std::optional<Binary> find(const std::string& name, const std::string& key);
    // Returns the binary as find() would. If all binaries together are larger than the limit, it deletes
    // those that were not used for longest, with their sources.
    Binary store(const std::string& name, const std::string& key, std::string bytes);
    // Writes the source of a kernel beside its binary and returns the path; "" if there is no folder or
    // it cannot be written.
    std::string keep_source(const std::string& name, const std::string& key,
                            const std::string& source);
    // While the result lives, no other process compiles the same key.
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

// Folders of binaries by name, key and target, from $CATENA_KERNEL_PATH and from use(). They are only
// read. $CATENA_KERNEL_EXPORT is a folder that such binaries are written to. For any thread.
class Shipped {
public:
    Shipped();  // reads the environment

    // Throws Error.
    void use(const std::string& path);
    // For the first of the targets, NULL-terminated, that has a sound binary.
    std::optional<Binary> find(const std::string& name, const std::string& key,
                               const char* const* targets) const;

    bool exports() const { return static_cast<bool>(export_folder_); }
    // target: NULL if a binary cannot be shipped.
    void put(const std::string& name, const std::string& key, const char* target,
             const std::string& bytes);

private:
    mutable std::mutex mutex_;
    std::vector<Folder> folders_;
    Folder export_folder_;
    bool said_ = false;  // that nothing is exported
};

}  // namespace catena_jit
