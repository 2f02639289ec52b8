// What gradients are scaled by so that their norm is at most maxnorm, where they are.
#pragma once

#include <catena/plugin.hpp>

#include "update_types.hpp"

#include <cmath>

namespace catena::plugins {

using namespace catena::plugin;

struct ClipFactor {
    static constexpr auto about =
        describe("catena.clip_factor", "y = maxnorm / sqrt(squares) where that is below 1, else 1",
                 in(Port("squares", "the sum of squares ()")), out(Port("y", "()")),
                 not_negative(required<double>("maxnorm", "the largest norm")))
            .not_differentiable()
            .internal()
            .example("squares=()[0.5,1] maxnorm=0.25")
            .example("squares=()[0.5,1] maxnorm=2");
    using types = Rows<Row<double>>;
    using isas = IsaList<Isa::baseline>;

    static void infer(const auto& s) {
        s.check(s.x(0).empty(), "squares.ndim", 0, s.x(0).size());
        s.y(0, {});
    }
    // A norm that is no number scales nothing.
    CATENA_FN static double factor(double squares, double maxnorm) {
        const double norm = std::sqrt(squares);
        return norm > maxnorm ? maxnorm / norm : 1.0;
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        store(call.template y<T>(0)[0], call.adds(0),
              factor(call.template x<T>(0)[0], call.template attr<"maxnorm">()));
    }
};

CATENA_FUNCTIONS(ClipFactor);

}  // namespace catena::plugins
