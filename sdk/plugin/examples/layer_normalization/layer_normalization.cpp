// layer_normalization: statistics of each row, kept for backward in hidden outputs.
#include <catena/plugin.hpp>
#include <catena/plugin/rows.hpp>

#include <cmath>

using namespace catena::plugin;

struct LayerNormalization {
    static constexpr auto about =
        describe("org.example.layer_normalization",
                 "y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and var of each row\n\n"
                 "A row lies along the last axis; var is the biased one. (Ba, Kiros and Hinton, "
                 "\"Layer Normalization\", 2016.)",
                 in("x", Port("gamma", "as a row of x"), Port("beta", "as a row of x")),
                 out("y", Port("mean", "of each row").of("S").hidden(),
                     Port("scale", "1 / sqrt(var + eps) of each row").of("S").hidden()),
                 attr("eps", 1e-5, "keeps the root from 0").range(0, 1))
            .example("x=(4,3) gamma=(3) beta=(3)")
            .example("x=(2,3,5) gamma=(5)[0.5,1.5] beta=(5) eps=0.001");
    // S: the dtype of the statistics of T; float32 for half precision.
    using types = Rows<Row<float, float>, Row<double, double>>;
    static constexpr auto retain_x = ports(0, 1);
    static constexpr auto retain_y = ports(1, 2);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        s.check(!x.empty(), "x.ndim", "at least 1", x.size());
        s.check(std::ranges::equal(s.x(1), x.last(1)), "gamma.shape", x.last(1), s.x(1));
        s.check(std::ranges::equal(s.x(2), x.last(1)), "beta.shape", x.last(1), s.x(2));
        s.y(0, x);
        for (const std::size_t i : {1, 2}) s.y(i, x.first(x.size() - 1), s.wide(0));
    }
    static void gradient(const auto& g) {
        const Shape x = g.x_shape(0);
        const auto last = static_cast<std::int64_t>(x.size()) - 1;
        const auto mean = [&](const Var& v) { return sum(v, {last}, true) * share_of(x.back()); };
        const Var gy = g.gy(0);
        const Var centred = g.x(0) - mean(g.x(0));
        const Var scale = 1.0 / math::sqrt(mean(centred * centred) + g.template attr<"eps">());
        const Var normal = centred * scale;
        if (g.wants(0)) {
            const Var gn = gy * g.x(1);
            g.gx(0, scale * (gn - mean(gn) - normal * mean(gn * normal)));
        }
        if (g.wants(1)) g.gx(1, gy * normal);  // summed over the rows, because gamma was broadcast
        if (g.wants(2)) g.gx(2, gy);
    }

    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto gamma = call.template x<T>(1);
        const auto beta = call.template x<T>(2);
        const auto y = call.template y<T>(0);
        const auto means = call.template y<S>(1);
        const auto scales = call.template y<S>(2);
        const double eps = call.template attr<"eps">();
        const std::int64_t n = gamma.size();
        call.parallel(means.size(), 4 * n, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t r = begin; r < end; ++r) {
                const T* const p = x.data + r * n;
                const T mean = static_cast<T>(sum_of(p, n) * share_of(n));
                const T squares = sum_lanes<T>(
                    n, [&](std::int64_t i) CATENA_LAMBDA { return (p[i] - mean) * (p[i] - mean); });
                const double var = static_cast<double>(squares) * share_of(n);
                const T scale = static_cast<T>(1 / std::sqrt(var + eps));
                // [add]
                CATENA_LOOP
                for (std::int64_t i = 0; i < n; ++i)
                    store(y[r * n + i], call.adds(0), (p[i] - mean) * scale * gamma[i] + beta[i]);
                // Like any output, hidden outputs are added to if the call requests it.
                store(means[r], call.adds(1), static_cast<S>(mean));
                store(scales[r], call.adds(2), static_cast<S>(scale));
                // [/add]
            }
        });
    }

    template <class T, class S>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto gamma = call.template x<T>(1);
        const auto mean = call.template y<S>(1);
        const auto scale = call.template y<S>(2);
        const auto gy = call.template gy<T>(0);
        const std::int64_t n = gamma.size();
        if (const auto gx = call.template gx<T>(0))
            call.parallel(
                mean.size(), 6 * n, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                    for (std::int64_t r = begin; r < end; ++r) {
                        const T* const p = x.data + r * n;
                        const T* const g = gy.data + r * n;
                        const T m = static_cast<T>(mean[r]);
                        const T s = static_cast<T>(scale[r]);
                        const T share = static_cast<T>(share_of(n));
                        const T of_g = share * sum_lanes<T>(n, [&](std::int64_t i) CATENA_LAMBDA {
                                           return g[i] * gamma[i];
                                       });
                        const T of_gn = share * sum_lanes<T>(n, [&](std::int64_t i) CATENA_LAMBDA {
                                            return g[i] * gamma[i] * ((p[i] - m) * s);
                                        });
                        CATENA_LOOP
                        for (std::int64_t i = 0; i < n; ++i)
                            store(gx[r * n + i], call.adds(0),
                                  s * (g[i] * gamma[i] - of_g - (p[i] - m) * s * of_gn));
                    }
                });
        // Sums over all rows. Each thread adds the rows of its own columns in order, so the result
        // does not depend on the number of threads.
        const auto ggamma = call.template gx<T>(1);
        const auto gbeta = call.template gx<T>(2);
        if (!ggamma && !gbeta) return;
        call.parallel(n, 4 * mean.size(), [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            constexpr std::int64_t most = 256;
            for (std::int64_t first = begin; first < end; first += most) {
                const std::int64_t width = std::min(most, end - first);
                double sums[2][most] = {};
                for (std::int64_t r = 0; r < mean.size(); ++r) {
                    const T* const p = x.data + r * n + first;
                    const T* const g = gy.data + r * n + first;
                    const T m = static_cast<T>(mean[r]);
                    const T s = static_cast<T>(scale[r]);
                    CATENA_LOOP
                    for (std::int64_t i = 0; i < width; ++i) {
                        sums[0][i] += static_cast<double>(g[i] * ((p[i] - m) * s));
                        sums[1][i] += static_cast<double>(g[i]);
                    }
                }
                for (std::int64_t i = 0; i < width; ++i) {
                    if (ggamma) store(ggamma[first + i], call.adds(1), static_cast<T>(sums[0][i]));
                    if (gbeta) store(gbeta[first + i], call.adds(2), static_cast<T>(sums[1][i]));
                }
            }
        });
    }

private:
    static double share_of(std::int64_t n) { return n > 0 ? 1 / static_cast<double>(n) : 0; }
};

CATENA_PLUGIN("org.example.layer_normalization", "1.0.0", LayerNormalization);
