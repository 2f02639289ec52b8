// Normalisation of each row of an array by its own statistics: of a layer, its root mean square, or
// groups of channels.
#pragma once

#include "channels.hpp"

#include <cmath>

#include <catena/plugin/rows.hpp>

namespace catena::plugins {

// x as (n, groups, channels, run): a row is an item of the first two axes, and gamma and beta have
// a value for each of groups * channels.
struct RowView {
    std::int64_t rows() const { return n * groups; }
    std::int64_t length() const { return channels * run; }
    std::int64_t values() const { return groups * channels; }
    double share() const {  // the weight of an element in the mean of its row
        return 1 / static_cast<double>(std::max<std::int64_t>(length(), 1));
    }
    // The parts of the rows for which the gradients of gamma and beta are summed apart. Their
    // number does not depend on the number of threads.
    std::int64_t pieces() const {
        return std::clamp<std::int64_t>(std::min(rows(), rows() * length() / serial_work), 1, 64);
    }

    std::int64_t n, groups, channels, run;
};

// Kernels for a dtype, shared by all functions.
template <class T, Isa instruction_set>
struct RowKernels {
    static constexpr Isa isa = instruction_set;

    catena_ctx* ctx;
    RowView of;
    bool centred;  // whether the mean is subtracted
    double eps;
    const T* x;
    const T* gamma;
    const T* beta = nullptr;
    T* mean = nullptr;  // null if it is not subtracted
    T* scale;
    const T* gy = nullptr;
    T* out = nullptr;      // y or gx; gx may be null
    T* partial = nullptr;  // sums for gamma and beta of each piece; or null
    bool add_out = false, add_mean = false, add_scale = false;

    struct Forward {
        CATENA_KERNEL static void run(const RowKernels* k) { k->forward(); }
    };
    struct Backward {
        CATENA_KERNEL static void run(const RowKernels* k) { k->backward(); }
    };

private:
    // The sums of f(i)[0], f(i)[1] ... for i in [0, count).
    template <std::size_t n_sums>
    CATENA_KERNEL static std::array<double, n_sums> sums_of(std::int64_t count, const auto& f) {
        constexpr std::int64_t lanes = 64 / n_sums;
        constexpr std::int64_t block = 4096;  // elements summed in T before adding to a double
        std::array<double, n_sums> total{};
        for (std::int64_t from = 0; from < count; from += block) {
            const std::int64_t to = std::min(from + block, count);
            T lane[n_sums][lanes] = {};
            const auto add = [&](std::int64_t i, std::int64_t j) CATENA_LAMBDA {
                const std::array<T, n_sums> v = f(i);
                for (std::size_t s = 0; s < n_sums; ++s) lane[s][j] += v[s];
            };
            std::int64_t i = from;
            for (; i + lanes <= to; i += lanes) {
                CATENA_LOOP
                for (std::int64_t j = 0; j < lanes; ++j) add(i + j, j);
            }
            for (std::int64_t j = 0; i < to; ++i, ++j) add(i, j);
            for (std::size_t s = 0; s < n_sums; ++s) {
                for (std::int64_t width = lanes / 2; width >= 8; width /= 2)
                    for (std::int64_t j = 0; j < width; ++j) lane[s][j] += lane[s][j + width];
                for (std::int64_t j = 0; j < 8; ++j) total[s] += static_cast<double>(lane[s][j]);
            }
        }
        return total;
    }
    CATENA_KERNEL static double sum(std::int64_t count, const auto& f) {
        return sums_of<1>(count,
                          [&](std::int64_t i) CATENA_LAMBDA { return std::array<T, 1>{f(i)}; })[0];
    }
    // Calls f(element, index of gamma) for the elements of a row.
    CATENA_KERNEL void each(std::int64_t first, const auto& f) const {
        if (of.run == 1) {
            CATENA_LOOP
            for (std::int64_t c = 0; c < of.channels; ++c) f(c, first + c);
            return;
        }
        for (std::int64_t c = 0; c < of.channels; ++c) {
            CATENA_LOOP
            for (std::int64_t j = 0; j < of.run; ++j) f(c * of.run + j, first + c);
        }
    }

