// Linear: initial parameters and the call.
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/initializers.hpp>
#include <catena/links/linear.hpp>

#include <fmt/format.h>

namespace catena::links {
namespace {

// Found when the first link is made, so that a missing plugin shows before any work.
const PluginFunction& function() {
    static const PluginFunction linear("catena.linear");
    return linear;
}

}  // namespace

Linear::Linear(std::int64_t in_size, std::int64_t out_size, double wscale, double bias,
               bool nobias) {
    if (in_size < 1 || out_size < 1) {
        throw ShapeError(fmt::format("[Linear] sizes: expected positive numbers, got {} and {}",
                                     in_size, out_size));
    }
    (void)function();
    W = as_parameter(initializers::LeCunNormal(wscale)({out_size, in_size}));
    if (!nobias) b = as_parameter(initializers::Constant(bias)({out_size}));
}

Variable Linear::operator()(const Variable& x) const { return function().first({&x, &W, &b}); }

}  // namespace catena::links
