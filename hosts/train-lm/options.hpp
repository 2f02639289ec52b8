// Options of catena-train-lm.
#pragma once

#include <catena/models/language_model.hpp>
#include <catena/optimizer_options.hpp>
#include <catena/program.hpp>
#include <catena/text.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

struct Options {
    std::filesystem::path data;
    catena::Tokens tokens = catena::Tokens::words;
    std::int64_t min_count = 1;
    std::int64_t vocabulary = 0;  // 0: all words
    bool sentences = false;
    catena::models::LanguageModel::Cell cell = catena::models::LanguageModel::Cell::lstm;
    std::int64_t units = 200;
    std::int64_t layers = 1;
    double dropout = 0;
    std::int64_t batch = 20;
    std::int64_t steps = 35;
    std::int64_t epochs = 5;
    std::int64_t max_steps = 0;  // 0: no limit besides epochs
    catena::OptimizerOptions optimizer{"adam", {{"adam", 0.002}, {"sgd", 1}}};
    double clip = 5;
    std::int64_t sample = 0;
    std::string prompt;
    double temperature = 1;
};

// Returns false after printing --help or --version. Throws boost::program_options::error.
bool parse_options(catena::Program& program, int argc, char** argv, Options& options);
