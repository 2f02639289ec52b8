// The coefficient of determination.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct R2Score {
    static constexpr const char* ways[] = {"uniform_average", "raw_values", nullptr};
    static constexpr auto about =
        describe(
            "catena.r2_score",
            "score = 1 - sum((pred - true)^2) / sum((true - mean)^2), with sums and the mean "
            "over axis 0\n\nIt is 0 where true is constant.",
            in(Port("pred", "predictions"), Port("true", "as pred"),
               Port("sample_weight", "must be missing").optional()),
            out("score"),
            attr("multioutput", ways[0], "the mean of all elements' scores, or raw_values: all")
                .one_of(ways))
            .not_differentiable()
            .example("pred=(5,2) true=(5,2)")
            .example("pred=(5,2) true=(5,2) multioutput=\"raw_values\"");
    static Var compose(const auto& g) {
        g.check(!g.has(2), "sample_weight", "None", "an array", CATENA_E_UNSUPPORTED);
        g.check_least_ndim(0, 1);
        g.check_shape(1, g.x_meta(0).shape());
        const auto squares = [](const Var& d) { return sum(d * d, {0}); };
        const Var rest = squares(g.x(0) - g.x(1));
        const Var total = squares(g.x(1) - mean(g.x(1), {0}, true));
        const Var none = total == 0.0;
        const Var score = math::where(none, 0.0, 1.0 - rest / math::where(none, 1.0, total));
        return g.template attr<"multioutput">() == ways[0] ? mean(score) : score;
    }
};

CATENA_FUNCTIONS(R2Score);

}  // namespace catena::plugins
