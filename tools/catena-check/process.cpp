// The parent's side of a job: starts the child, and reads its results, output and exit status.
#include "job.hpp"

#include <descriptor.hpp>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

namespace catena::check {
namespace {

constexpr std::int64_t most_output = 1 << 30;  // bytes that a process may print
constexpr std::int64_t most_shown = 1 << 16;   // bytes of them that are read

// Returns the value; throws std::system_error with errno if it is negative.
int need(int value, const char* what) {
    if (value >= 0) return value;
    throw std::system_error(errno, std::generic_category(), what);
}

// A file in memory that a process writes to. `most` limits its size in bytes; 0: no limit.
struct Written : Descriptor {
    explicit Written(std::int64_t most = 0)
        : Descriptor(
              need(memfd_create("written", MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create")) {
        if (most == 0) return;
        need(ftruncate(get(), most), "ftruncate");
        need(fcntl(get(), F_ADD_SEALS, F_SEAL_GROW), "F_ADD_SEALS");
    }
    std::string text(std::int64_t most = INT64_MAX) const {
        const std::int64_t bytes = std::min<std::int64_t>(lseek(get(), 0, SEEK_CUR), most);
        std::string text(static_cast<std::size_t>(bytes), '\0');
        text.resize(static_cast<std::size_t>(
            std::max<ssize_t>(pread(get(), text.data(), text.size(), 0), 0)));
        return text;
    }
};

class Process {
public:
    explicit Process(std::vector<std::string> arguments) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, output.get(), 1);
        posix_spawn_file_actions_adddup2(&actions, output.get(), 2);
        posix_spawn_file_actions_adddup2(&actions, results.get(), result_fd);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        arguments.insert(arguments.begin(), {"catena-check", "--job"});
        std::vector<char*> words;
        for (std::string& argument : arguments) words.push_back(argument.data());
        words.push_back(nullptr);
        errno = posix_spawn(&pid_, "/proc/self/exe", &actions, &attributes, words.data(), environ);
        const int error = errno;
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        if (error != 0) throw std::system_error(error, std::generic_category(), "spawn");
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process() {
        if (pid_ <= 0) return;
        kill(-pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }

    // Returns false if the process did not end in time. While it or a process that it started waits for
    // a CPU, because others use the machine, its time does not count.
    bool wait(double seconds) {
        const Descriptor process(
            need(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)), "pidfd_open"));
        pollfd end = {process.get(), POLLIN, 0};
        const auto start = Clock::now();
        for (int ended = 0; ended <= 0;) {  // SIGSTOP and SIGCONT interrupt poll()
            const std::chrono::duration<double> past = Clock::now() - start;
            const double left = seconds + waited_for_cpu() - past.count();
            if (left <= 0) return false;
            ended = poll(&end, 1, static_cast<int>(std::ceil(std::min(left, 0.1) * 1000)));
            if (ended < 0 && errno != EINTR) need(ended, "poll");
        }
        need(waitpid(pid_, &status, 0), "waitpid");
        kill(-pid_, SIGKILL);  // processes that it started
        pid_ = 0;
        return true;
    }
    void signal(int number) const { kill(pid_, number); }

    const Written results, output{most_output};
    int status = 0;

private:
    // Returns the seconds in which the process and those that it started were ready to run but had no
    // CPU. It is called often, as the system forgets the times of processes that have ended.
    double waited_for_cpu() {
        for (std::vector<pid_t> todo = {pid_}; !todo.empty();) {
            const pid_t each = todo.back();
            todo.pop_back();
            double& longest = waited_[each];  // of its threads
            std::error_code gone;             // a process that it started may end here
            for (std::filesystem::directory_iterator
                     thread("/proc/" + std::to_string(each) + "/task", gone),
                 end;
                 thread != end; thread.increment(gone)) {
                double ran = 0, waited = 0;  // nanoseconds
                std::ifstream(thread->path() / "schedstat") >> ran >> waited;
                longest = std::max(longest, waited / 1e9);
                std::ifstream children(thread->path() / "children");
                for (pid_t child = 0; children >> child;) todo.push_back(child);
            }
        }
        double sum = 0;
        for (const auto& [process, seconds] : waited_) sum += seconds;
        return sum;
    }

