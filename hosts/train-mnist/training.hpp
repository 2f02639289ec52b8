// The options; one step of training, on one device or on several; the content of a snapshot.
#pragma once

#include <catena/catena.hpp>
#include <catena/models/classifier.hpp>
#include <catena/trainer.hpp>

struct Options {
    std::string dataset = "mnist";
    std::filesystem::path data;
    std::int64_t epochs = 20;
    std::int64_t batch = 100;
    std::string model = "mlp";
    std::int64_t units = 100;
    catena::OptimizerOptions optimizer{"sgd"};
    double dropout = 0;
    bool record = false;
};

class Training final : public catena::Trainer {
public:
    // Creates a model on each device, or one two-column model.
    Training(const Options& options, const catena::Program& program, const catena::Mnist& mnist);

    void spread();  // copies the first model's parameters to the others; call it after loading
    void visit(catena::Visitor& v) override;
    catena::models::Classifier& model() const { return *replicas_[0]; }

private:
    void step() override;
    Place place() const override {
        return {batches_.epoch(), batches_.position(), batches_.size()};
    }
    const catena::Link& net() const override { return model(); }
    Report report(const catena::Program& program) override {
        return compare(evaluate(program), "test");
    }
    void complete(const catena::Program& program) override;
    // Returns means over the test images, without dropout and without a graph. Throws Interrupted.
    catena::Summary evaluate(const catena::Program& program) const;
    std::vector<catena::Array> learn(std::span<const catena::Array> batch);
    void learn_side_by_side(std::span<const catena::Array> batch);

    Options options_;
    std::string classes_;  // one class per line
    catena::Dataset test_;
    catena::Device device_;
    catena::Minibatches batches_;
    std::vector<std::unique_ptr<catena::models::Classifier>> replicas_;  // only [0] is updated
    std::vector<catena::RandomStream> random_;  // for dropout, one per device
    catena::DeviceThreads threads_;
    catena::RecordedStep recorded_;
};
