// Options of catena-train-word2vec.
#pragma once

#include <catena/models/word_vectors.hpp>
#include <catena/optimizer_options.hpp>
#include <catena/program.hpp>
#include <catena/text.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

struct Options {
    std::filesystem::path data;
    catena::Tokens tokens = catena::Tokens::words;
    std::int64_t min_count = 5;
    double subsample = 1e-3;
    catena::models::WordVectors::Kind model = catena::models::WordVectors::Kind::skip_gram;
    std::int64_t units = 100;
    std::int64_t window = 5;
    std::int64_t batch = 500;
    std::int64_t epochs = 10;
    catena::OptimizerOptions optimizer{"adam", {{"adam", 0.002}, {"sgd", 0.5}}};
    std::vector<std::string> nearest;
    std::int64_t top = 10;
    std::filesystem::path vectors;
};

// Returns false after printing --help or --version. Throws boost::program_options::error.
bool parse_options(catena::Program& program, int argc, char** argv, Options& options);
