// Nets for photographs, and their names in options and snapshots.
#pragma once

#include <catena/models/classifier.hpp>
#include <catena/models/transformer.hpp>

namespace catena::models {

// NIN: Network in Network.
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

// AlexNetBN: AlexNet with batch normalization.
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

// GoogLeNet: nine Inception modules, and two auxiliary classifiers for training.
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

// VisionTransformer: a transformer over patches of an image.
// Images have 3 channels; pixels at the right and bottom that do not fill a patch are not used. A
// learned vector (the class token) is put before the vectors of the patches, and the scores are
// computed from its output. (Dosovitskiy and others, "An Image Is Worth 16x16 Words", ICLR 2021.)
class VisionTransformer : public Classifier {
public:
    struct Sizes {
        std::int64_t image = 224;  // height and width
        std::int64_t patch = 16;   // height and width
        std::int64_t units = 384;  // this and the rest: ViT-S
        std::int64_t layers = 12;
        std::int64_t heads = 6;
        double dropout = 0;
    };
    // Throws ShapeError for sizes below 1 and patches larger than the image, the errors of
    // TransformerBlock, and InvalidError unless 0 <= dropout < 1.
    VisionTransformer(std::int64_t classes, const Sizes& sizes);
    // ViT-S with 14 x 14 patches, or at least that, and heads of 64 units.
    explicit VisionTransformer(std::int64_t classes = 1000, Scale scale = {.image = 224});

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override;

    links::Convolution2D patches;
    catena::Parameter token;     // (1, 1, units)
    catena::Parameter position;  // (1 + patches, units)
    std::vector<TransformerBlock> blocks;
    links::LayerNormalization norm;
    links::Linear head;

private:
    double dropout_;
};

// "nin", "alexnet-bn", "googlenet", "vit".
std::vector<std::string_view> image_net_names();
// Throws InvalidError for other names, and the exceptions of the net.
std::unique_ptr<Classifier> make_image_net(std::string_view name, std::int64_t classes,
                                           const Scale& scale);

}  // namespace catena::models
