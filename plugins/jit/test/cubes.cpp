// A plugin whose kernel is a formula, compiled at run time.
#include <catena/plugin.hpp>
#include <catena/plugin/formula.hpp>

using namespace catena::plugin;

namespace {
constinit const Formula cube("T x", "T y", "y = x * x * x", "cube");
constinit const Formula wrong("T x", "T y", "y = x * nothing", "wrong_cube");
}  // namespace

struct Cubes {
    static constexpr auto about =
        describe("org.example.cubes", "y = x ** 3", in("x"), out("y"),
                 attr("wrong", false, "takes a formula that does not compile"))
            .not_differentiable();

    static void infer(const auto& s) { s.y(0, s.x(0)); }
    template <class T>
    static void forward(const auto& call) {
        const bool broken = call.template attr<"wrong">();
        (broken ? wrong : cube)
            .run(call.context(), call.raw(), {call.raw().x[0]}, {call.raw().y[0]});
    }
};

CATENA_PLUGIN("org.example.cubes", "1.0.0", Cubes);
