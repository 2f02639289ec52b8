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

// With this process's number, not "self": debuggers look for it from outside. "" without a /proc
// that shows this process.
fs::path name_in_proc(const Descriptor& file) {
    std::error_code error;
    const fs::path process = fs::read_symlink("/proc/self", error);
    const fs::path name = fs::path("/proc") / process / "fd" / std::to_string(file.get());
    return error || !is_there(name) ? fs::path() : name;
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

[[noreturn]] void refuse_library(const fs::path& path, const PluginError& reason) {
    throw PluginError(fmt::format("its library {}: {}", path.string(), reason.what()));
}

void check_library(const TrustedFile& library) {
    try {
        library.check_unchanged();
    } catch (const PluginError& error) {
        refuse_library(library.path(), error);
    }
}

}  // namespace

PluginImage::PluginImage(const TrustedFile& file, Bytes bytes)
    : file_(file), copy_(bytes == Bytes::sealed ? file.sealed_copy() : Descriptor()), elf_(fd()) {}

std::string PluginImage::sha256() const { return sha256_of(fd()); }

// Those in the folders that it names itself and that nobody has loaded yet.
std::vector<PluginImage::Brought> PluginImage::brought_libraries() const {
    const ElfFile::Wants wants = elf_.wants();
    const fs::path origin = file_.path().parent_path();
    std::vector<fs::path> folders;
    for (const std::string& folder : wants.folders) folders.push_back(resolved(folder, origin));
    std::vector<Brought> found;
    const auto take = [&](const std::string& name, const fs::path& path) {
        try {
            found.push_back({name, TrustedFile(path, Writers::private_group)});
        } catch (const PluginError& error) {
            refuse_library(path, error);
        }
    };
    for (const std::string& library : wants.libraries) {
        if (library.find('/') != library.npos) {
            take(library, resolved(library, origin));
            continue;
        }
        const auto has_it = [&](const fs::path& folder) { return is_there(folder / library); };
        const auto folder = std::ranges::find_if(folders, has_it);
        if (folder != folders.end() && !is_loaded(library)) take(library, *folder / library);
    }
    return found;
}

// Before the plugin: $ORIGIN means nothing to a descriptor, so it finds them by SONAME. False if it
// cannot.
bool PluginImage::map_brought() const {
    bool found = true;
    for (const auto& [name, library] : brought_libraries()) {
        check_library(library);
        try {
            open_library(library.path());
        } catch (const PluginError&) {  // it may need the folders that the plugin names
            if (copy_) throw;
            found = false;
        }
        check_library(library);
        found = found && is_loaded(name);
    }
    return found;
}

// By the descriptor: of a file that takes this one's name meanwhile the constructors would run.
boost::dll::shared_library& PluginImage::map() const {
    file_.check_unchanged();
    const bool found = map_brought();
    file_.check_unchanged();
    Descriptor kept(fcntl(fd(), F_DUPFD_CLOEXEC, 0));
    if (!kept) throw PluginError(fmt::format("it cannot be kept open: {}", system_error()));
    const fs::path name = name_in_proc(kept);
    if (copy_ && name.empty()) {
        throw PluginError("a copy of it is mapped by its name in /proc: expected one, got none");
    }
    auto& library = open_library(name.empty() || (!copy_ && !found) ? file_.path() : name);
    kept.release();  // open for ever: the system's loader takes two libraries of one name for one
    if (!copy_) file_.check_unchanged();  // else it may be written in place
    return library;
}

}  // namespace catena
