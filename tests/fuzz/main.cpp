// catena-fuzz: damaged files for every reader; any end but an error in words is a bug.
//
// The input that is being read lies in memory that outlives a crash: it is written to a file then, which
// --input reads again.
#include "mutate.hpp"
#include "target.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <boost/program_options.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

namespace po = boost::program_options;
using namespace catena_fuzz;

namespace {

constexpr unsigned longest_seconds = 20;  // of one input

std::string current;
std::string crash_file;

extern "C" void catena_fuzz_died(int signal) {
    const int fd = open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, current.data(), current.size()) >= 0) close(fd);
    std::signal(signal, SIG_DFL);
    raise(signal);
}

// Whether the reader said that it liked the input.
bool run(const Target& target, const std::string& input) {
    current = input;
    alarm(longest_seconds);
    try {
        target.read(input);
    } catch (const catena::Error&) {
        return false;
    }
    return true;
}

int fuzz(const Target& target, double seconds, std::uint64_t seed) {
    std::vector<std::string> inputs = target.seeds;
    for (const std::string& input : inputs) {
        if (!run(target, input) && target.name != "npz" && target.name != "idx") {
            fmt::print(stderr, "{}: a seed was refused\n", target.name);
            return 1;
        }
    }
    for (const std::string& input : target.hostile) {
        if (run(target, input)) {
            fmt::print(stderr, "{}: hostile input was taken\n", target.name);
            return 1;
        }
    }
    inputs.insert(inputs.end(), target.hostile.begin(), target.hostile.end());
    const std::size_t kept = inputs.size();
    catena::Generator random(seed);
    const auto begin = std::chrono::steady_clock::now();
    std::uint64_t n = 0, accepted = 0;
    const auto elapsed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    while (elapsed() < seconds) {
        std::string input = mutate(inputs, random);
        if (target.repair && random.below(4) != 0) target.repair(input);
        ++n;
        if (!run(target, input)) continue;
        ++accepted;
        // What is damaged and still liked leads further than what is not.
        constexpr std::size_t most = 512;
        if (inputs.size() < most) inputs.push_back(input);
        else inputs[kept + random.below(most - kept)] = input;
    }
    alarm(0);
    fmt::print("{}: {} inputs in {:.0f} s, {} of them liked\n", target.name, n, elapsed(),
               accepted);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> names;
    std::string input;
    double seconds = 5;
    std::uint64_t seed = 1;
    po::options_description options("catena-fuzz [OPTION...] [TARGET...]");
    options.add_options()("help,h", "this text")(
        "seconds", po::value(&seconds)->default_value(seconds), "for each target")(
        "seed", po::value(&seed)->default_value(seed), "of the damage")(
        "input", po::value(&input)->value_name("FILE"), "read this once, by one target")(
        "target", po::value(&names), "without any: all");
    po::positional_options_description positional;
    positional.add("target", -1);
    po::variables_map values;
    try {
        po::store(po::command_line_parser(argc, argv).options(options).positional(positional).run(),
                  values);
        po::notify(values);
    } catch (const po::error& error) {
        std::cerr << "catena-fuzz: " << error.what() << '\n';
        return 2;
    }
    if (values.count("help")) {
        std::cout << options;
        return 0;
    }
    for (const int signal : {SIGSEGV, SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL})
        std::signal(signal, catena_fuzz_died);
    int code = 0;
    for (const Target& target : all_targets()) {
        if (!names.empty() && std::find(names.begin(), names.end(), target.name) == names.end())
            continue;
        crash_file = "crash-" + target.name;
        if (input.empty()) {
            code |= fuzz(target, seconds, seed);
        } else {
            std::ifstream in(input, std::ios::binary);
            const std::string content{std::istreambuf_iterator<char>(in), {}};
            fmt::print("{}: {}\n", target.name, run(target, content) ? "liked" : "refused");
        }
    }
    return code;
}
