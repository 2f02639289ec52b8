// Dropout: some elements at random become 0.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/philox.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// What becomes of an element; a byte for each in the mask.
enum Fate : std::uint8_t { dropped = 0, scaled = 1, kept = 2 };

template <class T>
CATENA_FN T meet(Fate fate, T x, T scale) {
    const T survivor = x * (fate == scaled ? scale : T(1));
    return fate == dropped ? T(0) : survivor;
}

inline constexpr Attribute dropout_ratio =
    attr("ratio", 0.5, "the probability of an element to become 0").range(0, 1);
using DropoutTypes = Rows<Row<float, std::uint8_t>, Row<double, std::uint8_t>>;

// y = x through a mask. It is its own gradient.
template <class T>
CATENA_KERNEL void apply_mask(const auto& call, Tensor<const T> x, const std::uint8_t* mask,
                              Tensor<T> y, bool add) {
    const T scale = T(1) / (T(1) - static_cast<T>(call.template attr<"ratio">()));
    call.parallel(y.size(), 1, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        const T* from = x.data;
        T* to = y.data;
        CATENA_LOOP
        for (std::int64_t i = begin; i < end; ++i)
            to[i] = (add ? to[i] : T(0)) + meet<T>(Fate{mask[i]}, from[i], scale);
    });
}

struct ApplyDropout {
    static constexpr auto about =
        describe("catena.apply_dropout", "y = x through a mask that dropout made",
                 in("x", Port("mask").of("M").not_differentiable()), out("y"), dropout_ratio)
            .internal()
            .example("x=(2,3) mask=(2,3) ratio=0.25");
    using types = DropoutTypes;
    static constexpr auto retain_x = ports(1);

    static void infer(const auto& s) {
        s.check(std::ranges::equal(s.x(0), s.x(1)), "mask.shape", s.x(0), s.x(1));
        s.y(0, s.x(0));
    }
    static void gradient(const auto& g) {
        const double ratio = g.template attr<"ratio">();
        g.gx(0, call<"catena.apply_dropout">({g.gy(0), g.x(1)}, {set("ratio", ratio)}));
    }
    template <class T, class>
    CATENA_KERNEL static void forward(const auto& call) {
        apply_mask<T>(call, call.template x<T>(0), call.template x<std::uint8_t>(1).data,
                      call.template y<T>(0), call.adds(0));
    }
    template <class T, class>
    CATENA_KERNEL static void backward(const auto& call) {
        apply_mask<T>(call, call.template gy<T>(0), call.template x<std::uint8_t>(1).data,
                      call.template gx<T>(0), call.adds(0));
    }
};

struct Dropout {
    static constexpr auto about =
        describe("catena.dropout",
                 "y = x with elements set to 0 at random, the others scaled to keep the mean\n\n"
                 "Outside training, or with ratio 0, y = x.",
                 in("x"), out("y", Port("mask").of("M").hidden()), dropout_ratio)
            .stochastic()
            .example("x=(3,4)")
            .example("x=(2,3) ratio=0.25")
            .example("x=(2,3) ratio=0");
    using types = DropoutTypes;
    static constexpr auto retain_y = ports(1);

    static void infer(const auto& s) {
        const double ratio = s.template attr<"ratio">();
        s.check(ratio < 1, "ratio", "less than 1", ratio, CATENA_E_INVALID);
        s.y(0, s.x(0));
        s.y(1, s.x(0), dtype_of<std::uint8_t>());
    }
    static void gradient(const auto& g) {
        const double ratio = g.template attr<"ratio">();
        g.gx(0, call<"catena.apply_dropout">({g.gy(0), g.y(1)}, {set("ratio", ratio)}));
    }

    // Elements go in groups of 256, a group takes 64 blocks of draws: element e of a group has word
    // e / 64 of block e % 64.
    template <class T, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        std::uint8_t* const mask = call.template y<std::uint8_t>(1).data;
        const double ratio = call.template attr<"ratio">();
        const std::int64_t n = x.size();
        if (!call.train() || ratio == 0) {
            std::fill_n(mask, n, kept);
        } else {
            std::uint64_t seed = 0;
            std::uint64_t offset = 0;
            const std::int64_t groups = (n + group - 1) / group;
            const catena_status status = host().philox(
                call.context(), static_cast<std::uint64_t>(groups * philox_lanes), &seed, &offset);
            if (status != CATENA_OK) throw Error(status);
            const auto limit = static_cast<std::uint32_t>(ratio * 0x1p32);
            call.parallel(
                groups, 4 * group, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                    for (std::int64_t g = begin; g < end; ++g)
                        draw(mask + g * group, std::min(group, n - g * group), seed,
                             offset + static_cast<std::uint64_t>(g * philox_lanes), limit);
                });
        }
        apply_mask<T>(call, x, mask, y, call.adds(0));
    }
    template <class T, class>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const std::uint8_t* const mask = call.template y<std::uint8_t>(1).data;
        if (gy) apply_mask<T>(call, gy, mask, gx, call.adds(0));
        else if (!call.adds(0)) std::fill_n(gx.data, gx.size(), T(0));
    }

private:
    static constexpr std::int64_t group = 4 * philox_lanes;

    CATENA_KERNEL static void draw(std::uint8_t* mask, std::int64_t n, std::uint64_t seed,
                                   std::uint64_t counter, std::uint32_t limit) {
        std::uint32_t word[4][philox_lanes];
        philox(seed, counter, word);
        std::uint8_t fate[group];
        CATENA_LOOP
        for (std::int64_t i = 0; i < group; ++i)
            fate[i] = word[i / philox_lanes][i % philox_lanes] < limit ? dropped : scaled;
        std::copy_n(fate, n, mask);
    }
};

}  // namespace catena::plugins
