// Classifier: a net that computes scores of classes.
#pragma once

#include <catena/link.hpp>

namespace catena::models {

// Images are (N, channels, height, width), or rows (N, channels * height * width) of the same
// values.
class Classifier : public Chain {
public:
    struct Outcome {
        Variable loss;
        Variable scores;
    };

    // A class overrides one of these operators: scores (N, classes), before any softmax.
    using Chain::operator();
    // The loss to minimize, and the scores. The loss is the mean softmax cross entropy with labels
    // t (N,), plus, in training, further terms of the net.
    virtual Outcome loss(const Variable& x, const Variable& t);

    // The shape of one image: (channels, height, width).
    const Shape& image_shape() const noexcept { return image_; }
    std::int64_t classes() const noexcept { return classes_; }

protected:
    // Throws ShapeError for extents below 1.
    Classifier(Shape image, std::int64_t classes);
    // Reshapes x to images. Throws ShapeError if it does not fit.
    Variable as_images(const Variable& x) const;

private:
    Shape image_;
    std::int64_t classes_;
};

// A smaller net, or one for smaller images. By default the nets are as in their papers, except that
// GoogLeNet's auxiliary classifiers have no dropout, as in Chainer's example.
struct Scale {
    std::int64_t image;  // height and width
    double width = 1;    // of each layer: channels are multiplied, and rounded to at least 1

    std::int64_t channels(std::int64_t n) const;
};

}  // namespace catena::models