    CATENA_KERNEL void forward() const {
        const std::int64_t n = of.length();
        auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t r = begin; r < end; ++r) {
                const T* const p = x + r * n;
                T* const to = out + r * n;
                T m = 0;
                if (centred)
                    m = static_cast<T>(sum(n, [&](std::int64_t i) CATENA_LAMBDA { return p[i]; }) *
                                       of.share());
                const double squares =
                    sum(n, [&](std::int64_t i) CATENA_LAMBDA { return (p[i] - m) * (p[i] - m); });
                const T s = static_cast<T>(1 / std::sqrt(squares * of.share() + eps));
                if (add_out)
                    each(r % of.groups * of.channels,
                         [&](std::int64_t i, std::int64_t c)
                             CATENA_LAMBDA { to[i] += (p[i] - m) * s * gamma[c] + beta[c]; });
                else
                    each(r % of.groups * of.channels,
                         [&](std::int64_t i, std::int64_t c)
                             CATENA_LAMBDA { to[i] = (p[i] - m) * s * gamma[c] + beta[c]; });
                if (mean != nullptr) store(mean[r], add_mean, m);
                store(scale[r], add_scale, s);
            }
        };
        parallel<isa>(ctx, of.rows(), 4 * n, body);
    }

    CATENA_KERNEL void backward() const {
        const std::int64_t n = of.length();
        const std::int64_t rows = of.rows();
        const std::int64_t values = of.values();
        const std::int64_t pieces = partial != nullptr ? of.pieces() : rows;
        auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t piece = begin; piece < end; ++piece) {
                T* const sums = partial + piece * 2 * values;
                if (partial != nullptr) std::fill_n(sums, 2 * values, T(0));
                const std::int64_t last = rows * (piece + 1) / pieces;
                for (std::int64_t r = rows * piece / pieces; r < last; ++r) {
                    const std::int64_t first = r % of.groups * of.channels;
                    const T m = mean != nullptr ? mean[r] : T(0);
                    row(x + r * n, gy + r * n, out + r * n, first, m, scale[r], sums);
                }
            }
        };
        parallel<isa>(ctx, pieces, 8 * n * std::max<std::int64_t>(rows / pieces, 1), body);
    }
    CATENA_KERNEL void row(const T* p, const T* g, T* gx, std::int64_t first, T m, T s,
                           T* sums) const {
        const std::int64_t n = of.length();
        double total = 0;    // of gy * gamma
        double product = 0;  // of gy * gamma * the normalized x
        T* const sum_gn = sums + first;
        T* const sum_g = sum_gn + of.values();
        if (of.run == 1) {
            const T* const by = gamma + first;
            const auto terms = [&](std::int64_t i) CATENA_LAMBDA {
                const T gn = g[i] * ((p[i] - m) * s);
                return std::array<T, 2>{g[i] * by[i], gn * by[i]};
            };
            // One loop for all sums overlaps their computation with the first read of x and gy.
            const auto both = partial == nullptr ? sums_of<2>(n, terms)
                                                 : sums_of<2>(n, [&](std::int64_t i) CATENA_LAMBDA {
                                                       sum_gn[i] += g[i] * ((p[i] - m) * s);
                                                       sum_g[i] += g[i];
                                                       return terms(i);
                                                   });
            total = both[0];
            product = both[1];
        } else {
            for (std::int64_t c = 0; c < of.channels; ++c) {
                const std::int64_t at = c * of.run;
                const auto both = sums_of<2>(of.run, [&](std::int64_t j) CATENA_LAMBDA {
                    return std::array<T, 2>{g[at + j], g[at + j] * ((p[at + j] - m) * s)};
                });
                total += both[0] * static_cast<double>(gamma[first + c]);
                product += both[1] * static_cast<double>(gamma[first + c]);
                if (partial == nullptr) continue;
                sum_gn[c] += static_cast<T>(both[1]);
                sum_g[c] += static_cast<T>(both[0]);
            }
        }
        if (out == nullptr) return;
        const T c1 = centred ? static_cast<T>(total * of.share()) : T(0);
        const T c2 = static_cast<T>(product * of.share());
        const auto value = [&](std::int64_t i, std::int64_t c) CATENA_LAMBDA {
            return s * (g[i] * gamma[c] - c1 - (p[i] - m) * s * c2);
        };
        if (add_out)
            each(first,
                 [&](std::int64_t i, std::int64_t c) CATENA_LAMBDA { gx[i] += value(i, c); });
        else
            each(first, [&](std::int64_t i, std::int64_t c) CATENA_LAMBDA { gx[i] = value(i, c); });
    }
};

