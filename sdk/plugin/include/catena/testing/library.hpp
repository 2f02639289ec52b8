// Opening a plugin's file: once in a process and never closed, as in a host. What is wrong with it is
// said with its path. And where catena's own plugins are.
#pragma once

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "catena/abi/plugin.h"
#include "catena/testing/failure.hpp"

namespace catena::testing::detail {

struct Library {
    std::string path;  // without links
    const catena_manifest* manifest = nullptr;
    const catena_plugin* table = nullptr;
};

inline std::string real_path(const std::string& path) {
    char* real = realpath(path.c_str(), nullptr);
    if (real == nullptr)
        throw Failure(CATENA_E_INVALID, "[plugin] " + path + ": expected a file, got none (" +
                                            std::strerror(errno) + ")");
    const std::string result = real;
    std::free(real);
    return result;
}

// Deinitialised at the process's end, in the other order.
class Libraries {
public:
    ~Libraries() {
        for (std::size_t i = order_.size(); i-- > 0;)
            if (order_[i]->deinit != nullptr) order_[i]->deinit();
    }
    static Libraries& get() {
        static Libraries all;
        return all;
    }

    // `context` makes a catena_ctx for each call.
    template <class Context>
    const Library& open(const std::string& path, const catena_host& host, const Context& context) {
        const std::string real = real_path(path);
        if (const auto found = all_.find(real); found != all_.end()) return found->second;
        const auto refuse = [&](const std::string& text) {
            throw Failure(CATENA_E_INVALID, "[plugin] " + path + ": " + text);
        };
        void* library = dlopen(real.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const std::string text = dlerror();  // begins with the path, as a rule
            refuse(text.starts_with(real + ": ") ? text.substr(real.size() + 2) : text);
        }
        Library opened = {
            real, static_cast<const catena_manifest*>(dlsym(library, "catena_manifest_v1"))};
        const auto entry = reinterpret_cast<decltype(&catena_plugin_entry_v1)>(
            dlsym(library, "catena_plugin_entry_v1"));
        if (opened.manifest == nullptr || entry == nullptr)
            refuse("expected catena_manifest_v1 and catena_plugin_entry_v1 exported, got none");
        const catena_manifest& m = *opened.manifest;
        if (std::memcmp(m.magic, CATENA_MANIFEST_MAGIC, sizeof m.magic) != 0)
            refuse("expected a manifest, got other bytes");
        if (m.abi_major != host.abi_major || m.abi_minor_needed > host.abi_minor)
            refuse("ABI: it needs " + version(m.abi_major, m.abi_minor_needed) +
                   ", this host has " + version(host.abi_major, host.abi_minor));
        auto ctx = context();
        const auto reason = [&] {
            return ctx.error.empty() ? std::string("it gave no reason") : ctx.error;
        };
        opened.table = entry(&host, &ctx);
        if (opened.table == nullptr) refuse("its entry failed: " + reason());
        if (opened.table->init != nullptr && opened.table->init(&host, &ctx) != CATENA_OK)
            refuse("its init() failed: " + reason());
        order_.push_back(opened.table);
        return all_.emplace(real, opened).first->second;
    }

private:
    static std::string version(unsigned major, unsigned minor) {
        return std::to_string(major) + "." + std::to_string(minor);
    }

    std::map<std::string, Library> all_;
    std::vector<const catena_plugin*> order_;
};

// The folder of catena's own plugins: empty if nobody named one.
inline std::string own_folder() {
    if (const char* folder = std::getenv("CATENA_TESTING_PLUGINS")) return folder;
#if defined(CATENA_TESTING_PLUGINS)
    return CATENA_TESTING_PLUGINS;
#else
    return {};
#endif
}

inline std::string contents(const std::string& path) {
    std::string bytes;
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) return bytes;
    char piece[1 << 16];
    while (const std::size_t n = std::fread(piece, 1, sizeof piece, file)) bytes.append(piece, n);
    std::fclose(file);
    return bytes;
}

// Of catena's own plugins those that hold a name: the one that has the function, and its users. Those
// that do not are not worth loading. NAME.DEVICE.catena has kernels alone.
inline std::vector<std::string> own_plugins_with(const std::string& name) {
    const std::string folder = own_folder();
    std::vector<std::string> files;
    DIR* open = folder.empty() ? nullptr : opendir(folder.c_str());
    if (open == nullptr) return files;
    while (const dirent* entry = readdir(open)) {
        const std::string file = entry->d_name;
        const std::size_t dot = file.find('.');
        if (dot != std::string::npos && file.substr(dot) == ".catena")
            files.push_back(folder + "/" + file);
    }
    closedir(open);
    std::sort(files.begin(), files.end());
    std::erase_if(files, [&](const std::string& file) {
        return contents(file).find(name + '\0') == std::string::npos;
    });
    return files;
}

// The one of `known` that is a slip away from `name`, or an empty text.
template <class Map>
std::string nearest(const std::string& name, const Map& known) {
    std::string best;
    std::size_t least = name.size() / 4 + 2;  // slips
    for (const auto& [other, ignored] : known) {
        std::vector<std::size_t> row(other.size() + 1);
        for (std::size_t k = 0; k < row.size(); ++k) row[k] = k;
        for (std::size_t i = 0; i < name.size(); ++i) {
            std::size_t corner = std::exchange(row[0], i + 1);
            for (std::size_t k = 0; k < other.size(); ++k) {
                const std::size_t replaced = corner + (name[i] == other[k] ? 0 : 1);
                corner = row[k + 1];
                row[k + 1] = std::min({replaced, row[k] + 1, row[k + 1] + 1});
            }
        }
        if (row.back() >= least) continue;
        least = row.back();
        best = other;
    }
    return best;
}

}  // namespace catena::testing::detail
