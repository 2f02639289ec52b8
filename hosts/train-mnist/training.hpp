// The network, and everything that a snapshot of its training has.
#pragma once

#include "options.hpp"

#include <catena/catena.hpp>

#include <memory>

namespace F = catena::functions;

// Images in rows of 784 numbers, to 10 scores each.
std::unique_ptr<catena::Chain> make_model(const Options& options, std::int64_t n_in);

// Means over the images seen. What steps give lies on the device until somebody asks: who asks each
// time would wait for each step.
class Score : public catena::Visitable {
public:
    // Of so many images: loss and accuracy, as they are now.
    void add(const catena::Array& loss, const catena::Array& accuracy, std::int64_t n);
    double loss() const { return settled().loss_sum_ / static_cast<double>(images_); }
    double accuracy() const { return settled().correct_ / static_cast<double>(images_); }
    void visit(catena::Visitor& v) override {
        settled();
        v("loss_sum", loss_sum_)("correct", correct_)("images", images_);
    }

private:
    struct Pending {
        catena::Array loss, accuracy;
        std::int64_t n;
    };
    const Score& settled() const;

    mutable double loss_sum_ = 0;
    mutable double correct_ = 0;
    mutable std::vector<Pending> pending_;
    std::int64_t images_ = 0;
};

struct Training : catena::Visitable {
    std::unique_ptr<catena::Chain> model;
    std::unique_ptr<catena::Optimizer> optimizer;
    catena::Minibatches batches;
    catena::RandomStream random;  // of dropout
    Score score;                  // of this epoch

    Training(const Options& how, const catena::Dataset& data, catena::Device device);
    void step();  // one minibatch
    // With the options that decide the result: a snapshot goes on under the same ones alone.
    void visit(catena::Visitor& v) override;

private:
    std::vector<catena::Array> learn(std::span<const catena::Array> batch);

    Options options_;
    catena::RecordedStep recorded_;
};

// Without dropout and without a graph.
Score evaluate(catena::Chain& model, const catena::Dataset& data, std::int64_t batch_size,
               catena::Device device);
