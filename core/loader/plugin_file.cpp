// The usual places, manifests and audit lines: no code of a plugin runs.
#include "plugin_file.hpp"

#include "elf_file.hpp"

#include "device/device_state.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ids.hpp>
#include <limits.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <ranges>

namespace catena {
namespace {

namespace fs = std::filesystem;

const char* audit_file() {
    const char* file = secure_getenv("CATENA_PLUGIN_AUDIT");
    return file && *file ? file : nullptr;
}

// Uses one write(), so that lines of several processes do not mix.
void append(const char* file, const std::string& line) {
    constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
    const bool absolute = *file == '/';  // never in the current directory
    const Descriptor log(absolute ? open(file, flags, 0600) : -1);
    const bool written =
        log && write(log.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
    static bool told = false;
    if (written || std::exchange(told, true)) return;
    tell(CATENA_LOG_WARNING,
         fmt::format("[plugin] CATENA_PLUGIN_AUDIT: {}: cannot be written: {}", file,
                     absolute ? std::strerror(errno) : "expected an absolute path"));
}

std::string line_of(std::string_view verdict, const Attempt& a, std::string_view reason) {
    std::string line = fmt::format("{} id={} version={} sha256={}", verdict, as_word(a.info.id),
                                   as_word(a.info.version), as_word(a.info.sha256));
    if (a.owner) line += fmt::format(" owner={} mode={:04o}", *a.owner, a.mode);
    else line += " owner=- mode=-";
    line += fmt::format(" path={}", as_word(a.info.path.string()));
    if (a.info.is_another_file()) line += fmt::format(" file={}", as_word(a.info.file.string()));
    if (!reason.empty()) line += " reason=";
    for (const char c : reason) line += static_cast<unsigned char>(c) < ' ' || c == 0x7f ? ' ' : c;
    return line;
}

}  // namespace

LoadedPlugin read_manifest(int fd, const fs::path& path) {
    const catena_manifest m = manifest_of(ElfFile(fd));
    if (m.abi_major != CATENA_ABI_MAJOR) {
        throw PluginError(
            fmt::format("ABI major: expected {}, got {}", CATENA_ABI_MAJOR, m.abi_major));
    }
    if (m.abi_minor_needed > CATENA_ABI_MINOR) {
        throw PluginError(fmt::format("ABI minor: it needs {}.{}, this host has {}.{}", m.abi_major,
                                      m.abi_minor_needed, CATENA_ABI_MAJOR, CATENA_ABI_MINOR));
    }
    if (m.struct_size < size_1_0<catena_manifest>) {
        throw PluginError(fmt::format("its manifest: struct_size: expected at least {}, got {}",
                                      size_1_0<catena_manifest>, m.struct_size));
    }
    LoadedPlugin info{field_text(m.id), field_text(m.version), field_text(m.vendor),
                      field_text(m.devices), path};
    if (info.id.empty()) throw PluginError("its manifest has no id");
    if (!is_id(info.id))
        throw PluginError(fmt::format("its manifest: id: expected {}, got '{}'", id_rule, info.id));
    return info;
}

// secure_getenv(): a setuid program must not follow the environment of the user who starts it.
std::vector<SearchedFolder> usual_folders(std::vector<RefusedPlugin>& refused) {
    std::vector<SearchedFolder> folders;
    const char* const named = secure_getenv("CATENA_PLUGIN_PATH");
    for (const auto part : std::views::split(std::string_view(named ? named : ""), ':')) {
        const fs::path folder(part.begin(), part.end());
        if (folder.is_absolute()) folders.push_back({folder, "CATENA_PLUGIN_PATH"});
        else if (!folder.empty())
            refused.push_back({folder, "CATENA_PLUGIN_PATH: expected absolute folders"});
    }
    const char* data = secure_getenv("XDG_DATA_HOME");
    const char* home = secure_getenv("HOME");
    fs::path user = data ? data : "";
    if (!user.is_absolute()) user = home && *home ? fs::path(home) / ".local/share" : fs::path();
    if (user.is_absolute()) folders.push_back({user / "catena" / "plugins", "user"});
    if (!own_folder().empty()) folders.push_back({own_folder() / "catena" / "plugins", "system"});
    return folders;
}

std::vector<RefusedPlugin> add_plugin_files(const fs::path& folder, std::vector<fs::path>& files) {
    const auto before = static_cast<std::ptrdiff_t>(files.size());
    std::error_code error;
    for (fs::directory_iterator item(folder, error), end; !error && item != end;
         item.increment(error))
        if (item->path().extension() == ".catena") files.push_back(item->path());
    std::sort(files.begin() + before, files.end());
    if (!error || error == std::errc::no_such_file_or_directory) return {};
    return {{folder, fmt::format("the folder cannot be read: {}", error.message())}};
}

Attempt::Attempt(const std::filesystem::path& file) {
    info.path = file;
    struct stat status {};
    if (!file.is_absolute() || stat(file.c_str(), &status) != 0) return;
    owner = status.st_uid;
    mode = status.st_mode & 07777;
}

bool audit_has_file() { return audit_file() != nullptr; }

void audit(std::string_view verdict, const Attempt& attempt, std::string_view reason) {
    tell(CATENA_LOG_INFO, line_of(verdict, attempt, reason));
    audit_to_file(verdict, attempt, reason);
}

void audit_to_file(std::string_view verdict, const Attempt& attempt, std::string_view reason) {
    if (const char* file = audit_file()) {
        append(file,
               fmt::format("{:%Y-%m-%dT%H:%M:%SZ} pid={} {}\n", fmt::gmtime(std::time(nullptr)),
                           getpid(), line_of(verdict, attempt, reason)));
    }
}

}  // namespace catena
