// Options of catena-predict.
#pragma once

#include <catena/program.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

struct Options {
    std::filesystem::path model;
    std::vector<std::filesystem::path> inputs;
    std::int64_t top = 1;
    std::int64_t batch = 32;
    bool latency = false;
    std::filesystem::path labels;
    std::vector<std::string> prompts;
    std::int64_t length = 100;
    double temperature = 1;
};

// Returns false after printing --help or --version. Throws boost::program_options::error.
bool parse_options(catena::Program& program, int argc, char** argv, Options& options);
