// Options of catena-train-mnist.
#pragma once

#include <catena/optimizer_options.hpp>
#include <catena/program.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

struct Options {
    std::string dataset = "mnist";
    std::filesystem::path data;
    std::int64_t epochs = 20;
    std::int64_t batch = 100;
    std::string model = "mlp";
    std::int64_t units = 100;
    catena::OptimizerOptions optimizer{"sgd"};
    double dropout = 0;
    bool record = false;
};

// Returns false after printing --help or --version. Throws boost::program_options::error.
bool parse_options(catena::Program& program, int argc, char** argv, Options& options);
