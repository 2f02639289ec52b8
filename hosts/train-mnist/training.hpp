// One step of training, on one device or on several, and everything that a snapshot has.
#pragma once

#include "options.hpp"

#include <catena/catena.hpp>
#include <catena/models/classifier.hpp>

#include <memory>
#include <span>
#include <vector>

class Training : public catena::Visitable {
public:
    // A model on each of the devices, or one over two.
    Training(const Options& options, std::int64_t seed, const catena::Mnist& mnist,
             const std::vector<catena::Device>& devices);

    void step();  // one minibatch
    // The epoch is complete, but its score has not been printed yet.
    bool epoch_over() const { return batches.position() == 0 && score.weight() > 0; }
    void share();  // gives the first model's parameters to the others: after they were loaded
    // Includes the options that affect the result, because resuming requires the same options.
    void visit(catena::Visitor& v) override;

    std::function<void(const catena::Variable&)> look;  // at the loss of the next step
    catena::models::Classifier& model() const { return *replicas_[0]; }
    catena::Optimizer& optimizer() const { return *optimizer_; }
    catena::Minibatches batches;
    catena::Summary score{"loss", "accuracy"};  // of this epoch

private:
    std::vector<catena::Array> learn(std::span<const catena::Array> batch);
    void learn_side_by_side(std::span<const catena::Array> batch);

    Options options_;
    std::int64_t seed_;
    std::string classes_;                                                // a line for each
    catena::schedules::Schedule rate_;                                   // by epochs
    std::vector<std::unique_ptr<catena::models::Classifier>> replicas_;  // the first one learns
    std::unique_ptr<catena::Optimizer> optimizer_;
    std::vector<catena::RandomStream> random_;  // of dropout, on each device
    catena::DeviceThreads threads_;
    catena::RecordedStep recorded_;
};

// Means over a data set, without dropout and without a graph. Throws Interrupted.
catena::Summary evaluate(const catena::Program& program, catena::models::Classifier& model,
                         const catena::Dataset& data, catena::Device device);
