// One step of training, and everything that a snapshot has.
#pragma once

#include "contexts.hpp"
#include "options.hpp"

#include <catena/catena.hpp>

#include <filesystem>
#include <memory>

struct Training : catena::Visitable {
    Options options;
    std::int64_t seed;
    catena::Vocabulary vocabulary;
    std::vector<std::int64_t> counts;  // of each word
    catena::models::WordVectors model;
    std::unique_ptr<catena::Optimizer> optimizer;
    Contexts contexts;
    catena::Summary score{"loss"};

    Training(const Options& how, std::int64_t seed, const std::string& text, catena::Device device);
    std::function<void(const catena::Variable&)> look;  // at the loss of the next step
    void step();
    // With the options that decide the result: a snapshot goes on under the same ones alone.
    void visit(catena::Visitor& v) override;
};

// Throws DataError if it cannot be written.
void write_vectors(const std::filesystem::path& file, const Training& training);
