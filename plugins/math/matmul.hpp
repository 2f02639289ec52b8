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
    using isas = IsaList<Isa::baseline>;  // catena.blas/1 computes the product
    static constexpr auto retain_x = ports(0, 1);
    static constexpr bool any_device = true;
    static constexpr bool any_half = false;  // multiply() needs the exact half type

    static void infer(const auto& s) {
        const bool ta = s.template attr<"transa">();
        const bool tb = s.template attr<"transb">();
        s.check_ndim(0, 2);
        s.check_ndim(1, 2);
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
        multiply(call, matrix(call.template x<T>(0), call.template attr<"transa">()),
                 matrix(call.template x<T>(1), call.template attr<"transb">()),
                 call.template y<T>(0).data, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const bool ta = call.template attr<"transa">();
        const bool tb = call.template attr<"transb">();
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        if (const auto ga = call.template gx<T>(0)) {
            if (ta) multiply(call, matrix(b, tb), matrix(gy, true), ga.data, call.adds(0));
            else multiply(call, matrix(gy, false), matrix(b, !tb), ga.data, call.adds(0));
        }
        if (const auto gb = call.template gx<T>(1)) {
            if (tb) multiply(call, matrix(gy, true), matrix(a, ta), gb.data, call.adds(1));
            else multiply(call, matrix(a, !ta), matrix(gy, false), gb.data, call.adds(1));
        }
    }

private:
    template <class T>
    static Matrix<T> matrix(Tensor<const T> x, bool transposed) {
        return {x.data, x.dim(0), x.dim(1), transposed};
    }
};

CATENA_FUNCTIONS(Matmul);

}  // namespace catena::plugins
