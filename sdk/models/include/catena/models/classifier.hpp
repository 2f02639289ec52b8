// Classifier: a net that gives scores to classes.
#pragma once

#include <catena/link.hpp>

#include <cstdint>

namespace catena::models {

// Images are (N, channels, height, width) or rows (N, channels * height * width) of the same numbers.
class Classifier : public Chain {
public:
    struct Outcome {
        Variable loss;
        Variable scores;
    };

    // A class overrides one: scores (N, classes), before any softmax.
    using Chain::operator();
    // What training makes small, and the scores: the mean softmax cross entropy with labels t (N,),
    // and, in training, what a net adds to it.
    virtual Outcome loss(const Variable& x, const Variable& t);

    // Of one image: (channels, height, width).
    const Shape& image_shape() const noexcept { return image_; }
    std::int64_t classes() const noexcept { return classes_; }

protected:
    // Throws ShapeError for extents below 1.
    Classifier(Shape image, std::int64_t classes);
    // x as images. Throws ShapeError if it has others.
    Variable as_images(const Variable& x) const;

private:
    Shape image_;
    std::int64_t classes_;
};

// A net made smaller or for smaller images. The nets of papers are as in the paper by default, but
// GoogLeNet's classifiers in the middle drop nothing, as in Chainer's example.
struct Scale {
    std::int64_t image;  // height and width
    double width = 1;    // of each layer: channels are multiplied, and rounded to at least 1

    std::int64_t channels(std::int64_t n) const;
};

}  // namespace catena::models
