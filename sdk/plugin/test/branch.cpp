// Formulas with an `if`, or with an input that may be missing, do not compile; the first error says
// what to write.
#include <catena/plugin.hpp>

using namespace catena::plugin;

#if defined(MISSING)
constexpr Port x = Port("x").optional();
#else
constexpr Port x = "x";
#endif

struct Branch {
    static constexpr auto about = describe("org.example.branch", "y = max(x, 0)", in(x), out("y"));
    template <class T>
    CATENA_FN static T forward(T x) {
        return math::max(x, T(0));
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
#if defined(BRANCH)
        if (x > 0) return gy;
        return 0;
#else
        return math::where(x > 0, gy, T(0));
#endif
    }
};

CATENA_PLUGIN("org.example.branch", "1.0.0", Branch);
