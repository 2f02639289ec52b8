// Reads and writes folders of kernels that come with a program.
#include "shipped.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "types.hpp"

namespace catena_jit {
namespace {

std::string system_error() { return std::strerror(errno); }  // NOLINT(concurrency-mt-unsafe)

std::string variable(const char* name) {
    const char* value = secure_getenv(name);
    return value != nullptr ? value : "";
}

std::string file_name(const std::string& name, const std::string& key, const char* target) {
    return name + "-" + key + "." + target + ".kernel";
}

// An open folder, or why it cannot be used.
Descriptor open_folder(const std::string& path, std::string& why) {
    if (path.empty() || path[0] != '/') {
        why = "expected an absolute path";
        return {};
    }
    Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    if (!folder || fstat(folder.get(), &status) != 0) why = system_error();
    else why = distrust(status, /*root_too=*/true);
    return why.empty() ? std::move(folder) : Descriptor();
}

}  // namespace

Shipped::Shipped(const catena_host& host) : host_(host) {
    std::string list = variable("CATENA_KERNEL_PATH");
    while (!list.empty()) {
        const std::string path = list.substr(0, list.find(':'));
        list.erase(0, path.size() + 1);
        std::string why;
        if (path.empty()) continue;
        if (Descriptor folder = open_folder(path, why))
            folders_.push_back({path, std::move(folder)});
        else warn("CATENA_KERNEL_PATH: " + path + ": " + why + "; no kernel is taken from there");
    }
    if (const std::string path = variable("CATENA_KERNEL_EXPORT"); !path.empty()) {
        std::string why;
        if (path[0] == '/') mkdir(path.c_str(), 0755);
        export_folder_ = open_folder(path, why);
        if (!export_folder_) warn("CATENA_KERNEL_EXPORT: " + path + ": " + why);
    }
}

void Shipped::warn(const std::string& text) const {
    host_.log(nullptr, CATENA_LOG_WARNING, ("[kernels] " + text).c_str());
}

bool Shipped::empty() const {
    const std::lock_guard guard(mutex_);
    return folders_.empty();
}

void Shipped::use(const std::string& path) {
    std::string why;
    Descriptor folder = open_folder(path, why);
    if (!folder)
        throw Failure{CATENA_E_INVALID,
                      "[kernels] folder of compiled kernels " + path + ": " + why};
    const std::lock_guard guard(mutex_);
    for (const Folder& known : folders_)
        if (known.path == path) return;
    folders_.push_back({path, std::move(folder)});
}

std::optional<Binary> Shipped::find(const std::string& name, const std::string& key,
                                    const char* const* targets) const {
    const std::lock_guard guard(mutex_);
    for (const Folder& folder : folders_) {
        for (const char* const* target = targets; *target != nullptr; ++target) {
            const std::string file = file_name(name, key, *target);
            std::string why;
            std::optional<Binary> binary =
                read_binary(folder.descriptor.get(), file, /*root_too=*/true, why);
            if (binary) return binary;
            if (!why.empty()) warn(folder.path + "/" + file + ": " + why + "; it is not used");
        }
    }
    return std::nullopt;
}

void Shipped::put(const std::string& name, const std::string& key, const char* target,
                  const std::vector<unsigned char>& bytes) {
    const std::lock_guard guard(mutex_);
    if (target != nullptr) {
        const std::string file = file_name(name, key, target);
        if (!write_binary(export_folder_.get(), file, bytes, 0644))
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
