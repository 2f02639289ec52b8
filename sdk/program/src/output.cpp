// Output: stdout and the log. run_program(): errors as text and exit codes.
#include <catena/data_error.hpp>
#include <catena/fail.hpp>
#include <catena/program.hpp>

#include "ranks.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <command_line.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace fs = std::filesystem;
namespace po = boost::program_options;

namespace catena {
namespace {

// --log-file outlives Program, because run_program() still logs how the program ended.
auto& log_file() {
    static std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(nullptr, std::fclose);
    return file;
}

// Returns false with errno set if the line could not be written.
bool log_line(std::string_view line) {
    std::FILE* file = log_file().get();
    if (!file) return true;
    const auto now =
        std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    std::fputs(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}  {}\n", fmt::gmtime(now), line).c_str(), file);
    return std::fflush(file) == 0;
}

void require_written(bool written, const std::string& where) {
    if (!written)
        fail<DataError>("[Program] {}: expected to write a line, got {}", where,
                        std::strerror(errno));
}

}  // namespace

void Output::open_log() const {
    log_file().reset();
    if (log_file_.empty()) return;
    // In a folder that others can write to, a link may belong to another user.
    const int fd =
        ::open(log_file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0) log_file().reset(fdopen(fd, "a"));
    if (!log_file())
        fail<DataError>("[Program] {}: expected a file that can be written, got {}",
                        log_file_.string(),
                        errno == ELOOP ? "a symbolic link" : std::strerror(errno));
}

void Output::print(std::string_view line) const {
    log(line);
    write(fmt::format("{}\n", line));
}
void Output::write(std::string_view text) const {
    if (!processes_.is_first()) return;
    std::fwrite(text.data(), 1, text.size(), stdout);
    require_written(std::fflush(stdout) == 0, "stdout");
}
void Output::log(std::string_view line) const {
    if (!processes_.is_first()) return;
    require_written(log_line(line), log_file_.string());
}

int run_program(std::string_view name, const std::function<int()>& body) {
    const auto until_interrupted = [&]() -> int {
        try {
            return body();
        } catch (const Interrupted& interrupt) {
            std::fputs(fmt::format("{}: {}\n", name, interrupt.what()).c_str(), stderr);
            log_line(interrupt.what());
            return interrupt.code;
        } catch (const po::error& error) {
            throw po::error(named_by_rank(error.what()));
        } catch (const MemoryError& error) {
            throw Error(named_by_rank(short_of_memory(error.what())));
        } catch (const std::bad_alloc&) {
            throw Error(named_by_rank(short_of_memory("too little")));
        } catch (const Error& error) {
            abort_processes(error.what());  // which names the rank itself
            throw Error(named_by_rank(error.what()));
        } catch (const fs::filesystem_error& error) {
            throw Error(named_by_rank(error.what()));
        }
    };
    const int code = run_command(name, until_interrupted, 1, [](std::string_view what) {
        log_line(what);
        abort_processes(what);
    });
    close_communicator();
    return code;
}

}  // namespace catena
