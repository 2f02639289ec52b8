// Helpers of every main(): parsing options, errors as text and exit codes, checked output.
#pragma once

#include <boost/program_options.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

// Reads the command line as boost::program_options does, stores and notifies. Throws
// boost::program_options::error also for an empty value, such as "$UNSET" in a shell.
boost::program_options::variables_map parse_command_line(
    int argc, const char* const* argv, const boost::program_options::options_description& options,
    const boost::program_options::positional_options_description& positional = {},
    int style = boost::program_options::command_line_style::default_style);

// The command line of a tool: its options after --help and --version, and up to `most` words
// without a name. Returns false if --help or --version was given; it has printed what they ask for.
struct ToolOptions {
    ToolOptions();
    bool read(int argc, const char* const* argv, std::string_view usage, std::string_view versions,
              int most);

    boost::program_options::options_description options{"options"};
    std::vector<std::string> words;
    boost::program_options::variables_map given;
};
// Throws boost::program_options::error with the text unless `good`.
void need_option(bool good, const std::string& text);
// Parses a seed from 0 to 2^64 - 1; boost would accept -1.
std::uint64_t seed_option(const std::string& text, std::string_view option);
// A word or path, quoted for a shell where it has to be.
std::string shell_word(const std::string& word);

// The message if memory runs out. It names the options. got: what the device or the system said.
std::string short_of_memory(std::string_view got);
// Writes what stdout has buffered. Throws std::runtime_error with the reason if it cannot.
void flush_output();

// Runs the body of main() and returns the exit code: what body returns; 2 for
// boost::program_options::error; `failure` for other exceptions, and where stdout could not be
// written. Reasons go to stderr, and to log if there is one; stderr need not be writable. Opens
// files 0 to 2 where they are closed, so that no file gets these numbers and output.
int run_command(std::string_view name, const std::function<int()>& body, int failure = 1,
                const std::function<void(std::string_view)>& log = {});

}  // namespace catena
