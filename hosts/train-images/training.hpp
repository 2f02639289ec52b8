// One step of training, and everything that a snapshot has.
#pragma once

#include "options.hpp"

#include <catena/catena.hpp>
#include <catena/images.hpp>
#include <catena/models/classifier.hpp>

#include <memory>
#include <string>

struct Images {
    catena::ImageFolder train, valid;
};
// As the option says. Throws DataError.
Images find_images(const Options& options, std::int64_t seed);

struct Training : catena::Visitable {
    Options options;
    std::int64_t seed;
    std::string classes;  // a line for each
    catena::ImageScaling scaling;
    std::unique_ptr<catena::models::Classifier> model;
    std::unique_ptr<catena::Optimizer> optimizer;
    catena::schedules::Schedule rate;  // by epochs
    catena::ImageBatches batches;
    catena::RandomStream random;                // of dropout
    catena::Summary score{"loss", "accuracy"};  // of this epoch

    Training(const Options& how, std::int64_t seed, const Images& images, catena::Device device);
    std::function<void(const catena::Variable&)> look;  // at the loss of the next step
    void step();
    // With the options that decide the result: a snapshot goes on under the same ones alone.
    void visit(catena::Visitor& v) override;
};

// Means over images, the middle square of each, without dropout and without a graph.
catena::Summary evaluate(Training& training, const catena::ImageFolder& images,
                         catena::Device device);
