// Cnn: a small convolutional net.
#pragma once

#include <catena/links/convolution_2d.hpp>
#include <catena/links/linear.hpp>
#include <catena/models/classifier.hpp>

namespace catena::models {

// Two convolutional layers with 20 and 50 filters of 5x5, each followed by pooling, and two linear
// layers. Dropout, in training, after the first linear layer. (LeCun, Bottou, Bengio and Haffner,
// "Gradient-Based Learning Applied to Document Recognition", 1998, with sizes that are common
// today.)
class Cnn : public Classifier {
public:
    // Throws ShapeError for images below 15x15.
    Cnn(Shape image, std::int64_t classes, std::int64_t units, double dropout = 0);
    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override {
        visitor("conv1", conv1)("conv2", conv2)("l1", l1)("l2", l2);
    }

    links::Convolution2D conv1, conv2;
    links::Linear l1, l2;

private:
    double dropout_;
};

}  // namespace catena::models
