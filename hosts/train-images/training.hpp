// The options, one training step, and the content of a snapshot.
#pragma once

#include <catena/catena.hpp>
#include <catena/images.hpp>
#include <catena/models/classifier.hpp>
#include <catena/trainer.hpp>

struct Options {
    std::filesystem::path data;
    double held_out = 0.1;
    std::string net = "nin";
    double width = 1;
    std::int64_t size = 224;
    std::int64_t side = 0;  // 0: 9/8 of size
    std::int64_t batch = 32;
    std::int64_t epochs = 30;
    catena::OptimizerOptions optimizer{"momentum_sgd"};
    double weight_decay = 5e-4;
    int loaders = 1;
    std::int64_t measured = 2000;
};

struct Images {
    catena::ImageFolder train, valid;
};
// Finds the images in --data: in its folders train and val, or split at random. Throws DataError.
Images find_images(const Options& options, std::int64_t seed);
// Loads the scaling from the resumed snapshot, or measures the images. Throws DataError.
catena::ImageScaling scaling_of(const catena::Program& program, const Options& options,
                                const Images& images);

class Training final : public catena::Trainer {
public:
    Training(const Options& how, const catena::Program& program, const Images& images,
             const catena::ImageScaling& scaling);

    void visit(catena::Visitor& v) override;

    std::unique_ptr<catena::models::Classifier> model;

private:
    void step() override;
    Place place() const override { return {batches.epoch(), batches.position(), batches.size()}; }
    const catena::Link& net() const override { return *model; }
    Report report(const catena::Program& program) override {
        return compare(evaluate(program), "valid");
    }
    void complete(const catena::Program& program) override;
    // Returns the means over the middle squares of the validation images. Throws Interrupted.
    catena::Summary evaluate(const catena::Program& program);

    Options options;
    std::string classes;  // one class per line
    catena::ImageScaling scaling;
    catena::ImageFolder valid;
    catena::Device device;
    catena::ImageBatches batches;
    catena::RandomStream random;  // for dropout
};
