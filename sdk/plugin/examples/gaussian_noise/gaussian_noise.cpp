// gaussian_noise: random numbers that are the same for any number of threads and on any device.
#include <catena/plugin.hpp>
#include <catena/plugin/philox.hpp>

#include <cmath>
#include <numbers>

using namespace catena::plugin;

struct GaussianNoise {
    static constexpr auto about =
        describe("org.example.gaussian_noise",
                 "y = x + sigma * n, with n from the standard normal distribution\n\n"
                 "Outside training y = x.",
                 in("x"), out("y"), attr("sigma", 0.1, "standard deviation").range(0, 1e6))
            .stochastic()
            .example("x=(2,5)")
            .example("x=() sigma=2");

    static void infer(const auto& s) { s.y(0, s.x(0)); }
    // Gives gradients of any order. They need no computation, so a backward kernel is not needed.
    static void gradient(const auto& g) { g.gx(0, g.gy(0)); }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        const bool add = call.adds(0);
        const T sigma = call.train() ? static_cast<T>(call.template attr<"sigma">()) : T(0);
        const std::int64_t n = y.size();
        const std::int64_t blocks = (n + 3) / 4;  // a block of Philox has four numbers
        std::uint64_t seed = 0;
        std::uint64_t offset = 0;
        if (sigma > 0) reserve(call, static_cast<std::uint64_t>(blocks), seed, offset);
        call.parallel(blocks, 64, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t b = begin; b < end; ++b) {
                T noise[4] = {};
                if (sigma > 0) normal(philox(seed, offset + static_cast<std::uint64_t>(b)), noise);
                for (std::int64_t i = 4 * b; i < std::min(n, 4 * b + 4); ++i)
                    store(y[i], add, x[i] + sigma * noise[i % 4]);
            }
        });
    }

private:
    static void reserve(const auto& call, std::uint64_t n, std::uint64_t& seed,
                        std::uint64_t& offset) {
        const catena_status s = host().philox(call.context(), n, &seed, &offset);
        if (s != CATENA_OK) throw Error(s);  // the host keeps the error text
    }
    // Box-Muller transform: makes two normal numbers from two uniform numbers in (0, 1).
    template <class T>
    CATENA_KERNEL static void normal(const Philox4& block, T (&out)[4]) {
        for (int i = 0; i < 4; i += 2) {
            const double u = (block.v[i] + 0.5) * 0x1p-32;
            const double angle = 2 * std::numbers::pi * (block.v[i + 1] + 0.5) * 0x1p-32;
            const double radius = math::sqrt(-2 * math::log(u));
            out[i] = static_cast<T>(radius * std::cos(angle));
            out[i + 1] = static_cast<T>(radius * std::sin(angle));
        }
    }
};

CATENA_PLUGIN("org.example.gaussian_noise", "1.0.0", GaussianNoise);
