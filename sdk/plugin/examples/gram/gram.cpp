// gram: a matrix product by the plugin that provides catena.blas/1 for the device; links no BLAS.
#include <catena/plugin.hpp>
#include <catena/plugin/blas.hpp>

using namespace catena::plugin;

struct Gram {
    static constexpr auto about =
        describe("org.example.gram", "y = x^T x, the dot products of all pairs of columns",
                 in(Port("x", "(N, K)")), out(Port("y", "(K, K)")))
            .example("x=(2,3)")
            .example("x=(4,1)");
    using isas = IsaList<Isa::baseline>;  // the BLAS chooses its own instruction set
    static constexpr auto retain_x = ports(0);

    static void infer(const auto& s) {
        s.check(s.x(0).size() == 2, "x.ndim", 2, s.x(0).size());
        s.y(0, {s.x(0)[1], s.x(0)[1]});
    }
    static void gradient(const auto& g) {
        const Var gy = g.gy(0);
        g.gx(0, matmul(g.x(0), gy + transpose(gy)));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        gemm<T>(call.context(), call.raw(),
                {.transpose_a = true,
                 .transpose_b = false,
                 .m = x.dim(1),
                 .n = x.dim(1),
                 .k = x.dim(0),
                 .a = x.data,
                 .b = x.data,
                 .c = y.data,
                 .add = call.adds(0)});
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {  // gx = x gy + x gy^T
        const auto x = call.template x<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        for (const bool transpose : {false, true})
            gemm<T>(call.context(), call.raw(),
                    {.transpose_a = false,
                     .transpose_b = transpose,
                     .m = x.dim(0),
                     .n = x.dim(1),
                     .k = x.dim(1),
                     .a = x.data,
                     .b = gy.data,
                     .c = gx.data,
                     .add = transpose || call.adds(0)});
    }
};

CATENA_PLUGIN("org.example.gram", "1.0.0", Gram);
