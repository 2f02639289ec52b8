// Options without empty values; the end of main().
#include "command_line.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>

namespace po = boost::program_options;

namespace catena {
namespace {

// Opened in the unused direction, so that reading and writing fail as on a closed file.
void open_standard_files() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
}

constexpr std::size_t most_given = 200;  // characters of the command line in a message

// The words of the command line, as many as fit, for messages about memory.
std::string& given_words() {
    static std::string words;
    return words;
}

// The reason why some of stdout was lost; "" if nothing was.
std::string lost_output() {
    errno = 0;
    std::cout.flush();
    const bool flushed = std::fflush(stdout) == 0;
    if (flushed && std::cout && std::ferror(stdout) == 0) return "";
    // If an earlier write failed, this one fails for the same reason.
    if (errno == 0 && write(STDOUT_FILENO, "\n", 1) == 1) return "an error";
    return std::strerror(errno);
}

std::string lost_text(const std::string& reason) {
    return "[stdout] expected all output to be written, got " + reason;
}

}  // namespace

void flush_output() {
    if (const std::string lost = lost_output(); !lost.empty())
        throw std::runtime_error(lost_text(lost));
}

po::variables_map parse_command_line(int argc, const char* const* argv,
                                     const po::options_description& options,
                                     const po::positional_options_description& positional,
                                     int style) {
    given_words().clear();
    for (int i = 1; i < argc; ++i) {
        const std::string word = fmt::format(" {}", argv[i]);
        if (i > 1 && given_words().size() + word.size() > most_given) {
            given_words() += " ...";
            break;
        }
        given_words() += word;
    }
    const po::parsed_options parsed = po::command_line_parser(argc, argv)
                                          .options(options)
                                          .positional(positional)
                                          .style(style)
                                          .run();
    for (const po::option& option : parsed.options) {
        if (std::ranges::count(option.value, "") == 0) continue;
        const bool named = option.position_key < 0;
        throw po::error(fmt::format("{}{}: expected a value, got an empty one", named ? "--" : "",
                                    option.string_key));
    }
    po::variables_map values;
    po::store(parsed, values);
    po::notify(values);
    return values;
}

ToolOptions::ToolOptions() {
    options.add_options()("help,h", "print this text")(
        "version", "print the versions of this program and of its ABI");
}

bool ToolOptions::read(int argc, const char* const* argv, std::string_view usage,
                       std::string_view versions, int most) {
    po::options_description all;
    all.add(options).add_options()("word", po::value(&words));
    po::positional_options_description positional;
    positional.add("word", most);
    given = parse_command_line(argc, argv, all, positional);
    if (given.count("help")) std::cout << usage << options;
    else if (given.count("version")) std::cout << versions << '\n';
    return given.count("help") == 0 && given.count("version") == 0;
}

void need_option(bool good, const std::string& text) {
    if (!good) throw po::error(text);
}

std::uint64_t seed_option(const std::string& text, std::string_view option) {
    std::uint64_t seed = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, seed);
    need_option(error == std::errc() && stop == end,
                fmt::format("--{}: expected 0 to 2^64 - 1, got '{}'", option, text));
    return seed;
}

std::string shell_word(const std::string& word) {
    const bool plain = std::ranges::all_of(word, [](unsigned char c) {
        return std::isalnum(c) || std::string_view("_-./+=:,@").find(c) != std::string_view::npos;
    });
    if (plain && !word.empty()) return word;
    std::string result = "'";
    for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

std::string short_of_memory(std::string_view got) {
    return fmt::format("[memory] options: expected enough memory for{}, got {}",
                       given_words().empty() ? " their defaults" : given_words(), got);
}

int run_command(std::string_view name, const std::function<int()>& body, int failure,
                const std::function<void(std::string_view)>& log) {
    open_standard_files();
    std::signal(SIGXFSZ, SIG_IGN);  // a file beyond `ulimit -f` is an error of write()
    const auto tell = [&](const std::string& what, int code) {
        std::fputs(fmt::format("{}: {}\n", name, what).c_str(), stderr);
        if (log) log(what);
        return code;
    };
    const auto run = [&] {
        try {
            return body();
        } catch (const po::error& error) {
            return tell(fmt::format("{}; see {} --help", error.what(), name), 2);
        } catch (const std::bad_alloc&) {
            return tell(short_of_memory("too little"), failure);
        } catch (const std::length_error&) {  // a size beyond what a container can have
            return tell(short_of_memory("too little"), failure);
        } catch (const std::system_error& error) {
            const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
            return tell(no_thread ? short_of_memory("no further thread") : error.what(), failure);
        } catch (const std::exception& error) {
            return tell(error.what(), failure);
        }
    };
    const int code = run();
    const std::string lost = lost_output();
    if (lost.empty() || code == failure) return code;
    const int told = tell(lost_text(lost), failure);
    return code == 0 ? told : code;
}

}  // namespace catena
