// Product of matrices, or of stacks of them.
#pragma once

#include <climits>
#include <utility>

#include <catena/plugin.hpp>
#include <catena/plugin/blas.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Extents of a product by numpy.matmul's rules: the last two axes of an operand are a matrix, axes
// before them broadcast. A 1-d operand is one row of a, or one column of b, and is not transposed;
// y has no axis for it.
struct MatmulSizes {
    MatmulSizes(Shape a, bool transpose_a, Shape b, bool transpose_b)
        : ta(transpose_a && a.size() > 1),
          tb(transpose_b && b.size() > 1),
          m(a.size() < 2 ? 1 : a[a.size() - (ta ? 1 : 2)]),
          k(a[a.size() - (ta ? 2 : 1)]),
          k_of_b(b[b.size() - (tb || b.size() < 2 ? 1 : 2)]),
          n(b.size() < 2 ? 1 : b[b.size() - (tb ? 2 : 1)]),
          a_lead(lead_of(a)),
          b_lead(lead_of(b)),
          n_lead(std::max(a_lead.size(), b_lead.size())) {
        for (std::size_t d = 0; d < n_lead; ++d) {
            const std::int64_t of_a = extent(a_lead, d), of_b = extent(b_lead, d);
            stack_[d] = of_a == 1 ? of_b : of_a;
            broadcasts = broadcasts && (of_b == 1 || of_b == stack_[d]);
        }
        stack_[n_lead] = m;
        stack_[n_lead + 1] = n;
    }
    static Shape lead_of(Shape x) { return x.first(x.size() < 2 ? 0 : x.size() - 2); }
    // The extent of a leading axis of y in an operand: 1 if the operand lacks it.
    std::int64_t extent(Shape lead, std::size_t axis) const {
        return axis + lead.size() < n_lead ? 1 : lead[axis + lead.size() - n_lead];
    }
    Shape lead() const { return {stack_, n_lead}; }
    // The shape of y as a stack of matrices.
    Shape stack() const { return {stack_, n_lead + 2}; }

    bool ta, tb;
    std::int64_t m, k, k_of_b, n;
    Shape a_lead, b_lead;
    std::size_t n_lead;
    bool broadcasts = true;

private:
    std::int64_t stack_[CATENA_MAX_NDIM + 2];
};

// A dense stack of matrices, and whether a product takes their transposes.
template <class T>
struct Stack {
    T* data;
    Shape lead;
    bool transposed = false;
};

// How a BLAS computes a product of stacks: as one product of a longer m, n or k if the memory
// allows it, and as repetitions of it along the remaining axes.
template <class T>
class StackedProduct {
public:
    // m, n, k: extents of one product. lead: what a, b and c broadcast to; the product is summed
    // over the axes that c lacks.
    StackedProduct(std::int64_t m, std::int64_t n, std::int64_t k, Shape lead, Stack<const T> a,
                   Stack<const T> b, Stack<T> c, bool add)
        : p_{.transpose_a = a.transposed,
             .transpose_b = b.transposed,
             .m = m,
             .n = n,
             .k = k,
             .a = a.data,
             .b = b.data,
             .c = c.data,
             .add = add} {
        std::int64_t step_a = m * k, step_b = k * n, step_c = m * n;
        if (step_c == 0 || size_of(c.lead) == 0) p_.batch = 0;
        for (std::size_t d = lead.size(); d-- > 0;) {
            const auto step = [&](Shape of, std::int64_t& dense) {
                const std::size_t missing = lead.size() - of.size();
                if (d < missing || of[d - missing] == 1) return std::int64_t{0};
                return std::exchange(dense, dense * of[d - missing]);
            };
            const Axis axis = {lead[d], step(a.lead, step_a), step(b.lead, step_b),
                               step(c.lead, step_c)};
            if (axis.c == 0 && axis.extent == 0) p_.k = 0;
            if (axis.extent > 1 && !(ndim_ == 0 ? merge(axis) : extend(axis)))
                axes_[ndim_++] = axis;
        }
    }

