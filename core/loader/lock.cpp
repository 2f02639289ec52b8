// Reads and checks lock files.
#include "plugin_file.hpp"

#include <catena/core/error.hpp>
#include <catena/core/tables.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace catena {
namespace {

namespace fs = std::filesystem;

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
        throw PluginError(fmt::format("{}: {}", file.string(), error.what()));
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
        throw PluginError(fmt::format("lock {}: {}", file.string(), error.what()));
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
            throw PluginError(
                fmt::format("lock {}, line {}: expected ID VERSION SHA256 (64 digits "
                            "0-9a-f), got '{}'",
                            file.string(), number, beginning(line)));
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
        throw PluginError(
            fmt::format("lock {}: expected a line for {}, got none", file_.string(), id));
    throw PluginError(fmt::format(
        "lock {}, line {}: expected {} {} with SHA-256 {}, got {} with {}", file_.string(),
        nearest->number, id, nearest->version, nearest->sha256, version, plugin.sha256));
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
        throw PluginError(fmt::format(
            "CATENA_PLUGIN_LOCK: expected strict, warn or off, or one with :/ABSOLUTE/FILE, got "
            "'{}'",
            text));
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
