// Maps plugins and the libraries beside them: the only file that opens libraries.
#include "plugin_image.hpp"

#include "sha256.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <dlfcn.h>
#include <fcntl.h>

#include <algorithm>
#include <deque>

namespace catena {
namespace {

namespace fs = std::filesystem;
namespace dll = boost::dll;

dll::shared_library& open_library(const fs::path& path) {
    // Never unloaded: arrays, kernels and type information may point into them.
    static auto* mapped = new std::deque<dll::shared_library>;
    boost::system::error_code error;
    dll::shared_library library;
    library.load(boost::filesystem::path(path.string()), error,
                 dll::load_mode::rtld_now | dll::load_mode::rtld_local);
    if (error) {
        const char* text = dlerror();  // names the symbol or library that is missing
        throw PluginError(
            fmt::format("the system's loader refuses it: {}", text ? text : error.message()));
    }
    return mapped->emplace_back(std::move(library));
}

bool is_loaded(const std::string& library) {
    void* handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle) dlclose(handle);
    return handle != nullptr;
}

// "$ORIGIN/lib" with the folder that it means; what is not absolute would be looked for in the
// current directory.
fs::path resolved(const std::string& text, const fs::path& origin) {
    for (const std::string_view token : {"$ORIGIN", "${ORIGIN}"}) {
        if (!text.starts_with(token)) continue;
        const std::string rest = text.substr(token.size());
        if (rest.empty() || rest.front() == '/') return origin.string() + rest;
    }
    if (text.empty() || text.front() != '/') {
        throw PluginError(
            fmt::format("where it looks for libraries: expected absolute folders or $ORIGIN, got "
                        "'{}', in the current directory",
                        text));
    }
    return text;
}

}  // namespace

PluginImage::PluginImage(const TrustedFile& file, Bytes bytes)
    : file_(file), copy_(bytes == Bytes::sealed ? file.sealed_copy() : Descriptor()), elf_(fd()) {}

std::string PluginImage::sha256() const { return sha256_of(fd()); }

// Those in the folders that it names itself and that nobody has loaded yet.
std::vector<TrustedFile> PluginImage::brought_libraries() const {
    const ElfFile::Wants wants = elf_.wants();
    const fs::path origin = file_.path().parent_path();
    std::vector<fs::path> folders;
    for (const std::string& folder : wants.folders) folders.push_back(resolved(folder, origin));
    std::vector<TrustedFile> found;
    const auto take = [&](const fs::path& path) {
        try {
            found.emplace_back(path, Writers::private_group);
        } catch (const PluginError& error) {
            throw PluginError(fmt::format("its library {}: {}", path.string(), error.what()));
        }
    };
    for (const std::string& library : wants.libraries) {
        if (library.find('/') != library.npos) {
            take(resolved(library, origin));
            continue;
        }
        const auto has_it = [&](const fs::path& folder) { return is_there(folder / library); };
        const auto folder = std::ranges::find_if(folders, has_it);
        if (folder != folders.end() && !is_loaded(library)) take(*folder / library);
    }
    return found;
}

boost::dll::shared_library& PluginImage::map() const {
    const std::vector<TrustedFile> libraries = brought_libraries();
    file_.check_unchanged();
    if (!copy_) {
        auto& library = open_library(file_.path());
        file_.check_unchanged();  // else another file may be what was mapped
        return library;
    }
    // $ORIGIN means nothing to a copy: what it would lead to is there before, found by SONAME.
    for (const TrustedFile& library : libraries) open_library(library.path());
    Descriptor kept(fcntl(copy_.get(), F_DUPFD_CLOEXEC, 0));
    auto& library = open_library(fmt::format("/proc/self/fd/{}", kept.get()));
    kept.release();  // open for ever: the system's loader takes two libraries of one name for one
    return library;
}

}  // namespace catena
