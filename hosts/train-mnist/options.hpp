// Options of catena-train-mnist.
#pragma once

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
    std::string optimizer = "sgd";
    double lr = 0.01;
    double dropout = 0;
    bool record = false;
};

// False where a text was asked for and printed. Throws boost::program_options::error.
bool parse_options(catena::Program& program, int argc, char** argv, Options& options);