// Sets to, the gradient of gamma (list 0) or beta (list 1), to the pieces' sums added in order.
template <class T>
void join_pieces(catena_ctx* ctx, const RowView& of, const T* partial, std::size_t list, T* to,
                 bool add) {
    const std::int64_t values = of.values();
    const T* const from = partial + static_cast<std::int64_t>(list) * values;
    auto body = [&](std::int64_t begin, std::int64_t end) {
        constexpr std::int64_t most = 256;
        for (std::int64_t at = begin; at < end; at += most) {
            const std::int64_t width = std::min(most, end - at);
            double sums[most] = {};
            for (std::int64_t piece = 0; piece < of.pieces(); ++piece)
                for (std::int64_t j = 0; j < width; ++j)
                    sums[j] += static_cast<double>(from[2 * piece * values + at + j]);
            for (std::int64_t j = 0; j < width; ++j)
                store(to[at + j], add, static_cast<T>(sums[j]));
        }
    };
    parallel<Isa::baseline>(ctx, values, 2 * of.pieces(), body);
}

// Ports: x, gamma and, if y is centred, beta; y, the mean if y is centred, and the scale. Unless F
// has groups, gamma and beta have the shape of the last axes of x, which are normalized.
template <class F, bool is_centred, bool has_groups = false>
struct RowNormalization {
    static constexpr bool normalizes_rows = true;
    static constexpr bool centred = is_centred;
    static constexpr std::size_t y_scale = is_centred ? 2 : 1;
    using types = StatisticTypes;
    static constexpr auto retain_x = ports(0, 1);
    static constexpr auto retain_y = is_centred ? ports(1, 2) : ports(1);

