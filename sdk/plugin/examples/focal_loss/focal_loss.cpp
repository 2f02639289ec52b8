// focal_loss: a composition of the host's functions needs no kernel, shapes or gradient of its own.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct FocalLoss {
    static constexpr auto about =
        describe("org.example.focal_loss", "the mean of -(1 - p)^gamma log p, for softmax p",
                 in("x", Port("t", "the labels").of("I").not_differentiable()), out("loss"),
                 attr("gamma", 2.0, "how little samples count that are well classified"))
            .example("x=(3,4) t=[0,3,1]");

    static Var compose(const auto& g) {
        const Var log_p = call<"catena.log_softmax">({g.x(0)});
        const Var of_t = call<"catena.select_item">({log_p, g.x(1)});
        return -mean(math::pow(1 - math::exp(of_t), g.template attr<"gamma">()) * of_t);
    }
};

CATENA_PLUGIN("org.example.focal_loss", "1.0.0", FocalLoss);
