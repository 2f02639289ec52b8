// The parent's side of a job: a process of this program, its results, its output, its end.
#include "job.hpp"
#include "message.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace catena::check {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t most_output = 1 << 16;
constexpr std::size_t most_results = 1 << 24;

[[noreturn]] void fail_system(const char* what) {
    throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

class Fd {
public:
    explicit Fd(int fd = -1) : fd_(fd) {}
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    ~Fd() { reset(); }
    int get() const { return fd_; }
    void reset(int fd = -1) {
        if (fd_ >= 0) close(fd_);
        fd_ = fd;
    }

private:
    int fd_;
};

struct Pipe {
    Pipe() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) fail_system("pipe");
        in.reset(ends[1]);
        out.reset(ends[0]);
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    // Whether there may be more.
    bool drain(std::string& to, std::size_t most) {
        char buffer[4096];
        for (;;) {
            const ssize_t n = read(out.get(), buffer, sizeof buffer);
            if (n < 0) return errno == EAGAIN || errno == EINTR;
            if (n == 0) return false;
            to.append(buffer, std::min(static_cast<std::size_t>(n), most - to.size()));
        }
    }
    Fd in, out;
};

constexpr int result_fd = 3;

class Process {
public:
    explicit Process(std::string argument) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, output_.in.get(), 1);
        posix_spawn_file_actions_adddup2(&actions, output_.in.get(), 2);
        // dup2() to itself would leave the flag that closes it.
        const Fd copy(fcntl(results_.in.get(), F_DUPFD_CLOEXEC, 10));
        posix_spawn_file_actions_adddup2(&actions, copy.get(), result_fd);
        posix_spawnattr_t attributes;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        std::string program = "catena-check", option = "--job";
        char* const arguments[] = {program.data(), option.data(), argument.data(), nullptr};
        const int error =
            posix_spawn(&pid_, "/proc/self/exe", &actions, &attributes, arguments, environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        if (error != 0) throw std::runtime_error(fmt::format("spawn: {}", std::strerror(error)));
        output_.in.reset();
        results_.in.reset();
        ended_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
        if (ended_.get() < 0) fail_system("pidfd_open");
    }
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process() {
        if (pid_ > 0) {
            kill(-pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
        }
    }

    // False: it did not end in time.
    bool wait(std::chrono::duration<double> limit) {
        const auto end = Clock::now() + limit;
        for (bool more_output = true, more_results = true;;) {
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
            if (left <= 0) return false;
            pollfd list[] = {{ended_.get(), POLLIN, 0},
                             {more_results ? results_.out.get() : -1, POLLIN, 0},
                             {more_output ? output_.out.get() : -1, POLLIN, 0}};
            if (poll(list, 3, static_cast<int>(left)) < 0 && errno != EINTR) fail_system("poll");
            more_results = more_results && results_.drain(results, most_results);
            more_output = more_output && output_.drain(output, most_output);
            if ((list[0].revents & POLLIN) == 0) continue;
            if (waitpid(pid_, &status, 0) != pid_) fail_system("waitpid");
            kill(-pid_, SIGKILL);  // what it left behind
            pid_ = 0;
            results_.drain(results, most_results);
            output_.drain(output, most_output);
            return true;
        }
    }
    void signal(int number) const { kill(pid_, number); }

    std::string results;
    std::string output;
    int status = 0;

private:
    Pipe results_, output_;
    pid_t pid_ = 0;
    Fd ended_;
};

// What the lines that came say; a line that the end of the process cut is left.
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
    for (std::size_t begin = 0, end; (end = results.find('\n', begin)) != results.npos;
         begin = end + 1) {
        Fields f = fields_of(std::string_view(results).substr(begin, end - begin));
        const std::string kind = f[0];
        f.resize(4);
        if (kind == "seed") told.of.seed = std::strtoull(f[1].c_str(), nullptr, 10);
        else if (kind == "doublings") told.of.doublings = numbers_in(f[1]);
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
        // Kernels alone are no help: what they compute is their own plugin's matter.
        else if (kind == "with" && f[3] != "0") told.with.emplace_back(f[1], f[2]);
        else if (kind == "with_all") survey.knows_with = true;
    }
    for (const auto& [path, id] : told.with)
        if (id != survey.id) survey.with.emplace_back(path);
    return told;
}

