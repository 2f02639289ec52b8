// Writes the audit lines to the log and to a file.
#include "audit.hpp"

#include "lock.hpp"
#include "trusted_file.hpp"

#include "device/context.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace catena {
namespace {

const char* audit_file() {
    const char* file = secure_getenv("CATENA_PLUGIN_AUDIT");
    return file && *file ? file : nullptr;
}

// Uses one write(), so that lines of several processes do not mix.
void append(const char* file, const std::string& line) {
    constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY;
    const bool absolute = *file == '/';  // never in the current directory
    const int fd = absolute ? open(file, flags, 0600) : -1;
    const bool written =
        fd >= 0 && write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
    if (fd >= 0) close(fd);
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
