// PReLU: initial parameters and the call.
#include <catena/core/plugin_function.hpp>
#include <catena/initializers.hpp>
#include <catena/links/prelu.hpp>

namespace catena::links {
namespace {

const PluginFunction& function() {
    static const PluginFunction prelu("catena.prelu");
    return prelu;
}

}  // namespace

PReLU::PReLU(const Shape& shape, double init) {
    (void)function();
    W = as_parameter(initializers::Constant(init)(shape));
}

Variable PReLU::operator()(const Variable& x) const { return function().first({&x, &W}); }

}  // namespace catena::links
