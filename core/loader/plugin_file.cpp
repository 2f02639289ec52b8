// Checks owners, modes and access lists along a path, hashes files, finds the usual folders, reads manifests
// and locks, and writes audit lines. No code of a plugin runs.
#include "plugin_file.hpp"

#include "elf_file.hpp"

#include "device/device_state.hpp"

#include <fmt/chrono.h>
#include <boost/dll/runtime_symbol_info.hpp>

#include <ids.hpp>
#include <limits.hpp>

#include <acl/libacl.h>
#include <fcntl.h>
#include <grp.h>
#include <nettle/sha2.h>
#include <pwd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <list>
#include <ranges>
#include <sstream>

namespace catena {
namespace {

namespace fs = std::filesystem;
using Uids = std::vector<uid_t>;

// The path of this library, resolved at start: it may be relative to the directory that is current then.
const fs::path own_file = [] {
    std::error_code error;
    return fs::canonical(boost::dll::this_line_location(error), error);
}();

// Whether the folder contains this library. A user who can write there can replace the library itself.
bool is_above_this(const fs::path& folder) {
    return std::mismatch(folder.begin(), folder.end(), own_file.begin(), own_file.end()).first ==
           folder.end();
}

// Returns root, the user, the owner of this library, and the uids of $CATENA_PLUGIN_OWNERS ("1001:1002").
Uids trusted_owners() {
    Uids owners{0, geteuid()};
    struct stat status {};
    if (stat(own_file.c_str(), &status) == 0) owners.push_back(status.st_uid);
    const char* more = secure_getenv("CATENA_PLUGIN_OWNERS");
    std::string_view list = more ? more : "";
    if (list.ends_with(':')) list.remove_suffix(1);
    for (const auto part : std::views::split(list, ':')) {
        const std::string_view word(part.begin(), part.end());
        uid_t uid = 0;
        const auto [stop, error] = std::from_chars(word.begin(), word.end(), uid);
        if (error != std::errc() || stop != word.end()) {
            raise<PluginError>("CATENA_PLUGIN_OWNERS: expected uids with ':' between, got '{}'",
                               more);
        }
        owners.push_back(uid);
    }
    return owners;
}

// Whether it is the primary group of other users, who are not in the group's list of members.
bool is_primary_group_of_others(uid_t user, gid_t group) {
    std::array<char, 16384> texts;
    passwd entry, *other = nullptr;
    int error = 0;
    bool found = false;
    setpwent();
    while ((error = getpwent_r(&entry, texts.data(), texts.size(), &other)) == 0 && other)
        found = found || (other->pw_gid == group && other->pw_uid != user);
    endpwent();
    return found || (error != 0 && error != ENOENT);  // ENOENT: end of the list
}

// Whether the group has the user's name and no other member. Systems that make such a group for each
// account use umask 002, and the group can write to the user's folders.
bool is_private_group_of(uid_t user, gid_t group) {
    std::array<char, 16384> user_texts, group_texts;
    passwd user_entry, *u = nullptr;
    ::group group_entry, *g = nullptr;
    if (getpwuid_r(user, &user_entry, user_texts.data(), user_texts.size(), &u) != 0 || !u ||
        getgrgid_r(group, &group_entry, group_texts.data(), group_texts.size(), &g) != 0 || !g ||
        u->pw_gid != group || std::strcmp(u->pw_name, g->gr_name) != 0)
        return false;
    for (char** member = g->gr_mem; *member; ++member)
        if (std::strcmp(*member, u->pw_name) != 0) return false;
    return !is_primary_group_of_others(user, group);
}

// what: "file", "folder" or "link".
void check_owner(const char* what, const fs::path& path, const struct stat& status) {
    if (std::ranges::count(trusted_owners(), status.st_uid) > 0) return;
    raise<PluginError>(
        "owner of the {} {}: expected root or this user (uid {}), got uid {}; if that owner is "
        "trusted: CATENA_PLUGIN_OWNERS={}",
        what, path.string(), geteuid(), status.st_uid, status.st_uid);
}

// Accepts a group that can write if nobody else is in it: pip installs with umask 002 like that.
void check_mode(const char* what, const fs::path& path, const struct stat& status) {
    if (!(status.st_mode & (S_IWGRP | S_IWOTH))) return;
    const Uids trusted = trusted_owners();
    const auto is_private = [&] {
        return std::ranges::any_of(trusted,
                                   [&](uid_t u) { return is_private_group_of(u, status.st_gid); });
    };
    if (status.st_mode & S_IWOTH || !is_private()) {
        raise<PluginError>(
            "mode of the {} {}: expected that only its owner can write, got {:04o} (group {}); "
            "chmod go-w {}",
            what, path.string(), status.st_mode & 07777, status.st_gid, path.string());
    }
    // The group's bits are then those of an access list (POSIX ACL), which may name other users.
    if (acl_extended_file(path.c_str()) > 0) {
        raise<PluginError>(
            "access list of the {} {}: expected none where a group can write; setfacl -b {}", what,
            path.string(), path.string());
    }
}

// Follows a path from the root and checks each folder and each link on the way. No other user can
// change what has been checked, so the path leads to the same file afterwards.
class Walk {
public:
    explicit Walk(const fs::path& path) {
        enter("/");
        std::error_code error;
        const fs::path relative = fs::absolute(path, error).relative_path();
        rest_.assign(relative.begin(), relative.end());
        while (!rest_.empty()) step();
        if (file.empty()) throw PluginError("it is no regular file");
        if (!is_above_this(at_)) check_mode("folder", at_, folder_);
    }
    fs::path file;
    struct stat status {};

private:
    static struct stat status_of(const fs::path& path) {
        struct stat found {};
        if (lstat(path.c_str(), &found) == 0) return found;
        if (errno == ENOENT) throw PluginError("there is no such file");
        raise<PluginError>("{}: {}", path.string(), std::strerror(errno));
    }

