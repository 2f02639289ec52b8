// Inception: four parallel branches of convolutions and pooling.
#pragma once

#include <catena/links/convolution_2d.hpp>

namespace catena::links {

// relu of the concatenated channels of
//    a 1x1 convolution to out1 channels,
//    1x1 to proj3, relu, 3x3 to out3,
//    1x1 to proj5, relu, 5x5 to out5,
//    3x3 max pooling, 1x1 to proj_pool;
// images keep their height and width. (Szegedy et al., "Going Deeper with Convolutions", 2014.)
// Parameters: W and b of conv1, conv3, conv5, proj3, proj5 and projp; initial values and errors are
// those of Convolution2D.
class Inception : public Chain {
public:
    Inception(std::int64_t in_channels, std::int64_t out1, std::int64_t proj3, std::int64_t out3,
              std::int64_t proj5, std::int64_t out5, std::int64_t proj_pool);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override;

    Convolution2D conv1, conv3, conv5, proj3, proj5, projp;

private:
    PluginFunction relu_, concat_, pool_;
};

}  // namespace catena::links
