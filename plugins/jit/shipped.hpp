// Compiled kernels that come with a program.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "binary_cache.hpp"

namespace catena_jit {

// Folders of binaries by name, key and target, from $CATENA_KERNEL_PATH and from use(): they are read
// only. What is in them will be run: the folders and their files must be root's or the user's, and
// nobody else may write to them. $CATENA_KERNEL_EXPORT is a folder that such binaries are written to. For
// any thread.
class Shipped {
public:
    // Reads the environment. log gets a line for what is wrong.
    explicit Shipped(const catena_host& host);

    bool empty() const;
    // Throws Failure.
    void use(const std::string& folder);
    // For the first of the targets, NULL-terminated, that there is a sound binary for.
    std::optional<Binary> find(const std::string& name, const std::string& key,
                               const char* const* targets) const;

    bool exports() const { return static_cast<bool>(export_folder_); }
    // target: NULL where a binary cannot be shipped.
    void put(const std::string& name, const std::string& key, const char* target,
             const std::vector<unsigned char>& bytes);

private:
    struct Folder {
        std::string path;
        Descriptor descriptor;
    };
    void warn(const std::string& text) const;

    const catena_host& host_;
    mutable std::mutex mutex_;
    std::vector<Folder> folders_;
    Descriptor export_folder_;
    bool said_ = false;  // that nothing is exported
};

}  // namespace catena_jit
