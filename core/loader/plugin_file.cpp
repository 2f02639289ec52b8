// The usual places, manifests, locks and audit lines: no code of a plugin runs.
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
#include <fstream>
#include <ranges>
#include <sstream>

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
        raise<PluginError>("ABI major: expected {}, got {}", CATENA_ABI_MAJOR, m.abi_major);
    }
    if (m.abi_minor_needed > CATENA_ABI_MINOR) {
        raise<PluginError>("ABI minor: it needs {}.{}, this host has {}.{}", m.abi_major,
                           m.abi_minor_needed, CATENA_ABI_MAJOR, CATENA_ABI_MINOR);
    }
    if (m.struct_size < size_1_0<catena_manifest>) {
        raise<PluginError>("its manifest: struct_size: expected at least {}, got {}",
                           size_1_0<catena_manifest>, m.struct_size);
    }
    LoadedPlugin info{field_text(m.id), field_text(m.version), field_text(m.vendor),
                      field_text(m.devices), path};
    if (info.id.empty()) throw PluginError("its manifest has no id");
    if (!is_id(info.id))
        raise<PluginError>("its manifest: id: expected {}, got '{}'", id_rule, info.id);
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

// ---- locks

namespace {

constexpr const char* default_name = "catena.plugins.lock";

// True also for a dangling symbolic link: a lock was intended, so loading must fail.
bool is_there(const fs::path& lock) {
    std::error_code error;
    return fs::symlink_status(lock, error).type() != fs::file_type::not_found;
}

// Returns read(file). The message of a PluginError that it throws begins with the file's name.
template <class Read>
auto of_file(const fs::path& file, const Read& read) {
    try {
        return read(TrustedFile(file, Writers::owner));
    } catch (const PluginError& error) {
        raise<PluginError>("{}: {}", file.string(), error.what());
    }
}

}  // namespace

std::string as_word(std::string_view text) {
    std::string word;
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (code <= ' ' || code == 0x7f || c == '%' || c == '#')
            word += fmt::format("%{:02X}", code);
        else word += c;
    }
    return word.empty() ? "-" : word;
}

PluginLock PluginLock::read(const fs::path& file) {
    PluginLock lock;
    lock.file_ = file;
    std::ifstream lines;
    try {
        lines.open(TrustedFile(file, Writers::private_group).path());
    } catch (const PluginError& error) {
        raise<PluginError>("lock {}: {}", file.string(), error.what());
    }
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        std::istringstream words(line.substr(0, line.find('#')));
        std::string id, version, hash, more;
        if (!(words >> id)) continue;
        words >> version >> hash >> more;
        if (hash.size() != 64 || hash.find_first_not_of("0123456789abcdef") != hash.npos ||
            !more.empty()) {
            raise<PluginError>(
                "lock {}, line {}: expected ID VERSION SHA256 (64 digits "
                "0-9a-f), got '{}'",
                file.string(), number, beginning(line));
        }
        lock.lines_.push_back({number, id, version, hash});
    }
    return lock;
}

void PluginLock::check(const LoadedPlugin& plugin) const {
    const std::string id = as_word(plugin.id), version = as_word(plugin.version);
    const Line* nearest = nullptr;
    for (const Line& line : lines_) {
        if (line.id != id) continue;
        if (line.version == version && line.sha256 == plugin.sha256) return;
        if (!nearest || line.version == version) nearest = &line;
    }
    if (!nearest)
        raise<PluginError>("lock {}: expected a line for {}, got none", file_.string(), id);
    raise<PluginError>("lock {}, line {}: expected {} {} with SHA-256 {}, got {} with {}",
                       file_.string(), nearest->number, id, nearest->version, nearest->sha256,
                       version, plugin.sha256);
}

void PluginLocks::set(PluginLockMode mode, const fs::path& file) {
    program_ = Setting{mode, file.empty() ? file : fs::absolute(file)};
    read_.clear();
}

std::optional<PluginLocks::Setting> PluginLocks::setting() const {
    if (program_) return program_;
    const char* words = secure_getenv("CATENA_PLUGIN_LOCK");
    if (!words || !*words) return std::nullopt;
    const std::string_view text = words;
    const std::string_view mode = text.substr(0, text.find(':'));
    const fs::path file = text.substr(std::min(mode.size() + 1, text.size()));
    constexpr std::string_view modes[] = {"off", "warn", "strict"};  // as in PluginLockMode
    const auto* const found = std::ranges::find(modes, mode);
    if (found == std::end(modes) || (mode.size() < text.size() && !file.is_absolute())) {
        raise<PluginError>(
            "CATENA_PLUGIN_LOCK: expected strict, warn or off, or one with :/ABSOLUTE/FILE, got "
            "'{}'",
            text);
    }
    return Setting{static_cast<PluginLockMode>(found - modes), file};
}

std::vector<fs::path> PluginLocks::files_for(const PluginFolders& folders) const {
    const auto set = setting();
    if (set && !set->file.empty()) return {set->file};
    std::error_code error;
    const bool same = fs::equivalent(folders.named, folders.real, error);
    std::vector<fs::path> files;
    const fs::path beside = folders.named / default_name, real = folders.real / default_name;
    if (set || is_there(beside)) files.push_back(beside);
    if (!same && is_there(real)) files.push_back(real);
    return files;
}

PluginLockMode PluginLocks::mode(const PluginFolders& folders) const {
    if (const auto set = setting()) return set->mode;
    return files_for(folders).empty() ? PluginLockMode::off : PluginLockMode::strict;
}

std::vector<std::string> PluginLocks::check(const LoadedPlugin& plugin,
                                            const PluginFolders& folders) {
    const PluginLockMode how = mode(folders);
    std::vector<std::string> warnings;
    if (how == PluginLockMode::off) return warnings;
    for (const fs::path& file : files_for(folders)) {
        try {
            auto lock = read_.find(file);
            if (lock == read_.end()) lock = read_.emplace(file, PluginLock::read(file)).first;
            lock->second.check(plugin);
        } catch (const PluginError& error) {
            if (how == PluginLockMode::strict) throw;
            if (warned_.insert(error.what()).second) warnings.emplace_back(error.what());
        }
    }
    return warnings;
}

std::string plugin_sha256(const fs::path& file) {
    return of_file(file, [](const TrustedFile& opened) { return sha256_of(opened.fd()); });
}

LoadedPlugin read_manifest(const fs::path& file) {
    return of_file(file,
                   [&](const TrustedFile& opened) { return read_manifest(opened.fd(), file); });
}

LoadedPlugin read_hashed_manifest(const fs::path& file) {
    return of_file(file, [&](const TrustedFile& opened) {
        LoadedPlugin info = read_manifest(opened.fd(), file);
        info.sha256 = sha256_of(opened.fd());
        opened.check_unchanged();
        return info;
    });
}

std::string plugin_lock_text(std::span<const LoadedPlugin> plugins) {
    std::vector<std::string> lines;
    for (const LoadedPlugin& plugin : plugins) {
        lines.push_back(
            fmt::format("{} {} {}\n", as_word(plugin.id), as_word(plugin.version), plugin.sha256));
    }
    std::ranges::sort(lines);
    std::string text = "# The plugins that may be loaded: id, version, SHA-256.\n";
    for (const std::string& line : lines) text += line;
    return text;
}

}  // namespace catena
