// Linear: a fully connected layer.
#pragma once

#include <catena/link.hpp>

#include <cstdint>

namespace catena::links {

// y = x W^T + b, where x is (N, ...) with in_size values after the first axis. Parameters: W
// (out_size, in_size), drawn from N(0, wscale^2 / in_size); b (out_size), unless nobias. New links
// live on the thread's current device, in float32. Throws PluginError if no plugin has
// catena.linear.
class Linear : public Link {
public:
    Linear(std::int64_t in_size, std::int64_t out_size, double wscale = 1, double bias = 0,
           bool nobias = false);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W)("b", b); }

    catena::Parameter W;
    catena::Parameter b;  // empty with nobias
};

}  // namespace catena::links
