// Compiled kernels on disk, shared by the processes of one user.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "descriptor.hpp"

#include "catena/abi.h"

struct stat;

namespace catena_jit {

using catena::Descriptor;

struct Binary {
    std::vector<unsigned char> bytes;
    Descriptor file;  // begins with the bytes; or none
};

// Why code must not come from a file or a folder of this status, or "". root_too: root may own it.
std::string distrust(const struct stat& status, bool root_too = false);

// A binary of a folder, by its file's name. None if there is no such file (why is "" then), or if it
// must not be run or does not fit its checksum.
std::optional<Binary> read_binary(int folder, const std::string& file, bool root_too,
                                  std::string& why);
// Under another name first, then renamed. False, and errno, if it cannot be written.
bool write_binary(int folder, const std::string& file, const std::vector<unsigned char>& bytes,
                  unsigned mode);

// A folder of $CATENA_KERNEL_CACHE, else catena/kernels in $XDG_CACHE_HOME or ~/.cache. What is in it
// will be run: the folder and its files must be the user's, and nobody else may write to them. A file
// ends in a checksum; what does not fit is made anew. Where the folder cannot be used binaries live in
// memory, as with CATENA_KERNEL_CACHE=off. For any thread, and any number of processes.
class BinaryCache {
public:
    // Reads the environment. log gets a line for what is wrong.
    explicit BinaryCache(const catena_host& host);

    // key: 64 hexadecimal digits. name: of the kernel, to recognise its file by.
    std::optional<Binary> find(const std::string& name, const std::string& key);
    // Returns the binary as find() would; deletes those used longest ago, with their
    // sources, where all of them are larger than the limit.
    Binary store(const std::string& name, const std::string& key, std::vector<unsigned char> bytes);
    // Writes the source of a kernel beside its binary and returns the path; "" if there is no
    // folder or it cannot be written.
    std::string keep_source(const std::string& name, const std::string& key,
                            const std::string& source);
    // Until the end of its life no other process makes the same key's binary.
    Descriptor lock(const std::string& key) const;

    std::uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }

private:
    void open_folder(const std::string& path);
    void evict(const std::string& newest);
    std::optional<Binary> read(const std::string& file);

    const catena_host& host_;
    std::string path_;
    Descriptor folder_;  // none: in memory
    std::uint64_t limit_;
    std::atomic<std::uint64_t> evicted_{0};
};

}  // namespace catena_jit