    // The number of last axes that are normalized: those of gamma or beta, or 1 without them.
    static std::size_t covered_axes(const auto& s) {
        for (std::size_t i = 1; i < n_inputs<F>; ++i) {
            if (!s.has(i)) continue;
            if constexpr (requires { s.x_shape(i); }) return s.x_shape(i).size();
            else return s.x(i).size();
        }
        return 1;
    }
    static RowView view(Shape x, std::int64_t groups) {
        return {x[0], groups, x[1] / groups, size_of(x.subspan(2))};
    }
    static RowView view(Shape x, std::size_t covered) {
        return {size_of(x.first(x.size() - covered)), 1, size_of(x.last(covered)), 1};
    }
    template <class T>
    static RowView view_of(const auto& call) {
        const Shape x = call.template x<T>(0).shape;
        if constexpr (has_groups) return view(x, call.template attr<"groups">());
        else return view(x, x.size() - call.template y<T>(y_scale).ndim());
    }

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        IntList statistics;
        std::int64_t of_groups[2];
        if constexpr (has_groups) {
            s.check_least_ndim(0, 2);
            const std::int64_t groups = s.template attr<"groups">();
            if (x[1] % groups != 0)
                s.check(false, "x.shape[1]", "a multiple of " + std::to_string(groups) + " groups",
                        x[1]);
            for (std::size_t i = 1; i < n_inputs<F>; ++i) s.check_shape(i, x.subspan(1, 1));
            of_groups[0] = x[0];
            of_groups[1] = groups;
            statistics = Ints(of_groups);
        } else {
            s.check_least_ndim(0, 1);
            const std::size_t covered = covered_axes(s);
            for (std::size_t i = 1; i < n_inputs<F>; ++i)
                if (s.has(i))
                    s.check_shape(i, x.last(std::clamp<std::size_t>(covered, 1, x.size())));
            statistics = x.first(x.size() - covered);
        }
        s.y(0, x);
        for (std::size_t i = 1; i <= y_scale; ++i) s.y(i, statistics, s.wide(0));
    }

    static void gradient(const auto& g) {
        const Shape shape = g.x_shape(0);
        RowView of;
        if constexpr (has_groups) of = view(shape, g.template attr<"groups">());
        else of = view(shape, covered_axes(g));
        const std::int64_t four[] = {of.n, of.groups, of.channels, of.run};
        const auto mean = [&](const Var& v) { return sum(v, {2, 3}, true) * of.share(); };
        const Var x = reshape(g.x(0), Ints(four));
        const Var gy = reshape(g.gy(0), Ints(four));
        const Var rest = centred ? x - mean(x) : x;
        const Var scale = 1.0 / math::sqrt(mean(rest * rest) + g.template attr<"eps">());
        const Var normal = rest * scale;
        if (g.wants(0)) {
            const Var gn = g.has(1) ? gy * reshape(g.x(1), {of.groups, of.channels, 1}) : gy;
            const Var middle = centred ? gn - mean(gn) : gn;
            g.gx(0, reshape(scale * (middle - normal * mean(gn * normal)), shape));
        }
        for (std::size_t i = 1; i < n_inputs<F>; ++i)
            if (g.wants(i)) g.gx(i, reshape(sum(i == 1 ? gy * normal : gy, {0, 3}), g.x_shape(i)));
    }

    // A missing gamma or beta is a list of 1 or 0 in scratch memory.
    template <class T>
    struct Scratch {
        Scratch(const auto& call, void* memory) {
            const RowView of = view_of<T>(call);
            Blocks blocks(memory);
            const bool forward = call.raw().phase == CATENA_PHASE_FORWARD;
            if (!call.template x<T>(1)) ones = blocks.take<T>(of.values());
            if (forward && (!centred || call.raw().x[2] == nullptr))
                zeros = blocks.take<T>(of.values());
            for (std::size_t i = 1; !forward && i < n_inputs<F>; ++i)
                if (call.wants(i) && partial == nullptr)
                    partial = blocks.take<T>(2 * of.pieces() * of.values());
            if (ones != nullptr) std::fill_n(ones, of.values(), T(1));
            if (zeros != nullptr) std::fill_n(zeros, of.values(), T(0));
            bytes = static_cast<std::uint64_t>(blocks.bytes());
        }
        T* ones = nullptr;
        T* zeros = nullptr;
        T* partial = nullptr;
        std::uint64_t bytes;
    };
    template <class T, class S>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes = Scratch<T>(call, nullptr).bytes;
    }

    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        auto k = kernels_of<T>(call);
        using K = decltype(k);
        const Scratch<T> scratch(call, call.template scratch<void>());
        if (scratch.ones != nullptr) k.gamma = scratch.ones;
        if constexpr (centred) k.beta = call.template x<T>(2).data;
        if (scratch.zeros != nullptr) k.beta = scratch.zeros;
        k.out = call.template y<T>(0).data;
        k.add_out = call.adds(0);
        k.add_mean = centred && call.adds(1);
        k.add_scale = call.adds(y_scale);
        Target<K::isa>::template call<typename K::Forward, const K*>(&k);
    }
    template <class T, class S>
    CATENA_KERNEL static void backward(const auto& call) {
        auto k = kernels_of<T>(call);
        using K = decltype(k);
        const Scratch<T> scratch(call, call.template scratch<void>());
        if (scratch.ones != nullptr) k.gamma = scratch.ones;
        k.gy = call.template gy<T>(0).data;
        k.out = call.template gx<T>(0).data;
        k.add_out = call.wants(0) && call.adds(0);
        k.partial = scratch.partial;
        Target<K::isa>::template call<typename K::Backward, const K*>(&k);
        if (k.partial == nullptr) return;
        for (std::size_t i = 1; i < n_inputs<F>; ++i)
            if (const auto gx = call.template gx<T>(i))
                join_pieces(call.context(), k.of, k.partial, i - 1, gx.data, call.adds(i));
    }

