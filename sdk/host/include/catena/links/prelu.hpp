// PReLU: a rectifier with trainable slopes.
#pragma once

#include <catena/link.hpp>

namespace catena::links {

// y = x where x >= 0, else W * x. The shape of W is that of the axes of x from axis 1 on, or a
// prefix of them; () is one slope for all. Parameter: W, initially `init`. New links are on the
// thread's current device, in float32. Throws PluginError if no plugin has catena.prelu; calls
// throw ShapeError if x does not fit.
class PReLU : public Link {
public:
    explicit PReLU(const Shape& shape = {}, double init = 0.25);

    Variable operator()(const Variable& x) const override;
    void visit(Visitor& visitor) override { visitor("W", W); }

    catena::Parameter W;
};

}  // namespace catena::links
