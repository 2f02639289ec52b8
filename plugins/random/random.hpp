// Arrays of random numbers, drawn on the device: the same for any number of threads and, up to the
// rounding of log, on every device.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/philox.hpp>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr Attribute random_shape = required<Ints>("shape", "the shape of y");
inline constexpr Attribute random_dtype =
    attr("dtype", dtype_of<float>(), "the dtype of y: a floating one");
inline void infer_random(const auto& s) {
    const Ints shape = s.template attr<"shape">();
    const catena_dtype dtype = s.template attr<"dtype">();
    s.check(std::ranges::all_of(shape, [](std::int64_t extent) { return extent >= 0; }), "shape",
            "extents of 0 or more", shape, CATENA_E_INVALID);
    s.check(dtype.code == CATENA_CODE_FLOAT || dtype.code == CATENA_CODE_BFLOAT, "dtype",
            "a floating one", dtype, CATENA_E_DTYPE);
    s.y(0, shape, dtype);
}

// A block of Philox gives this many numbers. Element e of a group of 64 blocks is number e / 64 of
// block e % 64.
template <class T>
inline constexpr int per_block = sizeof(T) == 8 ? 2 : 4;
template <class T>
inline constexpr std::int64_t random_group = per_block<T>* philox_lanes;
template <class T>
std::uint64_t random_blocks(std::int64_t n) {
    return static_cast<std::uint64_t>((n + random_group<T> - 1) / random_group<T> * philox_lanes);
}
CATENA_FN std::uint64_t join_words(std::uint32_t low, std::uint32_t high) {
    return std::uint64_t{high} << 32 | low;
}

struct UniformNumbers {  // in [0, 1)
    template <class T>
    CATENA_FN static void from(const std::uint32_t (&w)[4], T (&out)[per_block<T>]) {
        if constexpr (sizeof(T) == 8) {
            out[0] = static_cast<T>(join_words(w[0], w[1]) >> 11) * T(0x1p-53);
            out[1] = static_cast<T>(join_words(w[2], w[3]) >> 11) * T(0x1p-53);
        } else {
            CATENA_UNROLL
            for (int k = 0; k < 4; ++k) out[k] = static_cast<T>(w[k] >> 8) * T(0x1p-24);
        }
    }
};

// The Box-Muller transform.
struct NormalNumbers {
    template <class T>
    CATENA_FN static void from(const std::uint32_t (&w)[4], T (&out)[per_block<T>]) {
        if constexpr (sizeof(T) == 8) {
            // 52 bits and a half: in (0, 1)
            const T u = (static_cast<T>(join_words(w[0], w[1]) >> 12) + T(0.5)) * T(0x1p-52);
            const std::uint64_t v = join_words(w[2], w[3]);
            const T turn = static_cast<T>((v << 2) >> 11) * T(0x1p-53);
            pair(u, static_cast<std::uint32_t>(v >> 62), turn, out[0], out[1]);
        } else {
            CATENA_UNROLL
            for (int k = 0; k < 4; k += 2)
                pair(static_cast<T>(w[k]) * T(0x1p-32) + T(0x1p-33), w[k + 1] >> 30,
                     static_cast<T>(w[k + 1] & 0x3fffffffu) * T(0x1p-30), out[k], out[k + 1]);
        }
    }

private:
    // Taylor series in a^2 for |a| <= pi/4: (cos a - 1) / a^2, and (sin a / a - 1) / a^2.
    template <class T>
    static constexpr int terms = sizeof(T) == 8 ? 8 : 4;
    template <class T>
    CATENA_FN static T series(T z, int first) {  // first: 1 for cos, 2 for sin
        T sum = 0;
        CATENA_UNROLL
        for (int i = terms<T>; i >= 1; --i) {
            const int k = 2 * (i - 1) + first;
            sum = (sum * z + T(1)) * (T(-1) / static_cast<T>(k * (k + 1)));
        }
        return sum;
    }
    // The angle is `quarter` quarters of a turn plus turn - 1/2 of a quarter.
    template <class T>
    CATENA_FN static void pair(T u, std::uint32_t quarter, T turn, T& first, T& second) {
        const T radius = math::sqrt(T(-2) * math::log(u));
        const T a = (turn - T(0.5)) * T(1.5707963267948966);
        const T z = a * a;
        const T c = T(1) + z * series(z, 1);
        const T s = a + a * z * series(z, 2);
        const bool odd = (quarter & 1) != 0;
        const T sign = (quarter & 2) != 0 ? -radius : radius;
        first = sign * (odd ? -s : c);
        second = sign * (odd ? c : s);
    }
};

