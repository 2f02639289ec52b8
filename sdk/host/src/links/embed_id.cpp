// EmbedID: initial parameters and the call.
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>
#include <catena/initializers.hpp>
#include <catena/links/embed_id.hpp>

#include <fmt/format.h>

namespace catena::links {
namespace {

const PluginFunction& function() {
    static const PluginFunction embed_id("catena.embed_id");
    return embed_id;
}

}  // namespace

EmbedID::EmbedID(std::int64_t in_size, std::int64_t out_size) {
    if (in_size < 1 || out_size < 1) {
        throw ShapeError(fmt::format("[EmbedID] sizes: expected positive numbers, got {} and {}",
                                     in_size, out_size));
    }
    (void)function();
    W = as_parameter(initializers::Normal(1)({in_size, out_size}));
}

Variable EmbedID::operator()(const Variable& x) const { return function().first({&x, &W}); }

}  // namespace catena::links