    void enter(const fs::path& folder) {
        at_ = folder;
        folder_ = status_of(folder);
        if (is_above_this(folder)) return;
        check_owner("folder", folder, folder_);
        // Only the owner of a file can replace it in a sticky folder, and the next step checks that.
        if (!(folder_.st_mode & S_ISVTX)) check_mode("folder", folder, folder_);
    }

    void step() {
        const fs::path name = rest_.front();
        rest_.pop_front();
        if (name.empty() || name == ".") return;
        if (name == "..") return enter(at_.parent_path());
        const fs::path here = at_ / name;
        const struct stat found = status_of(here);
        if (S_ISLNK(found.st_mode)) return follow(here, found);
        if (S_ISDIR(found.st_mode)) return enter(here);
        if (!rest_.empty()) throw PluginError("there is no such file");
        if (!S_ISREG(found.st_mode)) return;
        file = here;
        status = found;
    }

    void follow(const fs::path& link, const struct stat& found) {
        check_owner("link", link, found);
        if (++links_ > 40) raise<PluginError>("{}: links in a circle", link.string());
        std::error_code error;
        const fs::path target = fs::read_symlink(link, error);
        if (error) raise<PluginError>("{}: the link cannot be read", link.string());
        if (target.is_absolute()) enter("/");
        const fs::path relative = target.relative_path();
        rest_.insert(rest_.begin(), relative.begin(), relative.end());
    }

    fs::path at_;
    struct stat folder_ {};  // of at_
    std::list<fs::path> rest_;
    int links_ = 0;
};

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

constexpr const char* default_name = "catena.plugins.lock";

// Whether a lock exists. A dangling symbolic link counts: a lock was intended, so loading must fail.
bool is_there(const fs::path& lock) {
    std::error_code error;
    return fs::symlink_status(lock, error).type() != fs::file_type::not_found;
}

// Returns read(file). The message of a PluginError that it throws begins with the file's name.
template <class Read>
auto of_file(const fs::path& file, const Read& read) {
    try {
        return read(TrustedFile(file));
    } catch (const PluginError& error) {
        raise<PluginError>("{}: {}", file.string(), error.what());
    }
}

}  // namespace

fs::path own_folder() { return own_file.parent_path(); }

std::string sha256_of(int fd) {
    sha256_ctx hash;
    sha256_init(&hash);
    std::vector<unsigned char> buffer(std::size_t{1} << 18);
    for (off_t offset = 0;;) {
        const ssize_t n = pread(fd, buffer.data(), buffer.size(), offset);
        if (n < 0) throw PluginError("the file cannot be read");
        if (n == 0) break;
        sha256_update(&hash, static_cast<std::size_t>(n), buffer.data());
        offset += n;
    }
    std::array<unsigned char, SHA256_DIGEST_SIZE> digest;
    sha256_digest(&hash, digest.size(), digest.data());
    return fmt::format("{:02x}", fmt::join(digest, ""));
}

TrustedFile::TrustedFile(const fs::path& path) {
    const Walk walk(path);
    path_ = walk.file;
    status_ = walk.status;
    check_owner("file", path_, status_);
    check_mode("file", path_, status_);
    file_ = Descriptor(open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC));
    if (!file_) raise<PluginError>("the file cannot be opened: {}", std::strerror(errno));
}

bool is_same_file(const struct stat& a, const struct stat& b) {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
           std::memcmp(&a.st_mtim, &b.st_mtim, sizeof(timespec)) == 0;
}

void TrustedFile::check_unchanged() const {
    struct stat now {};
    if (lstat(path_.c_str(), &now) == 0 && is_same_file(now, status_) &&
        std::memcmp(&now.st_ctim, &status_.st_ctim, sizeof(timespec)) == 0)
        return;
    throw PluginError("it was replaced or changed after it was checked");
}

// ---- folders, manifests, the audit

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

std::vector<LockLine> read_lock(const fs::path& file) {
    std::vector<LockLine> all;
    std::ifstream lines;
    try {
        lines.open(TrustedFile(file).path());
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
        all.push_back({number, id, version, hash});
    }
    return all;
}

void check_lock(const fs::path& file, const std::vector<LockLine>& lines,
                const LoadedPlugin& plugin) {
    const std::string id = as_word(plugin.id), version = as_word(plugin.version);
    const LockLine* nearest = nullptr;
    for (const LockLine& line : lines) {
        if (line.id != id) continue;
        if (line.version == version && line.sha256 == plugin.sha256) return;
        if (!nearest || line.version == version) nearest = &line;
    }
    if (!nearest)
        raise<PluginError>("lock {}: expected a line for {}, got none", file.string(), id);
    raise<PluginError>("lock {}, line {}: expected {} {} with SHA-256 {}, got {} with {}",
                       file.string(), nearest->number, id, nearest->version, nearest->sha256,
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
            if (lock == read_.end()) lock = read_.emplace(file, read_lock(file)).first;
            check_lock(file, lock->second, plugin);
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
