// Dropout: sets random elements to 0.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/philox.hpp>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr Attribute dropout_ratio =
    attr("ratio", 0.5, "the probability of an element to become 0").range(0, 1);
using DropoutTypes = Rows<Row<float, std::int64_t>, Row<double, std::int64_t>>;

// The `draws` of a call: seed and offset of its random numbers, and whether it draws any. Backward
// draws the same numbers again, because a mask would need a fourth of x's memory.
inline constexpr std::int64_t draws_shape[] = {3};
// 256 elements use 64 blocks of 4 random words: element e uses word e / 64 of block e % 64.
inline constexpr std::int64_t dropout_group = 4 * philox_lanes;
inline std::uint64_t dropout_blocks(std::int64_t n) {
    return static_cast<std::uint64_t>((n + dropout_group - 1) / dropout_group * philox_lanes);
}
// Checks that the ratio is less than 1: the attribute's range includes 1.
inline void check_ratio(const auto& s) {
    const double ratio = s.template attr<"ratio">();
    s.check(ratio < 1, "ratio", "less than 1", ratio, CATENA_E_INVALID);
}
// Returns the limit below which a random word drops its element.
inline std::uint32_t dropout_limit(double ratio) {
    return static_cast<std::uint32_t>(ratio * 0x1p32);
}

// Sets y to x with dropped elements 0 and the others scaled, or adds that. Maps gy to gx as well.
template <class T>
CATENA_KERNEL void drop(const auto& call, Tensor<const T> x, const std::int64_t* kept, Tensor<T> y,
                        bool add) {
    const double ratio = call.template attr<"ratio">();
    const T scale = T(1) / (T(1) - static_cast<T>(ratio));
    const std::int64_t n = y.size();
    if (kept[2] == 0) {
        call.parallel(n, 1, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            CATENA_LOOP
            for (std::int64_t i = begin; i < end; ++i) store(y.data[i], add, x.data[i]);
        });
        return;
    }
    const auto seed = static_cast<std::uint64_t>(kept[0]);
    const auto offset = static_cast<std::uint64_t>(kept[1]);
    const std::uint32_t limit = dropout_limit(ratio);
    call.parallel((n + dropout_group - 1) / dropout_group, 4 * dropout_group,
                  [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                      const T factor = scale;
                      for (std::int64_t g = begin; g < end; ++g) {
                          std::uint32_t word[4][philox_lanes];
                          philox(seed, offset + static_cast<std::uint64_t>(g * philox_lanes), word);
                          const std::uint32_t* const drawn = word[0];
                          const T* const from = x.data + g * dropout_group;
                          T* const to = y.data + g * dropout_group;
                          const std::int64_t left = std::min(dropout_group, n - g * dropout_group);
                          CATENA_LOOP
                          for (std::int64_t i = 0; i < left; ++i) {
                              const T survivor = from[i] * factor;
                              store(to[i], add, drawn[i] < limit ? T(0) : survivor);
                          }
                      }
                  });
}

struct ApplyDropout {
    static constexpr auto about =
        describe("catena.apply_dropout", "y = x without the elements that dropout dropped",
                 in("x", Port("draws", "of that dropout").of("D").not_differentiable()), out("y"),
                 dropout_ratio)
            .internal()
            .example("x=(2,3) draws=(3)[1,2] ratio=0.25")
            .example("x=(300) draws=(3)[1,2]")
            .example("x=(2,3) draws=(3)[0,1]");
    using types = DropoutTypes;
    static constexpr auto retain_x = ports(1);
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        check_ratio(s);
        s.check_shape(1, draws_shape);
        s.y(0, s.x(0));
    }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.apply_dropout">({g.gy(0), g.x(1)}, {g.same("ratio")}));
    }
    template <class T, class>
    CATENA_KERNEL static void forward(const auto& call) {
        drop(call, call.template x<T>(0), call.template x<std::int64_t>(1).data,
             call.template y<T>(0), call.adds(0));
    }
    template <class T, class>
    CATENA_KERNEL static void backward(const auto& call) {
        drop(call, call.template gy<T>(0), call.template x<std::int64_t>(1).data,
             call.template gx<T>(0), call.adds(0));
    }
};

struct Dropout {
    static constexpr auto about =
        describe(
            "catena.dropout",
            "y = x with elements set to 0 at random, the others scaled to keep the mean\n\n"
            "Outside training, or with ratio 0, y = x.",
            in("x"),
            out("y",
                Port("draws", "seed, offset, and whether any were drawn (3,)").of("D").hidden()),
            dropout_ratio)
            .stochastic()
            .example("x=(3,4)")
            .example("x=(2,3) ratio=0.25")
            .example("x=(2,3) ratio=0");
    using types = DropoutTypes;
    static constexpr auto retain_y = ports(1);

    static void infer(const auto& s) {
        check_ratio(s);
        s.y(0, s.x(0));
        s.y(1, draws_shape, dtype_of<std::int64_t>());
    }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.apply_dropout">({g.gy(0), g.y(1)}, {g.same("ratio")}));
    }

    template <class T, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        std::int64_t* const kept = call.template y<std::int64_t>(1).data;
        std::uint64_t seed = 0, offset = 0;
        const bool any = call.train() && call.template attr<"ratio">() != 0;
        if (any)
            check_status(host().philox(call.context(), dropout_blocks(x.size()), &seed, &offset));
        kept[0] = static_cast<std::int64_t>(seed);
        kept[1] = static_cast<std::int64_t>(offset);
        kept[2] = any ? 1 : 0;
        drop(call, x, kept, call.template y<T>(0), call.adds(0));
    }
    template <class T, class>
    CATENA_KERNEL static void backward(const auto& call) {
        drop(call, call.template gy<T>(0), call.template y<std::int64_t>(1).data,
             call.template gx<T>(0), call.adds(0));
    }
};

CATENA_FUNCTIONS(ApplyDropout, Dropout);

}  // namespace catena::plugins
