// The square of a norm, in float64 whatever the dtype is.
#pragma once

#include <catena/plugin.hpp>

#include <algorithm>

namespace catena::plugins {

using namespace catena::plugin;

struct SumOfSquares {
    static constexpr auto about = describe("catena.sum_of_squares", "y = the sum of x^2", in("x"),
                                           out(Port("y", "the sum (), float64").of("S")))
                                      .not_differentiable()
                                      .internal()
                                      .example("x=(2,3)")
                                      .example("x=(3,50)")
                                      .example("x=()");
    using types = Rows<Row<float, double>, Row<double, double>>;

    static void infer(const auto& s) { s.y(0, {}, dtype_of<double>()); }

    template <class T, class S>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes =
            static_cast<std::uint64_t>(pieces(call.template x<T>(0).size())) * sizeof(S);
    }
    // Pieces do not depend on the number of threads: the same bits for any.
    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const std::int64_t n = x.size();
        S* const part = call.template scratch<S>();
        call.parallel(pieces(n), piece, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t k = begin; k < end; ++k)
                part[k] = sum<T, S>(x.data + k * piece, std::min(piece, n - k * piece));
        });
        S total = 0;
        for (std::int64_t k = 0; k < pieces(n); ++k) total += part[k];
        store(call.template y<S>(0)[0], call.adds(0), total);
    }

private:
    static constexpr std::int64_t piece = 16384;
    static constexpr std::int64_t pieces(std::int64_t n) { return (n + piece - 1) / piece; }

    template <class T, class S>
    CATENA_KERNEL static S sum(const T* p, std::int64_t n) {
        constexpr std::int64_t lanes = 32;
        S lane[lanes] = {};
        std::int64_t i = 0;
        for (; i + lanes <= n; i += lanes)
            for (std::int64_t j = 0; j < lanes; ++j)
                lane[j] += static_cast<S>(p[i + j]) * static_cast<S>(p[i + j]);
        S total = 0;
        for (std::int64_t j = 0; j < lanes; ++j) total += lane[j];
        for (; i < n; ++i) total += static_cast<S>(p[i]) * static_cast<S>(p[i]);
        return total;
    }
};

CATENA_FUNCTIONS(SumOfSquares);

}  // namespace catena::plugins
