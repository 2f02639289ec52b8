// Runs parts of tests in a child process, which may crash, hang or run out of memory.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <fstream>
#include <functional>

namespace catena_test {

// Runs body in a child process. Returns its exit code, or minus the number of the signal that ended
// it. After a minute, SIGALRM ends it.
inline int end_of(const std::function<int()>& body) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(body());
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return -SIGCHLD;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// Returns the size of this process's address space in bytes.
inline std::uint64_t address_space() {
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

inline void limit_address_space(std::uint64_t bytes) {
    const rlimit limit = {bytes, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
}

}  // namespace catena_test
