// One training step, and the content of a snapshot.
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
// From the snapshot if training is resumed, else measured. Throws DataError.
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
    // The epoch is complete, but its score has not been printed yet.
    bool epoch_over() const { return batches.position() == 0 && score.weight() > 0; }
    // Includes the options that affect the result, because resuming requires the same options.
    void visit(catena::Visitor& v) override;
};

// Means over images, the middle square of each, without dropout and without a graph.
// Throws Interrupted.
catena::Summary evaluate(const catena::Program& program, Training& training,
                         const catena::ImageFolder& images, catena::Device device);