// y = shift + scale * number, or adds that; overloaded for CUDA.
template <class Numbers, class T>
CATENA_KERNEL void fill_random(const auto& call, double shift_by, double scale_by) {
    const auto y = call.template y<T>(0);
    const std::int64_t n = y.size();
    const bool add = call.adds(0);
    std::uint64_t seed = 0, offset = 0;
    check_status(host().philox(call.context(), random_blocks<T>(n), &seed, &offset));
    call.parallel(
        (n + random_group<T> - 1) / random_group<T>, 16 * random_group<T>,
        [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            const T shift = static_cast<T>(shift_by);
            const T scale = static_cast<T>(scale_by);
            for (std::int64_t g = begin; g < end; ++g) {
                std::uint32_t word[4][philox_lanes];
                T drawn[random_group<T>];
                philox(seed, offset + static_cast<std::uint64_t>(g * philox_lanes), word);
                CATENA_LOOP
                for (std::int64_t j = 0; j < philox_lanes; ++j) {
                    const std::uint32_t w[4] = {word[0][j], word[1][j], word[2][j], word[3][j]};
                    T out[per_block<T>];
                    Numbers::from(w, out);
                    for (int k = 0; k < per_block<T>; ++k) drawn[k * philox_lanes + j] = out[k];
                }
                T* const to = y.data + g * random_group<T>;
                const std::int64_t left = std::min(random_group<T>, n - g * random_group<T>);
                CATENA_LOOP
                for (std::int64_t i = 0; i < left; ++i) store(to[i], add, shift + scale * drawn[i]);
            }
        });
}

struct RandomUniform {
    static constexpr auto about =
        describe("catena.uniform",
                 "y = random numbers from the uniform distribution on [low, high)\n\n"
                 "Rounding may give high itself, above all in half precision. The numbers come "
                 "from the stream of the device.",
                 in(), out("y"), random_shape, attr("low", 0.0, "the lower bound"),
                 attr("high", 1.0, "the upper bound"), random_dtype)
            .stochastic()
            .not_differentiable()
            .example("shape=[2,3]")
            .example("shape=[300] low=-2 high=3")
            .example("shape=[129] dtype=\"float64\"");
    static constexpr bool any_device = true;

    static void infer(const auto& s) { infer_random(s); }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const double low = call.template attr<"low">();
        fill_random<UniformNumbers, T>(call, low, call.template attr<"high">() - low);
    }
};

struct RandomNormal {
    static constexpr auto about =
        describe("catena.normal",
                 "y = random numbers from the normal distribution\n\n"
                 "By the Box-Muller transform; the largest numbers are 6.8 standard deviations "
                 "from the mean, 8.6 in float64. The numbers come from the stream of the device.",
                 in(), out("y"), random_shape, attr("mean", 0.0, "the mean"),
                 attr("stddev", 1.0, "the standard deviation"), random_dtype)
            .stochastic()
            .not_differentiable()
            .example("shape=[2,3]")
            .example("shape=[300] mean=-2 stddev=3")
            .example("shape=[129] dtype=\"float64\"");
    static constexpr bool any_device = true;

    static void infer(const auto& s) { infer_random(s); }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        fill_random<NormalNumbers, T>(call, call.template attr<"mean">(),
                                      call.template attr<"stddev">());
    }
};

CATENA_FUNCTIONS(RandomUniform, RandomNormal);

}  // namespace catena::plugins
