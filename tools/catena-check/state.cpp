// Read from the kernel and the C library, not from what the plugin says.
#include "state.hpp"

#include <fmt/format.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>

namespace catena::check {
namespace {

std::vector<int> numbers_in(const char* folder) {
    std::vector<int> result;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        result.push_back(std::stoi(entry.path().filename()));
    return result;
}

template <class T>
void differ(std::vector<std::string>& lines, const char* what, const T& before, const T& after) {
    if (before != after)
        lines.push_back(fmt::format("{}: expected {}, as before, got {}", what, before, after));
}

}  // namespace

ProcessState ProcessState::now() {
    ProcessState s;
#if defined(__x86_64__)
    std::uint32_t mxcsr = 0;
    std::uint16_t x87 = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    s.vector_control_ = mxcsr & ~0x3fu;  // without the flags of what happened
    s.x87_control_ = x87;
#elif defined(__aarch64__)
    std::uint64_t fpcr = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    s.vector_control_ = static_cast<std::uint32_t>(fpcr);
#endif
    for (int i = 1; i <= 64; ++i) sigaction(i, nullptr, &s.actions_[static_cast<std::size_t>(i)]);
    for (char** v = environ; *v != nullptr; ++v) s.variables_.insert(*v);
    s.locale_ = std::setlocale(LC_ALL, nullptr);
    std::error_code error;
    s.folder_ = std::filesystem::current_path(error).string();
    s.umask_ = umask(0);
    umask(static_cast<mode_t>(s.umask_));
    s.terminate_ = std::get_terminate();
    for (const int fd : numbers_in("/proc/self/fd")) {
        const auto to = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), error);
        if (!error) s.files_[fd] = to.string();  // else it was the folder's own
    }
    for (const int id : numbers_in("/proc/self/task")) s.threads_.insert(id);
    return s;
}

std::vector<std::string> ProcessState::float_mode(const ProcessState& later) const {
    std::vector<std::string> lines;
    const auto hex = [](std::uint32_t value) { return fmt::format("{:#06x}", value); };
    differ(lines, "the control word of vector arithmetic (rounding, flush to zero, traps)",
           hex(vector_control_), hex(later.vector_control_));
    differ(lines, "the control word of the x87", hex(x87_control_), hex(later.x87_control_));
    return lines;
}

std::vector<std::string> ProcessState::signals(const ProcessState& later) const {
    std::vector<std::string> lines;
    for (std::size_t i = 1; i <= 64; ++i)
        if (actions_[i].sa_handler != later.actions_[i].sa_handler ||
            actions_[i].sa_flags != later.actions_[i].sa_flags) {
            const char* const name = sigabbrev_np(static_cast<int>(i));
            lines.push_back(
                fmt::format("expected the handler of signal {}{} as before, got another", i,
                            name != nullptr ? fmt::format(" (SIG{})", name) : ""));
        }
    return lines;
}

std::vector<std::string> ProcessState::environment(const ProcessState& later) const {
    std::vector<std::string> lines;
    for (const std::string& v : later.variables_)
        if (!variables_.contains(v))
            lines.push_back(fmt::format("expected the environment as before, got {}", v));
    for (const std::string& v : variables_)
        if (!later.variables_.contains(v))
            lines.push_back(fmt::format("expected {} in the environment, got another or none",
                                        v.substr(0, v.find('='))));
    differ(lines, "locale", locale_, later.locale_);
    differ(lines, "working directory", folder_, later.folder_);
    differ(lines, "umask", fmt::format("{:#o}", umask_), fmt::format("{:#o}", later.umask_));
    if (terminate_ != later.terminate_)
        lines.emplace_back("std::terminate()'s handler: expected it as before, got another");
    return lines;
}

std::vector<std::string> ProcessState::files(const ProcessState& later) const {
    std::vector<std::string> lines;
    std::map<std::string, int> more;
    for (const auto& [fd, to] : later.files_)
        if (!files_.contains(fd)) ++more[to];
        else if (files_.at(fd) != to)
            lines.push_back(fmt::format("file {}: expected {}, got {}", fd, files_.at(fd), to));
    for (const auto& [to, n] : more)
        lines.push_back(fmt::format("expected no new file, got {}{}", to,
                                    n == 1 ? "" : fmt::format(", {} times", n)));
    for (const auto& [fd, to] : files_)
        if (!later.files_.contains(fd))
            lines.push_back(fmt::format("expected file {} ({}) open, got it closed", fd, to));
    return lines;
}

std::vector<std::string> ProcessState::threads(const ProcessState& later) const {
    const auto more = std::count_if(later.threads_.begin(), later.threads_.end(),
                                    [&](int id) { return !threads_.contains(id); });
    if (more == 0) return {};
    return {fmt::format("expected no thread of its own, got {} more", more)};
}

void Capture::begin() {
    std::fflush(nullptr);
    file_ = memfd_create("output", MFD_CLOEXEC);
    for (int i = 0; i < 2; ++i) {
        saved_[i] = dup(i + 1);
        if (file_ < 0 || saved_[i] < 0 || dup2(file_, i + 1) < 0)
            throw std::runtime_error(fmt::format("memfd: {}", std::strerror(errno)));
    }
}

std::string Capture::end() {
    std::fflush(nullptr);
    std::string text(4096, '\0');
    const ssize_t n = pread(file_, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    for (int i = 0; i < 2; ++i) {
        dup2(saved_[i], i + 1);
        close(saved_[i]);
    }
    close(file_);
    return text;
}

}  // namespace catena::check
