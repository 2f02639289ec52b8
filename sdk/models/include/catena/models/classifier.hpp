// Classifier: base class of nets that compute class scores; and nets for small images.
#pragma once

#include <catena/links.hpp>

namespace catena::models {

// Images are (N, channels, height, width), or the same in rows (N, channels * height * width).
class Classifier : public Chain {
public:
    struct Outcome {
        Variable loss;
        Variable scores;
    };

    // Subclasses override one of these operators. It returns scores (N, classes), before softmax.
    using Chain::operator();
    // Returns the loss to minimize and the scores. The loss is the mean softmax cross entropy with
    // labels t (N,). During training, a net may add other terms.
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

// The size of a net. By default the nets are as in their papers, except that GoogLeNet's auxiliary
// classifiers have no dropout, as in Chainer's example.
struct Scale {
    std::int64_t image;  // height and width
    double width = 1;    // factor for the channels of every layer; the result is at least 1

    std::int64_t channels(std::int64_t n) const;
};

// Mlp: a net with two hidden layers.
// image-units-units-classes with ReLU, and, in training, dropout after each hidden layer.
class Mlp : public Classifier {
public:
    Mlp(Shape image, std::int64_t classes, std::int64_t units, double dropout = 0);
    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("l1", l1)("l2", l2)("l3", l3); }

    links::Linear l1, l2, l3;

private:
    double dropout_;
};

// Cnn: a small convolutional net.
// Two convolutional layers with 20 and 50 filters of 5x5, each followed by pooling, and two linear
// layers. Dropout, in training, after the first linear layer. (LeCun, Bottou, Bengio and Haffner,
// "Gradient-Based Learning Applied to Document Recognition", 1998, with sizes common today.)
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

// TwoColumnMlp: a net on two devices.
// Two columns of six layers with ReLU, one on each device, as in Chainer's manual. The outputs of
// the columns are added after the third layer, and both columns continue from the sum. They are
// added again after the sixth layer; this sum is the result. In this way, little data is copied
// between devices. Inputs and scores are on the first device. Both devices may be the same.
class TwoColumnMlp : public Classifier {
public:
    TwoColumnMlp(Shape image, std::int64_t classes, std::int64_t units, Device first,
                 Device second);
    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("first", first)("second", second); }

    struct Column : Chain {
        Column(std::int64_t in, std::int64_t units, std::int64_t out);
        void visit(Visitor& v) override {
            v("l1", l1)("l2", l2)("l3", l3)("l4", l4)("l5", l5)("l6", l6);
        }
        Variable below(const Variable& x) const;  // layers 1 to 3
        Variable above(const Variable& h) const;  // layers 4 to 6

        links::Linear l1, l2, l3, l4, l5, l6;
    };
    Column first, second;
};

}  // namespace catena::models