std::string start_of(const std::string& printed) {
    constexpr std::size_t most = 200;
    return printed.size() <= most ? printed : printed.substr(0, most) + " ...";
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

Outcome run(const std::string& argument, const std::string& blamed, std::uint64_t seed,
            double timeout) {
    const auto start = Clock::now();
    Process process(argument);
    const bool in_time = process.wait(std::chrono::duration<double>(timeout));
    if (!in_time) {
        process.signal(SIGALRM);  // it tells what it does
        if (!process.wait(std::chrono::seconds(1))) {
            process.signal(SIGKILL);
            process.wait(std::chrono::seconds(5));
        }
    }
    Outcome outcome;
    const Told told = read(process.results, seed, outcome);
    outcome.finished = told.done && in_time && !told.cut;
    outcome.timed_out = !in_time;
    outcome.output = std::move(process.output);
    outcome.time = Clock::now() - start;
    if (const std::size_t at = outcome.output.find(silence); at != outcome.output.npos) {
        outcome.output.erase(at, 1);
        const std::string printed = outcome.output.substr(at);
        // What is printed by the way when it crashes is no other fault.
        if (outcome.finished && !told.silent.empty() && !printed.empty())
            outcome.failures.push_back(
                {told.silent, "expected nothing on stdout and stderr, got: " + start_of(printed),
                 told.of});
    }
    std::string problem = in_time ? ending(process.status, told.done)
                                  : fmt::format("it did not end within {:.3g} s", timeout);
    if (!problem.empty()) {
        if (!told.doing.empty() && !told.done) problem += fmt::format(", in: {}", told.doing);
        outcome.failures.push_back({blamed, problem, told.of});
    }
    return outcome;
}

}  // namespace

std::string argument_of(const Subject& s, const std::string& check) {
    Fields fields = {
        std::to_string(getpid()), check, s.function, s.file.string(),        std::to_string(s.seed),
        joined(s.doublings),      s.id,  s.only,     s.reproduce ? "1" : "", s.large ? "1" : "",
        s.gradients ? "1" : ""};
    for (const auto& path : s.with) fields.push_back(path.string());
    return line_of(fields);
}
Subject subject_of(const std::string& argument, std::string& check) {
    const Fields fields = fields_of(argument);
    auto next = fields.begin();
    if (std::to_string(getppid()) != *next++) _exit(3);
    check = *next++;
    Subject s;
    s.function = *next++;
    s.file = *next++;
    s.seed = std::strtoull(next++->c_str(), nullptr, 10);
    s.doublings = numbers_in(*next++);
    s.id = *next++;
    s.only = *next++;
    s.reproduce = !next++->empty();
    s.large = !next++->empty();
    s.gradients = !next++->empty();
    s.with.assign(next, fields.end());
    return s;
}

Outcome run_job(const Job& job, const Subject& subject, double timeout) {
    const std::string blamed = name_of(*job.checks.front());
    Subject mine = subject;
    mine.function = job.function;
    return run(argument_of(mine, blamed), blamed, subject.seed, timeout);
}

Survey survey(const Subject& subject, double timeout) {
    const Outcome outcome = run(argument_of(subject, ""), "survey", subject.seed, timeout);
    Survey result = outcome.survey;
    if (!outcome.failures.empty()) {
        const bool others = !subject.with.empty() && !result.knows_with;
        std::string& problem = others ? result.with_problem : result.problem;
        if (problem.empty()) problem = outcome.failures.front().text;
    }
    return result;
}

}  // namespace catena::check
