// The text to learn from, as numbers.
#pragma once

#include "options.hpp"

#include <catena/text.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

struct Corpus {
    std::filesystem::path path;
    catena::Vocabulary vocabulary;  // of the part to train on
    std::vector<std::int32_t> train, valid, test;
};

// What tokens are called in output.
std::string unit_of(catena::Tokens tokens);
// From the option, else from what comes with the program. Throws DataError.
Corpus load_corpus(const Options& options);
