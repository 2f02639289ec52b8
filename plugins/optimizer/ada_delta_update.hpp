// AdaDelta (Zeiler, 2012): steps in the parameter's own unit.
#pragma once

#include "update_types.hpp"

namespace catena::plugins {

struct AdaDeltaUpdate {
    static constexpr auto about =
        describe(
            "catena.ada_delta_update",
            "dx = sqrt((msdx + eps) / (msg + eps)) * grad; param -= dx, with running means msg "
            "and msdx",
            in(Port("param").mutated(), "grad", state("msg", "mean of grad^2"),
               state("msdx", "mean of dx^2")),
            out(), below_one(attr("rho", 0.95, "decay of the means")),
            not_negative(attr("eps", 1e-6, "keeps the ratio finite")))
            .example("param=(2,3) grad=(2,3) msg=(2,3)[0,1] msdx=(2,3)[0,1]");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& msg, T& msdx, T rho, T eps) {
        msg = rho * msg + (T(1) - rho) * grad * grad;
        const T dx = math::sqrt((msdx + eps) / (msg + eps)) * grad;
        msdx = rho * msdx + (T(1) - rho) * dx * dx;
        param -= dx;
    }
};

CATENA_FUNCTIONS(AdaDeltaUpdate);

}  // namespace catena::plugins
