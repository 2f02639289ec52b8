// Product of two matrices.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/blas.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Matmul {
    static constexpr auto about =
        describe("catena.matmul", "y = a b, the matrix product", in("a", "b"), out("y"),
                 attr("transa", false, "transpose a first"),
                 attr("transb", false, "transpose b first"))
            .example("a=(2,3) b=(3,4)")
            .example("a=(3,2) b=(3,4) transa=true")
            .example("a=(2,3) b=(4,3) transb=true")
            .example("a=(3,2) b=(4,3) transa=true transb=true");
    using isas = IsaList<Isa::baseline>;  // catena.blas/1 does the work
    static constexpr auto retain_x = ports(0, 1);

    static void infer(const auto& s) {
        const bool ta = s.template attr<"transa">();
        const bool tb = s.template attr<"transb">();
        s.check(s.x(0).size() == 2, "a.ndim", 2, s.x(0).size());
        s.check(s.x(1).size() == 2, "b.ndim", 2, s.x(1).size());
        const std::int64_t k = s.x(0)[ta ? 0 : 1];
        s.check(s.x(1)[tb ? 1 : 0] == k, tb ? "b.shape[1]" : "b.shape[0]", k, s.x(1)[tb ? 1 : 0]);
        s.y(0, {s.x(0)[ta ? 1 : 0], s.x(1)[tb ? 0 : 1]});
    }
    static void gradient(const auto& g) {
        const bool ta = g.template attr<"transa">();
        const bool tb = g.template attr<"transb">();
        const Var gy = g.gy(0);
        if (g.wants(0)) g.gx(0, ta ? matmul(g.x(1), gy, tb, true) : matmul(gy, g.x(1), false, !tb));
        if (g.wants(1)) g.gx(1, tb ? matmul(gy, g.x(0), true, ta) : matmul(g.x(0), gy, !ta, false));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        multiply(call, call.template x<T>(0), call.template attr<"transa">(), call.template x<T>(1),
                 call.template attr<"transb">(), call.template y<T>(0), call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const bool ta = call.template attr<"transa">();
        const bool tb = call.template attr<"transb">();
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        if (const auto ga = call.template gx<T>(0)) {
            if (ta) multiply(call, b, tb, gy, true, ga, call.adds(0));
            else multiply(call, gy, false, b, !tb, ga, call.adds(0));
        }
        if (const auto gb = call.template gx<T>(1)) {
            if (tb) multiply(call, gy, true, a, ta, gb, call.adds(1));
            else multiply(call, a, !ta, gy, false, gb, call.adds(1));
        }
    }

private:
    template <class T>
    static void multiply(const auto& call, Tensor<const T> a, bool ta, Tensor<const T> b, bool tb,
                         Tensor<T> c, bool add) {
        gemm<T>(call.context(), call.raw(),
                {.transpose_a = ta,
                 .transpose_b = tb,
                 .m = c.dim(0),
                 .n = c.dim(1),
                 .k = a.dim(ta ? 0 : 1),
                 .a = a.data,
                 .b = b.data,
                 .c = c.data,
                 .add = add});
    }
};

CATENA_FUNCTIONS(Matmul);

}  // namespace catena::plugins
