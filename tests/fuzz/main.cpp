// catena-fuzz: reads valid, hostile and damaged files with every reader. Any end but an Error is a bug.
// Damage is systematic: files are cut and their bytes are changed. tests/fuzz/run searches further.
//
// usage: catena-fuzz                    all of this; writes an input that ends the process to crash-TARGET
//        catena-fuzz TARGET FILE        reads one input
//        catena-fuzz --seeds DIR        writes the valid and the hostile files to DIR/TARGET
#include "target.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

using namespace catena_fuzz;
namespace fs = std::filesystem;

namespace {

constexpr unsigned longest_seconds = 20;  // per input

std::string current, crash_file;

extern "C" void catena_fuzz_died(int signal) {
    std::ofstream(crash_file, std::ios::binary) << current;
    std::signal(signal, SIG_DFL);
    raise(signal);
}

// Whether the reader accepted the input.
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

// Runs an input as it is, and with repaired checksums.
void run_damaged(const Target& target, std::string input) {
    run(target, input);
    if (!target.repair) return;
    target.repair(input);
    run(target, input);
}

// Cuts the input at up to `most` places, and changes bytes at as many places.
void damage(const Target& target, const std::string& input, std::size_t most) {
    const std::size_t step = std::max<std::size_t>(input.size() / most, 1);
    for (std::size_t at = 0; at < input.size(); at += step) {
        run_damaged(target, input.substr(0, at));
        run_damaged(target, input.substr(0, at) + input.substr(std::min(at + step, input.size())));
        for (const char byte : {'\0', '\x7f', '\xff', static_cast<char>(input[at] ^ 1),
                                static_cast<char>(input[at] ^ 0x80), '9'}) {
            std::string changed = input;
            changed[at] = byte;
            run_damaged(target, changed);
        }
    }
}

void check(const Target& target) {
    crash_file = "crash-" + target.name;
    for (const std::string& input : target.seeds) {
        if (!run(target, input) && target.name != "npz" && target.name != "idx")
            throw std::runtime_error(target.name + ": a seed was refused");
        damage(target, input, 400);
    }
    for (const std::string& input : target.hostile) {
        if (run(target, input)) throw std::runtime_error(target.name + ": hostile input was taken");
        damage(target, input, 4);  // hostile files are large
    }
    alarm(0);
}

void write_seeds(const Target& target, const fs::path& folder) {
    fs::create_directories(folder);
    int n = 0;
    for (const auto& inputs : {target.seeds, target.hostile})
        for (const std::string& input : inputs)
            std::ofstream(folder / std::to_string(n++), std::ios::binary) << input;
}

}  // namespace

int main(int argc, char** argv) try {
    const std::string first = argc > 1 ? argv[1] : "", second = argc > 2 ? argv[2] : "";
    for (const int signal : {SIGSEGV, SIGABRT, SIGALRM, SIGBUS, SIGFPE, SIGILL})
        std::signal(signal, catena_fuzz_died);
    for (const Target& target : all_targets()) {
        if (first == "--seeds") {
            write_seeds(target, fs::path(second) / target.name);
        } else if (first.empty()) {
            check(target);
        } else if (first == target.name) {
            std::ifstream in(second, std::ios::binary);
            const std::string input{std::istreambuf_iterator<char>(in), {}};
            fmt::print("{}: {}\n", target.name, run(target, input) ? "read" : "refused");
        }
    }
} catch (const std::exception& error) {
    fmt::print(stderr, "catena-fuzz: {}\n", error.what());
    return 1;
}
