// NIN: Network in Network.
#pragma once

#include <catena/links/convolution_2d.hpp>
#include <catena/models/classifier.hpp>

namespace catena::models {

// Four convolutions, each followed by two 1x1 convolutions, with ReLU after all but the last, and a
// global average over each of the last channels, one per class; there is no fully connected layer.
// Dropout of 0.5 in training. Images have 3 channels. (Lin, Chen and Yan, "Network In Network",
// ICLR 2014; sizes of its ImageNet model.)
class NIN : public Classifier {
public:
    // Throws ShapeError for images too small for its layers (below 55).
    explicit NIN(std::int64_t classes = 1000, Scale scale = {.image = 224});
    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override;

    // A convolution and two 1x1 convolutions, with ReLU between them.
    struct Block : Chain {
        Block(std::int64_t in, std::int64_t mid, std::int64_t out, Pair ksize, Pair stride,
              Pair pad);
        Variable operator()(const Variable& x) const override;
        void visit(Visitor& visitor) override { visitor("conv", conv)("a", a)("b", b); }

        links::Convolution2D conv, a, b;
    };
    Block block1, block2, block3, block4;
};

}  // namespace catena::models