private:
    template <class T>
    static auto kernels_of(const auto& call) {
        RowKernels<T, std::remove_reference_t<decltype(call)>::isa> k;
        k.ctx = call.context();
        k.of = view_of<T>(call);
        k.centred = centred;
        k.eps = call.template attr<"eps">();
        k.x = call.template x<T>(0).data;
        k.gamma = call.template x<T>(1).data;
        if (centred) k.mean = call.template y<T>(1).data;
        k.scale = call.template y<T>(y_scale).data;
        return k;
    }
};

constexpr Port gamma_port(const char* shape) { return Port("gamma", shape).optional(); }
constexpr Port beta_port(const char* shape) { return Port("beta", shape).optional(); }
inline constexpr const char* last_axes = "the shape of the last axes of x; missing: 1";
inline constexpr auto mean_port = Port("mean", "of each row").of("S").hidden();
inline constexpr auto scale_port =
    Port("scale", "1 / sqrt(var + eps) of each row").of("S").hidden();

struct LayerNormalization : RowNormalization<LayerNormalization, true> {
    static constexpr auto about =
        describe("catena.layer_normalization",
                 "y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and var of each row\n\n"
                 "A row lies along the last axis or, if gamma and beta have several axes, along "
                 "as many last ones; var is the biased variance. (Ba, Kiros and Hinton, \"Layer "
                 "Normalization\", 2016.)",
                 in(Port("x"), gamma_port(last_axes),
                    beta_port("the shape of the last axes of x; missing: 0")),
                 out("y", mean_port, scale_port), eps_attr)
            .example("x=(4,3) gamma=(3) beta=(3)")
            .example("x=(2,3,5) gamma=(5)[0.5,1.5] beta=(5) eps=0.001")
            .example("x=(2,3,4) gamma=(3,4) beta=(3,4)")
            .example("x=(3,4)");
};

struct RmsNormalization : RowNormalization<RmsNormalization, false> {
    static constexpr auto about =
        describe(
            "catena.rms_normalization",
            "y = gamma x / sqrt(mean of x^2 + eps), with the mean over each row\n\n"
            "A row lies along the last axis or, if gamma has several axes, along as many last "
            "ones. (Zhang and Sennrich, \"Root Mean Square Layer Normalization\", NeurIPS "
            "2019.)",
            in(Port("x"), gamma_port(last_axes)),
            out("y", Port("scale", "1 / sqrt(mean of x^2 + eps) of each row").of("S").hidden()),
            attr("eps", 1e-5, "added to the mean").range(0, 1e30))
            .example("x=(4,3) gamma=(3)")
            .example("x=(2,3,4) gamma=(3,4)[0.5,1.5] eps=0.001")
            .example("x=(3,4)");
};

struct GroupNormalization : RowNormalization<GroupNormalization, true, true> {
    static constexpr auto about =
        describe(
            "catena.group_normalization",
            "y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and var of each group\n\n"
            "The channels (axis 1) of each sample form groups of equal size; var is the biased "
            "variance. (Wu and He, \"Group Normalization\", ECCV 2018.)",
            in(Port("x", "(N, C, ...)"), gamma_port("(C,); missing: 1"),
               beta_port("(C,); missing: 0")),
            out("y", mean_port, scale_port),
            required<std::int64_t>("groups", "their number; C is a multiple of it")
                .range(1, 1 << 30),
            eps_attr)
            .example("x=(2,4,3) gamma=(4) beta=(4) groups=2")
            .example("x=(2,6) gamma=(6)[0.5,1.5] beta=(6) groups=3 eps=0.001")
            .example("x=(1,2,3,2) groups=1");
};

CATENA_FUNCTIONS(LayerNormalization, RmsNormalization, GroupNormalization);

}  // namespace catena::plugins
