// Options of catena-train-images.
#pragma once

#include <catena/optimizer_options.hpp>
#include <catena/program.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

struct Options {
    std::filesystem::path data;
    double held_out = 0.1;
    std::string net = "nin";
    double width = 1;
    std::int64_t size = 224;
    std::int64_t side = 0;  // 0: 9/8 of size
    std::int64_t batch = 32;
    std::int64_t epochs = 30;
    catena::OptimizerOptions optimizer{"momentum_sgd"};
    double weight_decay = 5e-4;
    int loaders = 1;
    std::int64_t measured = 2000;
};

// Returns false after printing --help or --version. Throws boost::program_options::error.
bool parse_options(catena::Program& program, int argc, char** argv, Options& options);
