// Convolution2D: initial parameters and the call.
#include <catena/core/error.hpp>
#include <catena/initializers.hpp>
#include <catena/links/convolution_2d.hpp>

#include <fmt/format.h>

namespace catena::links {
namespace {

void require(bool ok, const char* what, const char* expected, Pair got) {
    if (ok) return;
    throw ShapeError(fmt::format("[Convolution2D] {}: expected {}, got {} and {}", what, expected,
                                 got.y, got.x));
}

// Checked first, so that messages name the link's arguments.
PluginFunction function(Pair channels, Pair ksize, Pair stride, Pair pad) {
    require(channels.y > 0 && channels.x > 0, "channels", "positive numbers", channels);
    require(ksize.y > 0 && ksize.x > 0, "ksize", "positive numbers", ksize);
    require(stride.y > 0 && stride.x > 0, "stride", "positive numbers", stride);
    require(pad.y >= 0 && pad.x >= 0, "pad", "no negative numbers", pad);
    return PluginFunction("catena.convolution_2d",
                          {{"stride", stride.list()}, {"pad", pad.list()}});
}

}  // namespace

Convolution2D::Convolution2D(std::int64_t in_channels, std::int64_t out_channels, Pair ksize,
                             Pair stride, Pair pad, double wscale, double bias, bool nobias)
    : function_(function({in_channels, out_channels}, ksize, stride, pad)) {
    W = as_parameter(
        initializers::LeCunNormal(wscale)({out_channels, in_channels, ksize.y, ksize.x}));
    if (!nobias) b = as_parameter(initializers::Constant(bias)({out_channels}));
}

Variable Convolution2D::operator()(const Variable& x) const {
    return function_.first({&x, &W, &b});
}

}  // namespace catena::links
