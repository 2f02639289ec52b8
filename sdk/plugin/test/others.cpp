// Kernels for functions of catena's own plugins: a formula, and a loop that declines some calls.
#include <catena/plugin.hpp>

using namespace catena::plugin;

namespace {

// [relu]
struct Relu {
    static constexpr auto about = kernels_for("catena.relu", in("x"), out("y")).named("others");
    template <class T>
    CATENA_FN static T forward(T x) {
        return math::max(x, T(0));
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return math::where(y > 0, gy, math::unless_nan(y, T(0)));
    }
};
// [/relu]

struct LeakyRelu {  // supports some slopes only
    static constexpr auto about =
        kernels_for("catena.leaky_relu", in("x"), out("y"), attr("slope", 0.2)).named("others");
    static bool supports(const auto& call) { return call.template attr<"slope">() >= 0.5; }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        const T slope = static_cast<T>(call.template attr<"slope">());
        const bool add = call.adds(0);
        call.parallel(x.size(), 1, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i)
                store(y[i], add, x[i] >= 0 ? x[i] : slope * x[i]);
        });
    }
};

struct Exp {  // all dtypes; supports() reads only shapes
    static constexpr auto about = kernels_for("catena.exp", in("x"), out("y")).named("others");
    static bool supports(const auto& call) {
        const auto x = call.template x<std::byte>(0);
        return x.ndim() == 1 && x.dim(0) == 4;
    }
    template <class T>
    CATENA_FN static T forward(T x) {
        return math::exp(x);
    }
};
struct Log {  // a mistake: supports() assumes float32
    static constexpr auto about = kernels_for("catena.log", in("x"), out("y")).named("others");
    static bool supports(const auto& call) { return call.template x<float>(0).dim(0) == 4; }
    template <class T>
    CATENA_FN static T forward(T x) {
        return math::log(x);
    }
};

}  // namespace

CATENA_PLUGIN("org.example.others", "1.0.0", Relu, LeakyRelu, Exp, Log);
