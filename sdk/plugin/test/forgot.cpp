// y = x w + b over vectors, where b is one number or missing. One function is correct. The gradient
// of each other function reads an array that it does not retain.
#include <catena/plugin.hpp>

using namespace catena::plugin;

enum class Forgot { nothing, x, y, kernel_x, kernel_y };

template <Forgot forgot>
struct Product {
    static constexpr const char* names[] = {"org.example.product", "org.example.forgot_x",
                                            "org.example.forgot_y", "org.example.forgot_kernel_x",
                                            "org.example.forgot_kernel_y"};
    static constexpr auto about = describe(names[static_cast<int>(forgot)], "y = x w + b",
                                           in("x", "w", Port("b", "(1,)").optional()), out("y"))
                                      .example("x=(3) w=(3) b=(1)")
                                      .example("x=(4) w=(4)");
    static constexpr auto retain_x = forgot == Forgot::x ? ports(1) : ports(0, 1);

    static void infer(const auto& s) {
        s.check(s.x(0).size() == 1, "x.ndim", 1, s.x(0).size());
        s.check(std::ranges::equal(s.x(1), s.x(0)), "w.shape", s.x(0), s.x(1));
        if (s.has(2)) s.check(s.x(2).size() == 1 && s.x(2)[0] == 1, "b.shape", "(1,)", s.x(2));
        s.y(0, s.x(0));
    }
    static void gradient(const auto& g) {
        const Var gy = broadcast_to(g.gy(0), {g.x_shape(0)[0]});
        if (g.wants(0)) g.gx(0, gy * g.x(1));
        if (g.wants(1)) g.gx(1, gy * g.x(0));
        if (g.has(2) && g.wants(2)) g.gx(2, sum_to(gy, {1}));
        if constexpr (forgot == Forgot::y) g.gx(0, gy * g.y(0));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto b = call.template x<T>(2);
        const auto y = call.template y<T>(0);
        for (std::int64_t i = 0; i < x.size(); ++i)
            store(y[i], call.adds(0), x[i] * w[i] + (b ? b[0] : T(0)));
    }
    template <class T>
    static constexpr bool has_backward = forgot == Forgot::kernel_x || forgot == Forgot::kernel_y;
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) requires has_backward<T> {
        if constexpr (forgot == Forgot::kernel_x) static_cast<void>(call.template x<T>(2));
        else static_cast<void>(call.template y<T>(0));
    }
};

CATENA_PLUGIN("org.example.forgot", "1.0.0", Product<Forgot::nothing>, Product<Forgot::x>,
              Product<Forgot::y>, Product<Forgot::kernel_x>, Product<Forgot::kernel_y>);
