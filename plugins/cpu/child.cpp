// Runs programs without a shell.
#include "child.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

namespace catena_cpu {
namespace {

class Pipe {
public:
    Pipe() { good_ = pipe2(ends_, O_CLOEXEC) == 0; }
    ~Pipe() {
        if (!good_) return;
        close(ends_[0]);
        close_writer();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    bool good() const { return good_; }
    int writer() const { return ends_[1]; }
    void close_writer() {
        if (ends_[1] >= 0) close(ends_[1]);
        ends_[1] = -1;
    }
    std::string read_all() const {
        std::string all;
        char bytes[4096];
        for (;;) {
            const ssize_t n = read(ends_[0], bytes, sizeof bytes);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) return all;
            all.append(bytes, static_cast<std::size_t>(n));
        }
    }

private:
    int ends_[2] = {-1, -1};
    bool good_ = false;
};

}  // namespace

Outcome run_program(const std::vector<std::string>& arguments) {
    Outcome outcome;
    Pipe pipe;
    if (!pipe.good()) return outcome;
    std::vector<char*> words;
    for (const std::string& argument : arguments)
        words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, pipe.writer(), 1);
    posix_spawn_file_actions_adddup2(&files, pipe.writer(), 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    // Whatever this thread blocks, and this process ignores, is none of the program's business.
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGCHLD);
    sigaddset(&usual, SIGPIPE);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t child = 0;
    outcome.started =
        posix_spawn(&child, words[0], &files, &attributes, words.data(), environ) == 0;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (!outcome.started) return outcome;
    pipe.close_writer();
    outcome.output = pipe.read_all();
    int status = 0;
    pid_t waited = 0;
    do waited = waitpid(child, &status, 0);
    while (waited < 0 && errno == EINTR);
    // A program that ignores SIGCHLD never learns: what the child left behind has to tell.
    if (waited != child) outcome.status = 0;
    else outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
}

std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
    const char* path = secure_getenv("PATH");
    for (std::string_view rest = path != nullptr ? path : "/usr/bin:/bin"; !rest.empty();) {
        const std::string_view folder = rest.substr(0, rest.find(':'));
        rest.remove_prefix(folder.size() < rest.size() ? folder.size() + 1 : rest.size());
        if (folder.empty() || folder.front() != '/') continue;  // never the current folder
        std::string file = std::string(folder) + "/" + name;
        if (access(file.c_str(), X_OK) == 0) return file;
    }
    return "";
}

}  // namespace catena_cpu
