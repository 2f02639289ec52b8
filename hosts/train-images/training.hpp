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
// That of the snapshot that training goes on from, else measured. Throws DataError.
catena::ImageScaling scaling_of(const catena::Program& program, const Options& options,
                                const Images& images);

struct Training : catena::Visitable {
    Options options;
    std::int64_t seed;
    std::string classes;  // a line for each
    catena::ImageScaling scaling;
    std::unique_ptr<catena::models::Classifier> model;
    std::unique_ptr<catena::Optimizer> optimizer;
    catena::schedules::Schedule rate;  // by epochs; may be empty
    catena::ImageBatches batches;
    catena::RandomStream random;                // of dropout
    catena::Summary score{"loss", "accuracy"};  // of this epoch

    Training(const Options& how, std::int64_t seed, const Images& images,
             const catena::ImageScaling& scaling, catena::Device device);
    std::function<void(const catena::Variable&)> look;  // at the loss of the next step
    void step();
    // The last step was the last of an epoch, whose score is still to be told.
    bool epoch_over() const { return batches.position() == 0 && score.weight() > 0; }
    // With the options that decide the result: a snapshot goes on under the same ones alone.
    void visit(catena::Visitor& v) override;
};

// Means over images, the middle square of each, without dropout and without a graph.
// Throws Interrupted.
catena::Summary evaluate(const catena::Program& program, Training& training,
                         const catena::ImageFolder& images, catena::Device device);
