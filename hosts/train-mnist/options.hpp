// Options of catena-train-mnist.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

struct Options {
    std::optional<std::filesystem::path> data;
    std::int64_t epochs = 20;
    std::int64_t batch = 100;
    std::string model = "mlp";
    std::int64_t units = 100;
    std::string optimizer = "sgd";
    double lr = 0.01;
    double dropout = 0;
    std::int64_t seed = 0;
    std::string device;
    int threads = 0;  // 0: the device's default
    std::vector<std::string> plugins;
    std::filesystem::path save;
    std::filesystem::path resume;
    bool deterministic = false;
    bool record = false;
};

// Prints the help and returns nothing where that was asked for. Throws boost::program_options::error
// for options that cannot be.
std::optional<Options> parse_options(int argc, char** argv);
