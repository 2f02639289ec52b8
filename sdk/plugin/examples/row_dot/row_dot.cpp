// row_dot: no backward kernel. The gradient, for any order, is composed of other functions.
#include <catena/plugin.hpp>
#include <catena/plugin/rows.hpp>

using namespace catena::plugin;

struct RowDot {
    static constexpr auto about =
        describe("org.example.row_dot", "y[i] = dot product of the i-th rows of a and b",
                 in(Port("a", "(N, K)"), Port("b", "(N, K)")), out(Port("y", "(N,)")))
            .example("a=(2,3) b=(2,3)")
            .example("a=(3,1) b=(3,1)");
    static constexpr auto retain_x = ports(0, 1);

    // [infer]
    static void infer(const auto& s) {
        s.check(s.x(0).size() == 2, "a.ndim", 2, s.x(0).size());
        s.check(std::ranges::equal(s.x(1), s.x(0)), "b.shape", s.x(0), s.x(1));
        s.y(0, {s.x(0)[0]});
    }
    // [/infer]
    // [gradient]
    static void gradient(const auto& g) {
        const Var gy = reshape(g.gy(0), {g.x_shape(0)[0], 1});  // broadcasts over a row
        if (g.wants(0)) g.gx(0, gy * g.x(1));
        if (g.wants(1)) g.gx(1, gy * g.x(0));
    }
    // [/gradient]

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const auto y = call.template y<T>(0);
        const bool add = call.adds(0);
        const std::int64_t k = a.dim(1);
        call.parallel(y.size(), k, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i)
                store(y[i], add, sum_lanes<T>(k, [&](std::int64_t j) CATENA_LAMBDA {
                          return a[i * k + j] * b[i * k + j];
                      }));
        });
    }
};

CATENA_PLUGIN("org.example.row_dot", "1.0.0", RowDot);
