// Convolution2D: a layer of filters over images.
#pragma once

#include <catena/core/plugin_function.hpp>
#include <catena/link.hpp>
#include <catena/pair.hpp>

namespace catena::links {

// y = convolution_2d(x, W, b): x is (N, in_channels, H, W), y (N, out_channels, ...). Parameters: W
// (out_channels, in_channels, kh, kw), drawn from N(0, wscale^2 / (in_channels kh kw)); b
// (out_channels), unless nobias. ksize, stride and pad are one number or (y, x). New links live on
// the thread's current device, in float32. Throws ShapeError for channels, sizes or strides below 1
// and negative pads, PluginError if no plugin has catena.convolution_2d.
class Convolution2D : public Link {
public:
    Convolution2D(std::int64_t in_channels, std::int64_t out_channels, Pair ksize, Pair stride = 1,
                  Pair pad = 0, double wscale = 1, double bias = 0, bool nobias = false);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W)("b", b); }

    catena::Parameter W;
    catena::Parameter b;  // empty with nobias

private:
    PluginFunction function_;
};

}  // namespace catena::links
