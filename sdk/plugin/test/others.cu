// CUDA kernels for functions of catena's own plugins: one declines some calls, one differs from the
// function's description.
#include <catena/plugin.hpp>

using namespace catena::plugin;

namespace {

struct LeakyRelu {
    static constexpr auto about =
        kernels_for("catena.leaky_relu", in("x"), out("y"), attr("slope", 0.2)).named("others");
    static bool supports(const auto& call) { return call.template attr<"slope">() >= 0.5; }
    template <class T>
    CATENA_FN static T forward(T x, T slope) {
        return math::where(x >= 0, x, slope * x);
    }
};
struct Sub {  // catena.sub has two inputs
    static constexpr auto about = kernels_for("catena.sub", in("a", "b", "c"), out("y"));
    template <class T>
    CATENA_FN static T forward(T a, T b, T c) {
        return a - b - c;
    }
};

}  // namespace

CATENA_PLUGIN("org.example.others.cuda", "1.0.0", LeakyRelu, Sub);
