// GoogLeNet: nine Inception modules, and two auxiliary classifiers for training.
#pragma once

#include <catena/links/convolution_2d.hpp>
#include <catena/links/inception.hpp>
#include <catena/links/linear.hpp>
#include <catena/models/classifier.hpp>

namespace catena::models {

// Images have 3 channels. (Szegedy et al., "Going Deeper with Convolutions", CVPR 2015.)
class GoogLeNet : public Classifier {
public:
    // Throws ShapeError for images too small for its layers (below 47).
    explicit GoogLeNet(std::int64_t classes = 1000, Scale scale = {.image = 224});

    Variable operator()(const Variable& x) const override;
    // In training, adds 0.3 times the loss of each auxiliary classifier.
    Outcome loss(const Variable& x, const Variable& t) override;
    void visit(Visitor& visitor) override;

    // Scores from intermediate activations; only used in training.
    struct Auxiliary : Chain {
        Auxiliary(std::int64_t in, std::int64_t mid, std::int64_t units, std::int64_t side,
                  std::int64_t classes);
        Variable operator()(const Variable& h) const override;
        void visit(Visitor& visitor) override { visitor("conv", conv)("fc1", fc1)("fc2", fc2); }

        links::Convolution2D conv;
        links::Linear fc1, fc2;
    };

    links::Convolution2D conv1, conv2_reduce, conv2;
    links::Inception inc3a, inc3b, inc4a, inc4b, inc4c, inc4d, inc4e, inc5a, inc5b;
    Auxiliary loss1, loss2;
    links::Linear loss3_fc;

private:
    Variable to_4a(const Variable& x) const;
    Variable to_4d(const Variable& h) const;
    Variable to_scores(const Variable& h) const;
};

}  // namespace catena::models
