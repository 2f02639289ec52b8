// lion_update: a step of an optimizer (Chen et al., 2023), which updates parameters and state in
// place.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct LionUpdate {
    static constexpr auto about =
        describe("org.example.lion_update",
                 "param -= lr * (sign of the mixed gradient + decay * param), with momentum m",
                 in(Port("param").mutated(), "grad", Port("m", "mean of grad").of("S").mutated()),
                 out(), attr("lr", 1e-4, "the step size").range(0, 1e6),
                 attr("beta1", 0.9, "share of m in the direction").range(0, 1),
                 attr("beta2", 0.99, "decay of m").range(0, 1),
                 attr("decay", 0.0, "weight decay").range(0, 1e6))
            .example("param=(2,3) grad=(2,3)[0.1,1] m=(2,3)[0.1,1]")
            .example("param=(4) grad=(4)[-1,-0.1] m=(4)[-1,-0.1] lr=0.5 decay=0.1");
    // m is float32 for half precision too.
    using types = Rows<Row<float, float>, Row<double, double>>;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& m, T lr, T beta1, T beta2, T decay) {
        const T mixed = beta1 * m + (1 - beta1) * grad;
        const T sign = mixed > 0 ? T(1) : mixed < 0 ? T(-1) : T(0);
        param -= lr * (sign + decay * param);
        m = beta2 * m + (1 - beta2) * grad;
    }
};

CATENA_PLUGIN("org.example.lion", "1.0.0", LionUpdate);