    void run(const Blas& blas) {
        if (p_.batch == 0) return;
        if (p_.k == 0)  // a sum of nothing, once
            ndim_ = std::remove_if(axes_, axes_ + ndim_, [](const Axis& x) { return x.c == 0; }) -
                    axes_;
        const auto products = [](const Axis& x) { return x.c == 0 ? 1 : x.extent; };
        Axis* const longest = std::max_element(
            axes_, axes_ + ndim_,
            [&](const Axis& x, const Axis& y) { return products(x) < products(y); });
        if (ndim_ > 0 && longest->c != 0) {
            p_.batch = longest->extent;
            p_.step_a = longest->a;
            p_.step_b = longest->b;
            p_.step_c = longest->c;
            *longest = axes_[--ndim_];
        }
        repeat(blas, p_, ndim_);
    }

private:
    struct Axis {
        std::int64_t extent, a, b, c;  // steps in elements; 0: the operand repeats
    };

    // Merges the innermost axis into m, n or k. A matrix of one row or column is its transpose.
    bool merge(const Axis& x) {
        const bool rows = x.c != 0 && x.b == 0 && (!p_.transpose_a || p_.m == 1 || p_.k == 1);
        const bool columns =
            x.c != 0 && x.a == 0 && p_.m == 1 && (p_.transpose_b || p_.n == 1 || p_.k == 1);
        const bool sum = x.c == 0 && (p_.transpose_a || p_.m == 1 || p_.k == 1) &&
                         (!p_.transpose_b || p_.n == 1 || p_.k == 1);
        std::int64_t* const side = rows ? &p_.m : columns ? &p_.n : sum ? &p_.k : nullptr;
        std::int64_t all = 0;
        // A BLAS may have 32-bit extents.
        if (side == nullptr || __builtin_mul_overflow(*side, x.extent, &all) || all > INT_MAX)
            return false;
        if (rows) p_.transpose_a = false;
        if (columns) p_.transpose_b = true;
        if (sum) p_.transpose_a = true, p_.transpose_b = false;
        *side = all;
        return true;
    }
    // Merges an axis into the one before it.
    bool extend(const Axis& x) {
        Axis& inner = axes_[ndim_ - 1];
        const std::int64_t n = inner.extent;
        if (x.a != inner.a * n || x.b != inner.b * n || x.c != inner.c * n) return false;
        inner.extent *= x.extent;
        return true;
    }
    void repeat(const Blas& blas, Product<T> p, std::size_t n_axes) const {
        if (n_axes == 0) return blas.gemm(p);
        const Axis& x = axes_[n_axes - 1];
        for (std::int64_t i = 0; i < x.extent; ++i) {
            repeat(blas, p, n_axes - 1);
            p.a += x.a;
            p.b += x.b;
            p.c += x.c;
            p.add = p.add || x.c == 0;
        }
    }

    Product<T> p_;
    std::size_t ndim_ = 0;
    Axis axes_[CATENA_MAX_NDIM];
};

struct Matmul {
    static constexpr auto about =
        describe(
            "catena.matmul",
            "y = a b, the matrix product\n\nWith more than two axes, the last two are matrices "
            "and the others broadcast, as in numpy.matmul. A 1-d a is a row, a 1-d b a column; "
            "y has no axis for them, and transa and transb do not apply to them.",
            in("a", "b"), out("y"), attr("transa", false, "transpose a's last two axes first"),
            attr("transb", false, "transpose b's last two axes first"))
            .since(2)
            .example("a=(2,3) b=(3,4)")
            .example("a=(3,2) b=(3,4) transa=true")
            .example("a=(2,3) b=(4,3) transb=true")
            .example("a=(2,2,3) b=(3,2)")
            .example("a=(2,3,2) b=(2,1,2,3) transa=true transb=true")
            .example("a=(3) b=(2,2,3) transb=true")
            .example("a=(2,2,3) b=(3)");
    using isas = IsaList<Isa::baseline>;  // catena.blas/1 computes the product
    static constexpr auto retain_x = ports(0, 1);
    static constexpr bool any_device = true;
    static constexpr bool any_half = false;  // multiply() needs the exact half type

