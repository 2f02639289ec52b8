// AlexNetBN: AlexNet with batch normalization.
#pragma once

#include <catena/links/batch_normalization.hpp>
#include <catena/links/convolution_2d.hpp>
#include <catena/links/linear.hpp>
#include <catena/models/classifier.hpp>

namespace catena::models {

// Five convolutions and three fully connected layers, on one device, with batch normalization after
// the first two instead of response normalization. Dropout of 0.5 in training. Images have 3
// channels. (Krizhevsky, Sutskever and Hinton, NIPS 2012; Ioffe and Szegedy, ICML 2015.)
class AlexNetBN : public Classifier {
public:
    // Throws ShapeError for images too small for its layers (below 55).
    explicit AlexNetBN(std::int64_t classes = 1000, Scale scale = {.image = 224});
    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override;

    links::Convolution2D conv1;
    links::BatchNormalization bn1;
    links::Convolution2D conv2;
    links::BatchNormalization bn2;
    links::Convolution2D conv3, conv4, conv5;
    links::Linear fc6, fc7, fc8;
};

}  // namespace catena::models
