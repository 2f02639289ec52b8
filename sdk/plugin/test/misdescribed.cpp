// Kernels for catena's functions whose kernels_for() differs from the function's own description.
#include <catena/plugin.hpp>

using namespace catena::plugin;

namespace {

template <class F>
struct Nothing {
    template <class T>
    CATENA_KERNEL static void forward(const auto&) {}
};
struct Named : Nothing<Named> {  // catena.mul_constant calls it `value`
    static constexpr auto about =
        kernels_for("catena.mul_constant", in("x"), out("y"), attr("values", 1.0));
};
struct Kind : Nothing<Kind> {  // `value` is a float, not an integer
    static constexpr auto about =
        kernels_for("catena.add_constant", in("x"), out("y"), attr("value", 1));
};
struct Few : Nothing<Few> {
    static constexpr auto about = kernels_for("catena.sub", in("a"), out("y"));
};
struct Types : Nothing<Types> {
    static constexpr auto about = kernels_for("catena.add", in("a", Port("b").of("S")), out("y"));
    using types = Rows<Row<float, float>>;
    static constexpr unsigned widened = 0;
    template <class T, class>
    CATENA_KERNEL static void forward(const auto&) {}
};
struct Reads {  // catena.tanh retains only y
    static constexpr auto about = kernels_for("catena.tanh", in("x"), out("y"));
    template <class T>
    CATENA_FN static T forward(T x) {
        return math::tanh(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        const T y = math::tanh(x);
        return gy * (1 - y * y);
    }
};

}  // namespace

CATENA_PLUGIN("org.example.misdescribed", "1.0.0", Named, Kind, Few, Types, Reads);