    static void infer(const auto& s) {
        const bool ta = s.template attr<"transa">();
        const bool tb = s.template attr<"transb">();
        if (s.x(0).size() != 2 || s.x(1).size() != 2) return infer_stacks(s, ta, tb);
        const std::int64_t k = s.x(0)[ta ? 0 : 1];
        s.check(s.x(1)[tb ? 1 : 0] == k, tb ? "b.shape[1]" : "b.shape[0]", k, s.x(1)[tb ? 1 : 0]);
        s.y(0, {s.x(0)[ta ? 1 : 0], s.x(1)[tb ? 0 : 1]});
    }
    static void gradient(const auto& g) {
        const bool ta = g.template attr<"transa">();
        const bool tb = g.template attr<"transb">();
        if (!is_matrices(g.x_shape(0), g.x_shape(1))) return gradient_of_stacks(g, ta, tb);
        const Var gy = g.gy(0);
        if (g.wants(0)) g.gx(0, ta ? matmul(g.x(1), gy, tb, true) : matmul(gy, g.x(1), false, !tb));
        if (g.wants(1)) g.gx(1, tb ? matmul(gy, g.x(0), true, ta) : matmul(g.x(0), gy, !ta, false));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const bool ta = call.template attr<"transa">();
        const bool tb = call.template attr<"transb">();
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        T* const y = call.template y<T>(0).data;
        if (is_matrices(a.shape, b.shape))
            return multiply(call, matrix(a, ta), matrix(b, tb), y, call.adds(0));
        forward_of_stacks<T>(call, {a.shape, ta, b.shape, tb}, a.data, b.data, y);
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const bool ta = call.template attr<"transa">();
        const bool tb = call.template attr<"transb">();
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        const auto ga = call.template gx<T>(0);
        const auto gb = call.template gx<T>(1);
        if (!is_matrices(a.shape, b.shape))
            return backward_of_stacks<T>(call, {a.shape, ta, b.shape, tb}, a.data, b.data, gy.data,
                                         ga.data, gb.data);
        if (ga) {
            if (ta) multiply(call, matrix(b, tb), matrix(gy, true), ga.data, call.adds(0));
            else multiply(call, matrix(gy, false), matrix(b, !tb), ga.data, call.adds(0));
        }
        if (gb) {
            if (tb) multiply(call, matrix(gy, true), matrix(a, ta), gb.data, call.adds(1));
            else multiply(call, matrix(a, !ta), matrix(gy, false), gb.data, call.adds(1));
        }
    }

private:
    static bool is_matrices(Shape a, Shape b) { return a.size() == 2 && b.size() == 2; }
    template <class T>
    static Matrix<T> matrix(Tensor<const T> x, bool transposed) {
        return {x.data, x.dim(0), x.dim(1), transposed};
    }

