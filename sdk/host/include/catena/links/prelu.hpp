// PReLU: a rectifier that learns its slopes.
#pragma once

#include <catena/link.hpp>

namespace catena::links {

// y = x where x >= 0, else W * x. W's shape is that of x from axis 1 on, as far as it goes; () is one
// slope for all. Parameter: W, `init` at first. New links live on the thread's current device, in
// float32. Throws PluginError if no plugin has catena.prelu; calls throw ShapeError if x does not fit.
class PReLU : public Link {
public:
    explicit PReLU(const Shape& shape = {}, double init = 0.25);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W); }

    catena::Parameter W;
};

}  // namespace catena::links
