// Activations that are compositions: gates, and the parts of an axis.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Relu6 {
    static constexpr auto about =
        describe("catena.relu6", "y = x, limited to 0 <= y <= 6", in("x"), out("y"))
            .example("x=(2,3)[0.5,1.5]");
    static Var compose(const auto& g) {
        return call<"catena.clipped_relu">({g.x(0)}, {set("z", 6.0)});
    }
};

struct Selu {
    static constexpr auto about =
        describe(
            "catena.selu",
            "y = scale elu(x, alpha); the defaults keep mean 0 and variance 1\n\n(Klambauer et "
            "al., \"Self-Normalizing Neural Networks\", NeurIPS 2017.)",
            in("x"), out("y"), attr("alpha", 1.6732632423543772, "-y / scale for x to -infinity"),
            attr("scale", 1.0507009873554805, "a factor of y"))
            .example("x=(2,3)[0.5,1.5]")
            .example("x=(2,3)[-1.5,-0.5]");
    static Var compose(const auto& g) {
        return call<"catena.elu">({g.x(0)}, {g.same("alpha"), g.same("scale")});
    }
};

struct Celu {
    static constexpr auto about =
        describe("catena.celu",
                 "y = max(x, 0) + min(alpha (e^(x / alpha) - 1), 0)\n\n(Barron, \"Continuously "
                 "Differentiable Exponential Linear Units\", 2017.)",
                 in("x"), out("y"), attr("alpha", 1.0, "-y for x to -infinity"))
            .example("x=(2,3)")
            .example("x=(2,3) alpha=0.5");
    static Var compose(const auto& g) {
        const double alpha = g.template attr<"alpha">();
        g.check(alpha != 0, "alpha", "a number other than 0", alpha, CATENA_E_INVALID);
        return call<"catena.elu">({g.x(0)}, {g.same("alpha"), set("input_scale", 1 / alpha)});
    }
};

struct Crelu {
    static constexpr auto about =
        describe("catena.crelu",
                 "y = relu(x) and relu(-x), joined along an axis\n\n(Shang et al., \"Understanding "
                 "and Improving Convolutional Neural Networks via Concatenated Rectified Linear "
                 "Units\", ICML 2016.)",
                 in("x"), out("y"), attr("axis", 1, "the axis"))
            .example("x=(2,3)[0.5,1.5]")
            .example("x=(2,3)[-1.5,-0.5] axis=0");
    static Var compose(const auto& g) {
        const auto relu = [](const Var& x) { return call<"catena.relu">({x}); };
        g.axis(g.template attr<"axis">(), g.x_meta(0).shape().size());
        return concat({relu(g.x(0)), relu(-g.x(0))}, g.template attr<"axis">());
    }
};

struct Maxout {
    static constexpr auto about =
        describe(
            "catena.maxout",
            "y = the largest of each pool_size adjacent elements along an axis\n\n(Goodfellow et "
            "al., \"Maxout Networks\", ICML 2013.)",
            in("x"), out("y"),
            required<std::int64_t>("pool_size", "a divisor of the extent").range(1, 0x1p31),
            attr("axis", 1, "the axis"))
            .example("x=(2,6) pool_size=2")
            .example("x=(4,3) pool_size=2 axis=0");
    static Var compose(const auto& g) {
        List split = list_of(g.x_meta(0).shape());
        const std::size_t d = g.axis(g.template attr<"axis">(), split.size());
        const std::int64_t size = g.template attr<"pool_size">();
        g.check(split[d] % size == 0, ("x.shape[" + text_of(d) + "]").c_str(),
                "a multiple of pool_size " + text_of(size), split[d]);
        split[d] /= size;
        split.insert(split.begin() + static_cast<std::ptrdiff_t>(d) + 1, size);
        const std::int64_t axis[] = {static_cast<std::int64_t>(d) + 1};
        return call<"catena.max">({reshape(g.x(0), split)}, {set("axis", Ints(axis))});
    }
};

// The halves of x along the call's axis.
std::array<Var, 2> halves(const auto& g) {
    const Meta x = g.x_meta(0);
    const std::size_t d = g.axis(g.template attr<"axis">(), x.shape().size());
    const std::int64_t n = x.shape()[d], axis = static_cast<std::int64_t>(d);
    g.check(n % 2 == 0, ("x.shape[" + text_of(d) + "]").c_str(), "an even extent", n);
    return {slice(g.x(0), axis, 0, n / 2), slice(g.x(0), axis, n / 2)};
}
constexpr auto gated(const char* name, const char* doc) {
    return describe(name, doc, in("x"), out("y"), attr("axis", -1, "the axis"))
        .example("x=(2,4)")
        .example("x=(2,3) axis=0");
}
struct Glu {
    static constexpr auto about =
        gated("catena.glu",
              "y = a sigmoid(b), with the halves a and b of x along an axis\n\n(Dauphin et al., "
              "\"Language Modeling with Gated Convolutional Networks\", 2016.)");
    static Var compose(const auto& g) {
        const auto [a, b] = halves(g);
        return a * math::sigmoid(b);
    }
};
struct Geglu {
    static constexpr auto about = gated(
        "catena.geglu",
        "y = gelu(a) b, with the halves a and b of x along an axis\n\n(Shazeer, \"GLU Variants "
        "Improve Transformer\", 2020.)");
    static Var compose(const auto& g) {
        const auto [a, b] = halves(g);
        return call<"catena.gelu">({a}) * b;
    }
};
struct SwigluHalves {
    static constexpr auto about =
        gated("catena.swiglu_halves", "y = silu(a) b, with the halves a and b of x along an axis");
    static Var compose(const auto& g) { return call<"catena.swiglu">(halves(g)); }
};

CATENA_FUNCTIONS(Relu6, Selu, Celu, Crelu, Maxout, Glu, Geglu, SwigluHalves);

}  // namespace catena::plugins