    pid_t pid_ = 0;
    std::map<pid_t, double> waited_;
};

std::vector<std::string> split(const std::string& text, char end) {
    std::vector<std::string> parts;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, end);) parts.push_back(part);
    return parts;
}
// The content of the messages of a child. An incomplete last message is ignored.
struct Told {
    std::string doing;
    Case of;
    bool done = false;
    bool cut = false;
    std::string silent;  // the check that fails if anything is printed
    std::vector<std::pair<std::string, std::string>> with;  // paths and ids
};
Told read(const std::string& results, std::uint64_t seed, Outcome& outcome) {
    Told told;
    told.of.seed = seed;
    Survey& survey = outcome.survey;
    const std::size_t whole = results.rfind(message_end) + 1;  // npos + 1: 0
    for (const std::string& message : split(results.substr(0, whole), message_end)) {
        std::vector<std::string> f = split(message, field_end);
        f.resize(4);
        const std::string& kind = f[0];
        if (kind == "seed") told.of.seed = std::strtoull(f[1].c_str(), nullptr, 10);
        else if (kind == "doublings") told.of.doublings = f[1];
        else if (kind == "doing") told.doing = f[1];
        else if (kind == "fail") outcome.failures.push_back({f[1], f[2], told.of});
        else if (kind == "skip") outcome.skipped.push_back({f[1], f[2], told.of});
        else if (kind == "note") outcome.notes.push_back({f[1], f[2], told.of});
        else if (kind == "silent") told.silent = f[1];
        else if (kind == "cut") told.cut = true;
        else if (kind == "done") told.done = true;
        else if (kind == "plugin") survey.id = f[1], survey.version = f[2];
        else if (kind == "problem") survey.problem = f[1];
        else if (kind == "with_problem") survey.with_problem = f[1];
        else if (kind == "function") survey.functions.push_back(f[1]);
        // A plugin with kernels only is left out: they are checked with their own plugin.
        else if (kind == "with" && f[3] != "0") told.with.emplace_back(f[1], f[2]);
        else if (kind == "with_all") survey.knows_with = true;
    }
    for (const auto& [path, id] : told.with)
        if (id != survey.id) survey.with.emplace_back(path);
    return told;
}

std::string ending(int status, bool done) {
    if (WIFSIGNALED(status)) {
        const int number = WTERMSIG(status);
        const char* const name = sigabbrev_np(number);
        return fmt::format("it crashed: SIG{} ({}){}", name != nullptr ? name : "?",
                           strsignal(number), done ? " when the process ended" : "");
    }
    if (done && WEXITSTATUS(status) == 0) return {};
    return fmt::format(
        "the process ended with exit code {}{}", WEXITSTATUS(status),
        done ? " after the check" : " in the middle of the check: exit() was called");
}

}  // namespace

Outcome run_check(const Subject& subject, const std::string& check, double timeout) {
    const auto start = Clock::now();
    Process process(arguments_of(subject, check));
    const bool in_time = process.wait(timeout);
    if (!in_time) {
        process.signal(SIGALRM);  // the child reports its current step
        if (!process.wait(1)) {
            process.signal(SIGKILL);
            process.wait(5);
        }
    }
    Outcome outcome;
    const Told told = read(process.results.text(), subject.seed, outcome);
    outcome.finished = told.done && in_time && !told.cut;
    outcome.timed_out = !in_time;
    outcome.output = process.output.text(most_shown);
    outcome.time = Clock::now() - start;
    if (const std::size_t at = outcome.output.find(silence); at != outcome.output.npos) {
        outcome.output.erase(at, 1);
        const std::string printed = outcome.output.substr(at);
        // Output of a process that crashes is not a further failure.
        if (outcome.finished && !told.silent.empty() && !printed.empty())
            outcome.failures.push_back(
                {told.silent,
                 fmt::format("expected nothing on stdout and stderr, got: {:.200}{}", printed,
                             printed.size() > 200 ? " ..." : ""),
                 told.of});
    }
    std::string problem = in_time ? ending(process.status, told.done)
                                  : fmt::format("it did not end within {:.3g} s", timeout);
    if (!problem.empty()) {
        if (!told.doing.empty() && !told.done) problem += fmt::format(", in: {}", told.doing);
        outcome.failures.push_back({check.empty() ? "survey" : check, problem, told.of});
    }
    return outcome;
}

std::vector<std::string> arguments_of(const Subject& s, const std::string& check) {
    const std::string numbers =
        fmt::format("{} {:d} {:d} {:d} {}", s.seed, s.reproduce, s.large, s.gradients, s.doublings);
    std::vector<std::string> arguments = {
        std::to_string(getpid()), check, s.function, s.file, s.id, s.only, numbers};
    for (const auto& path : s.with) arguments.push_back(path);
    return arguments;
}
Subject subject_of(const std::vector<std::string>& arguments, std::string& check) {
    constexpr std::size_t n = 7;  // the arguments before the paths
    if (arguments.size() < n || std::to_string(getppid()) != arguments[0]) _exit(3);
    check = arguments[1];
    Subject s;
    s.function = arguments[2];
    s.file = arguments[3];
    s.id = arguments[4];
    s.only = arguments[5];
    std::istringstream(arguments[6]) >> s.seed >> s.reproduce >> s.large >> s.gradients >>
        s.doublings;
    s.with.assign(arguments.begin() + n, arguments.end());
    return s;
}

Survey survey(const Subject& subject, double timeout) {
    const Outcome outcome = run_check(subject, "", timeout);
    Survey result = outcome.survey;
    if (!outcome.failures.empty()) {
        const bool others = !subject.with.empty() && !result.knows_with;
        std::string& problem = others ? result.with_problem : result.problem;
        if (problem.empty()) problem = outcome.failures.front().text;
    }
    return result;
}

}  // namespace catena::check