    // Not inlined, so that products of two matrices need no large stack frame.
    template <class T>
    [[gnu::noinline]] static void forward_of_stacks(const auto& call, const MatmulSizes& s,
                                                    const T* a, const T* b, T* y) {
        StackedProduct<T>(s.m, s.n, s.k, s.lead(), {a, s.a_lead, s.ta}, {b, s.b_lead, s.tb},
                          {y, s.lead()}, call.adds(0))
            .run(Blas(call));
    }
    template <class T>
    [[gnu::noinline]] static void backward_of_stacks(const auto& call, const MatmulSizes& s,
                                                     const T* a, const T* b, const T* gy, T* ga,
                                                     T* gb) {
        const Blas blas(call);
        const Stack<T> to_a = {ga, s.a_lead}, to_b = {gb, s.b_lead};
        const auto of_a = [&](bool t) { return Stack<const T>{a, s.a_lead, t}; };
        const auto of_b = [&](bool t) { return Stack<const T>{b, s.b_lead, t}; };
        const auto of_y = [&](bool t) { return Stack<const T>{gy, s.lead(), t}; };
        using P = StackedProduct<T>;
        if (ga != nullptr)
            (s.ta ? P(s.k, s.m, s.n, s.lead(), of_b(s.tb), of_y(true), to_a, call.adds(0))
                  : P(s.m, s.k, s.n, s.lead(), of_y(false), of_b(!s.tb), to_a, call.adds(0)))
                .run(blas);
        if (gb != nullptr)
            (s.tb ? P(s.n, s.k, s.m, s.lead(), of_y(true), of_a(s.ta), to_b, call.adds(1))
                  : P(s.k, s.n, s.m, s.lead(), of_a(!s.ta), of_y(false), to_b, call.adds(1)))
                .run(blas);
    }

    [[gnu::noinline]] static void infer_stacks(const auto& s, bool ta, bool tb) {
        s.check_least_ndim(0, 1);
        s.check_least_ndim(1, 1);
        const MatmulSizes p(s.x(0), ta, s.x(1), tb);
        s.check(p.k == p.k_of_b,
                s.x(1).size() < 2 ? "b.shape[0]"
                : p.tb            ? "b.shape[-1]"
                                  : "b.shape[-2]",
                p.k, p.k_of_b);
        s.check(p.broadcasts, "b.shape[:-2]", "broadcastable to " + text_of(p.a_lead), p.b_lead);
        std::int64_t y[CATENA_MAX_NDIM];
        std::int64_t* end = std::copy(p.lead().begin(), p.lead().end(), y);
        if (s.x(0).size() > 1) *end++ = p.m;
        if (s.x(1).size() > 1) *end++ = p.n;
        s.y(0, Shape(y, end));
    }
    [[gnu::noinline]] static void gradient_of_stacks(const auto& g, bool transpose_a,
                                                     bool transpose_b) {
        const Shape xa = g.x_shape(0), xb = g.x_shape(1);
        const MatmulSizes s(xa, transpose_a, xb, transpose_b);
        const Var a = xa.size() > 1 ? g.x(0) : reshape(g.x(0), {1, s.k});
        const Var b = xb.size() > 1 ? g.x(1) : reshape(g.x(1), {s.k, 1});
        const Var gy = xa.size() > 1 && xb.size() > 1 ? g.gy(0) : reshape(g.gy(0), s.stack());
        if (g.wants(0)) {
            const Var ga = s.ta ? matmul(b, gy, s.tb, true) : matmul(gy, b, false, !s.tb);
            g.gx(0, xa.size() > 1 ? ga : reshape(sum_to(ga, {1, s.k}), xa));
        }
        if (!g.wants(1)) return;
        // If all of a's matrices share b, their rows are one matrix: the sum needs no stack.
        if (!s.ta && size_of(s.b_lead) == 1 && size_of(s.a_lead) == size_of(s.lead())) {
            const Var rows = reshape(a, {size_of(s.lead()) * s.m, s.k});
            const Var of_rows = reshape(gy, {size_of(s.lead()) * s.m, s.n});
            g.gx(1, reshape(s.tb ? matmul(of_rows, rows, true, false)
                                 : matmul(rows, of_rows, true, false),
                            xb));
            return;
        }
        const Var gb = s.tb ? matmul(gy, a, true, s.ta) : matmul(a, gy, !s.ta, false);
        g.gx(1, xb.size() > 1 ? gb : reshape(sum_to(gb, {s.k, 1}), xb));
    }
};

CATENA_FUNCTIONS(Matmul);

}  // namespace catena::plugins
