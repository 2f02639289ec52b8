// Running statistics brought up to date by those of a minibatch.
#pragma once

#include "channels.hpp"

namespace catena::plugins {

struct RunningUpdate {
    static constexpr auto about =
        describe("catena.running_update", "average = share * average + (1 - share) * scale * value",
                 in(Port("average").mutated(), Port("value", "float32 for halves").of("S")), out(),
                 required<double>("share", "of the average that stays").range(0, 1),
                 attr("scale", 1.0, "factor of the value"))
            .internal()
            .example("average=(3) value=(3) share=0.9 scale=1.25")
            .example("average=() value=() share=0");
    using types = StatisticTypes;

    template <class T>
    CATENA_FN static void update(T& average, T value, T share, T scale) {
        average = share * average + (T(1) - share) * (scale * value);
    }
};

CATENA_FUNCTIONS(RunningUpdate);

}  // namespace catena::plugins
