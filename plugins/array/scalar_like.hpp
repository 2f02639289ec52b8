// A constant as a 0-d array, for gradient formulas that combine constants with variables.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct ScalarLike {
    static constexpr auto about =
        describe("catena.scalar_like", "y = value: 0-d, with the dtype and device of x", in("x"),
                 out("y"), required<double>("value", "the number"))
            .not_differentiable()
            .internal()
            .example("x=(2) value=2");
    using isas = IsaList<Isa::baseline>;
    using types = Numbers;

    static void infer(const auto& s) { s.y(0, {}); }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        store(call.template y<T>(0)[0], call.adds(0),
              static_cast<T>(call.template attr<"value">()));
    }
};

CATENA_FUNCTIONS(ScalarLike);

}  // namespace catena::plugins
