// The input as it is.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Identity {
    static constexpr auto about =
        describe("catena.identity", "y = x, in the same memory", in("x"), out("y"))
            .view()
            .example("x=(2,3)")
            .example("x=()");

    static void infer(const auto& s) { s.y(0, s.x(0)); }
    static void gradient(const auto& g) { g.gx(0, g.gy(0)); }
};

CATENA_FUNCTIONS(Identity);

}  // namespace catena::plugins
