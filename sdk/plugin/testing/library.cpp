// Loads and finds the files of plugins.
#include "testing/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>

namespace catena::testing::detail {
namespace {

std::string real_path(const std::string& path) {
    std::error_code error;
    const auto real = std::filesystem::canonical(path, error);
    if (error)
        throw Failure(CATENA_E_INVALID, "expected a file, got none (" + error.message() + ")");
    return real.string();
}

std::string version(unsigned major, unsigned minor) {
    return std::to_string(major) + "." + std::to_string(minor);
}
void need_manifest(const catena_manifest& m, const catena_host& host) {
    if (std::memcmp(m.magic, CATENA_MANIFEST_MAGIC, sizeof m.magic) != 0)
        throw Failure(CATENA_E_INVALID, "expected a manifest, got other bytes");
    if (m.abi_major != host.abi_major || m.abi_minor_needed > host.abi_minor)
        throw Failure(CATENA_E_INVALID,
                      "ABI: it needs " + version(m.abi_major, m.abi_minor_needed) +
                          ", this host has " + version(host.abi_major, host.abi_minor));
}

// The loaded plugins, deinitialised in reverse order at the end of the process.
struct Libraries {
    ~Libraries() {
        for (std::size_t i = all.size(); i-- > 0;)
            if (all[i].table->deinit != nullptr) all[i].table->deinit();
    }
    std::deque<Library> all;
};

}  // namespace

Module::Module(const std::string& file) {
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const std::string text = dlerror();  // usually begins with the path
        throw Failure(
            CATENA_E_INVALID,
            "dlopen: " + (text.starts_with(file + ": ") ? text.substr(file.size() + 2) : text));
    }
    manifest = static_cast<const catena_manifest*>(dlsym(library, "catena_manifest_v1"));
    entry = reinterpret_cast<decltype(entry)>(dlsym(library, "catena_plugin_entry_v1"));
    if (manifest == nullptr || entry == nullptr)
        throw Failure(CATENA_E_INVALID,
                      "expected catena_manifest_v1 and catena_plugin_entry_v1 exported, got none");
}

const catena_plugin& Module::table(const catena_host& host, World& world, bool init) const {
    catena_ctx ctx{&world, {}, {}};
    const auto refuse = [&](const char* what) {
        throw Failure(CATENA_E_INVALID,
                      what + (ctx.error.empty() ? std::string("it gave no reason") : ctx.error));
    };
    const catena_plugin* table = entry(&host, &ctx);
    if (table == nullptr) refuse("catena_plugin_entry_v1() returned NULL: ");
    if (init && table->init != nullptr && table->init(&host, &ctx) != CATENA_OK)
        refuse("init() failed: ");
    return *table;
}

const Library& open_library(const std::string& path, World& world) try {
    static Libraries libraries;
    const std::string real = real_path(path);
    const auto found = std::ranges::find(libraries.all, real, &Library::path);
    if (found != libraries.all.end()) return *found;
    const Module module(real);
    need_manifest(*module.manifest, World::host());
    const catena_plugin& table = module.table(World::host(), world, true);
    return libraries.all.emplace_back(Library{real, module.manifest, &table});
} catch (const Failure& e) {
    throw Failure(e.status(), "[plugin] " + path + ": " + e.what());
}

std::vector<std::string> plugins_with(const std::string& name, const std::string& folder) {
    std::vector<std::string> files;
    std::error_code error;  // there may be no such folder
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
        const std::string file = entry.path().filename().string();
        const std::size_t dot = file.find('.');
        if (dot != std::string::npos && file.substr(dot) == ".catena")
            files.push_back(folder + "/" + file);
    }
    std::sort(files.begin(), files.end());
    std::erase_if(files, [&](const std::string& file) {
        std::ifstream in(file, std::ios::binary | std::ios::ate);
        std::string bytes(static_cast<std::size_t>(std::max<std::streamoff>(in.tellg(), 0)), '\0');
        in.seekg(0).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return bytes.find(name + '\0') == std::string::npos;
    });
    return files;
}

}  // namespace catena::testing::detail
