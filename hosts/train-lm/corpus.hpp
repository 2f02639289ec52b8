// The text to learn from, as numbers.
#pragma once

#include "options.hpp"

#include <catena/text.hpp>

#include <cstdint>
#include <filesystem>
#include <vector>

struct Corpus {
    std::filesystem::path path;
    catena::Vocabulary vocabulary;  // of the part to train on
    std::vector<std::int32_t> train, valid, test;
};

// From the option, else from what comes with the program. Throws DataError.
Corpus load_corpus(const Options& options);
