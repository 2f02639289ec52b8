// Reads the state of the process from the kernel and the C library.
#include "state.hpp"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

namespace catena::check {

namespace fs = std::filesystem;

ProcessState ProcessState::now() {
    ProcessState s;
    std::error_code error;
    Values& modes = s.groups_["float-mode"];
    const char* const vectors =
        "the control word of vector arithmetic (rounding, flush to zero, traps)";
#if defined(__x86_64__)
    std::uint32_t mxcsr = 0;
    std::uint16_t x87 = 0;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    modes[vectors] = fmt::format("{:#06x}", mxcsr & ~0x3fu);  // without the exception flags
    modes["the control word of the x87"] = fmt::format("{:#06x}", x87);
#elif defined(__aarch64__)
    std::uint64_t fpcr = 0;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    modes[vectors] = fmt::format("{:#06x}", fpcr);
#endif
    for (int i = 1; i <= 64; ++i) {
        struct sigaction action = {};
        sigaction(i, nullptr, &action);
        const char* const name = sigabbrev_np(i);
        s.groups_["signals"][fmt::format("the handler of signal {} ({})", i, name ? name : "?")] =
            fmt::format("{} with flags {:#x}", reinterpret_cast<void*>(action.sa_handler),
                        action.sa_flags);
    }
    Values& environment = s.groups_["environment"];
    for (char** v = environ; *v != nullptr; ++v) {
        const std::size_t name = std::strcspn(*v, "=");
        environment["variable " + std::string(*v, name)] = *v + name;
    }
    environment["locale"] = std::setlocale(LC_ALL, nullptr);
    environment["working directory"] = fs::current_path(error).string();
    const mode_t mask = umask(0);
    umask(mask);
    environment["umask"] = fmt::format("{:#o}", mask);
    environment["std::terminate()'s handler"] =
        fmt::format("{}", reinterpret_cast<void*>(std::get_terminate()));
    const fs::path folder = fmt::format("/proc/{}/fd", getpid());
    for (const auto& fd : fs::directory_iterator(folder))
        if (const fs::path to = fs::read_symlink(fd, error); !error && to != folder)
            s.groups_["files"][fd.path().filename()] = to;
#ifdef __SANITIZE_THREAD__  // its runtime starts a thread with the first one
    [[maybe_unused]] static const bool started = (std::thread([] {}).join(), true);
#endif
    for (const auto& task : fs::directory_iterator("/proc/self/task"))
        s.groups_["threads"][task.path().filename()];
    return s;
}

std::vector<std::string> ProcessState::changes(const char* group, const ProcessState& later) const {
    const std::string_view name = group;
    const Values &before = groups_.at(group), &after = later.groups_.at(group);
    std::vector<std::string> lines;
    const auto threads = std::ranges::count_if(
        after, [&](const auto& task) { return !before.contains(task.first); });
    if (name == "threads" && threads > 0)
        lines.push_back(fmt::format("expected no thread of its own, got {} more", threads));
    if (name == "threads") return lines;
    for (const auto& [key, value] : before) {
        const auto found = after.find(key);
        if (found == after.end() || found->second != value)
            lines.push_back(fmt::format("{}{}: expected {}, as before, got {}",
                                        name == "files" ? "file " : "", key, value,
                                        found == after.end() ? "none" : found->second));
    }
    for (const auto& [key, value] : after)
        if (!before.contains(key))
            lines.push_back(name == "files" ? fmt::format("expected no new file, got {}", value)
                                            : fmt::format("{}: expected none, got {}", key, value));
    return lines;
}

}  // namespace catena::check
