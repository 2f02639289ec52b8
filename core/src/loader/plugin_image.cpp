// Maps plugins and the libraries beside them: the only file that opens libraries.
#include "loader/plugin_image.hpp"

#include "loader/needed_libraries.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <dlfcn.h>
#include <fcntl.h>

#include <deque>

namespace catena {
namespace {

namespace fs = std::filesystem;
namespace dll = boost::dll;

// The text names the symbol or library that is missing, and the file by the name that it was opened
// with, which people do not know.
[[noreturn]] void refused_by_system(const std::string& opened = {}, const std::string& known = {}) {
    const char* reason = dlerror();
    std::string text = reason ? reason : "it gives no reason";
    for (std::size_t at = 0; !opened.empty() && (at = text.find(opened, at)) != text.npos;) {
        text.replace(at, opened.size(), known);
        at += known.size();
    }
    throw PluginError(fmt::format("the system's loader refuses it: {}", text));
}

// `known` is the file's own name, for messages.
dll::shared_library& open_library(const fs::path& path, const fs::path& known) {
    // Never unloaded: arrays, kernels and type information may point into them.
    static auto* mapped = new std::deque<dll::shared_library>;
    boost::system::error_code error;
    dll::shared_library library;
    library.load(boost::filesystem::path(path.string()), error,
                 dll::load_mode::rtld_now | dll::load_mode::rtld_local);
    if (error) refused_by_system(path.string(), known.string());
    return mapped->emplace_back(std::move(library));
}

// With this process's number, not "self": debuggers look for it from outside. "" without a /proc
// that shows this process.
fs::path name_in_proc(const Descriptor& file) {
    std::error_code error;
    const fs::path process = fs::read_symlink("/proc/self", error);
    const fs::path name = fs::path("/proc") / process / "fd" / std::to_string(file.get());
    return error || !is_there(name) ? fs::path() : name;
}

// By the descriptor, which no other file can take the place of. The system's loader takes two
// libraries of one name for one, so it stays open until the process ends. `copied`: it is a copy of the file, which
// the file's own path cannot stand in for.
dll::shared_library& open_descriptor(int fd, const fs::path& path, bool copied) {
    Descriptor kept(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!kept) throw PluginError(fmt::format("it cannot be kept open: {}", system_error()));
    const fs::path name = name_in_proc(kept);
    if (name.empty() && copied) {
        throw PluginError("a copy of it is mapped by its name in /proc: expected one, got none");
    }
    auto& library = open_library(name.empty() ? path : name, path);
    kept.release();
    return library;
}

void open_needed(const NeededLibrary& library) {
    if (!library.file) {  // the folders that the plugin names are not asked for it again
        if (!dlopen(library.name.c_str(), RTLD_NOW | RTLD_LOCAL)) refused_by_system();
        return;
    }
    const TrustedFile& file = *library.file;
    try {
        file.check_unchanged();
        open_descriptor(file.fd(), file.path(), false);
        file.check_unchanged();  // it may be written in place
    } catch (const PluginError& error) {
        refuse_library(file.path(), error);
    }
}

}  // namespace

PluginImage::PluginImage(const TrustedFile& file, Bytes bytes)
    : file_(file), copy_(bytes == Bytes::sealed ? file.sealed_copy() : Descriptor()), elf_(fd()) {}

std::string PluginImage::sha256() const { return sha256_of(fd()); }

// $ORIGIN means nothing to a descriptor: libraries have to be there before those who need them, who
// then find them by SONAME.
boost::dll::shared_library& PluginImage::map() const {
    file_.check_unchanged();
    for (const auto& library : needed_libraries(elf_, file_.path())) open_needed(library);
    file_.check_unchanged();
    auto& library = open_descriptor(fd(), file_.path(), static_cast<bool>(copy_));
    if (!copy_) file_.check_unchanged();  // it may be written in place
    return library;
}

}  // namespace catena
