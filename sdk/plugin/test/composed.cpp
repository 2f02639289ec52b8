// Compositions for the tests of catena::testing: right ones, and wrong ones.
#include <catena/plugin.hpp>

namespace {

using namespace catena::plugin;

// Several calls, an optional input, an attribute, and a variable that is used twice.
struct Distance {
    static constexpr auto about =
        describe("composed.distance", "y = w margin (a - b)^2", in("a", "b", Port("w").optional()),
                 out("y"), attr("margin", 2.0, "a factor"))
            .example("a=(2,3) b=(2,3)")
            .example("a=(2,3) b=(3) w=(2,3) margin=0.5");
    static Var compose(const auto& g) {
        const Var d = g.x(0) - g.x(1);
        const Var y = g.template attr<"margin">() * d * d;
        return g.has(2) ? g.x(2) * y : y;
    }
};

// A composition of a composition; an input is a result; two outputs.
struct Both {
    static constexpr auto about =
        describe("composed.both", "y = (a - b)^2 a, z = a", in("a", "b"), out("y", "z"))
            .recomputed()
            .example("a=(2,3) b=(2,3)");
    static std::array<Var, 2> compose(const auto& g) {
        g.check_shape(1, g.x_meta(0).shape());
        const Var d =
            call<"composed.distance">({g.x(0), g.x(1), Var::missing()}, {set("margin", 1.0)});
        return {d * g.x(0), g.x(0)};
    }
};

// Reads elements: row sums of pieces of x with these lengths.
struct PieceSums {
    static constexpr auto about =
        describe("composed.pieces", "sums of pieces of x",
                 in("x", Port("lengths", "of the pieces").of("I").host()), out("y"))
            .example("x=(7,2) lengths=[3,2,2]");
    static Var compose(const auto& g) {
        const std::vector<std::int64_t> lengths = g.elements(1);
        std::vector<Var> sums;
        std::int64_t begin = 0;
        for (const std::int64_t n : lengths) {
            const std::int64_t end = begin + n;
            g.check(n >= 0 && end <= g.x(0).dim(0), "lengths", "at most the rows of x", end,
                    CATENA_E_VALUE);
            const std::int64_t from[] = {begin}, to[] = {end};
            const Var piece =
                call<"catena.get_item">({g.x(0)}, {set("begin", Ints(from)), set("end", Ints(to))});
            sums.push_back(sum(piece, {0}, true));
            begin = end;
        }
        g.check(!sums.empty() && begin == g.x(0).dim(0), "lengths", "the rows of x", begin);
        return call<"catena.concat">(sums, {set("axis", std::int64_t{0})});
    }
};

// With labels and random numbers.
struct Noise {
    static constexpr auto about =
        describe("composed.noise", "softmax_cross_entropy(dropout(x), t)",
                 in("x", Port("t").of("I").not_differentiable()), out("y"))
            .stochastic()
            .recomputed()
            .example("x=(4,3) t=(4)[0,2]");
    static Var compose(const auto& g) {
        const Var x = call<"catena.dropout">({g.x(0)}, {set("ratio", 0.5)});
        return call<"catena.softmax_cross_entropy">({x, g.x(1)});
    }
};

// infer(), kernels and a gradient() beside the composition. wrong: the part that differs.
enum class Wrong { nothing, shape, kernel, backward, gradient };
template <Wrong wrong>
struct Square {
    static constexpr const char* names[] = {"composed.square", "composed.shape", "composed.kernel",
                                            "composed.backward", "composed.gradient"};
    static constexpr auto about =
        describe(names[static_cast<int>(wrong)], "y = x^2", in("x"), out("y")).example("x=(3,4)");
    static constexpr auto retain_x = ports(0);
    using types = Rows<Row<float>>;
    static void infer(const auto& s) {
        if constexpr (wrong == Wrong::shape) s.y(0, {s.size(0)});
        else s.y(0, s.x(0));
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        for (std::int64_t i = 0; i < x.size(); ++i)
            store(y[i], call.adds(0), x[i] * x[i] + (wrong == Wrong::kernel ? T(1) : T(0)));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        for (std::int64_t i = 0; i < x.size(); ++i)
            store(gx[i], call.adds(0), (wrong == Wrong::backward ? T(3) : T(2)) * x[i] * gy[i]);
    }
    static void gradient(const auto& g) requires(wrong == Wrong::gradient) {
        g.gx(0, 3.0 * g.x(0) * g.gy(0));
    }
    static Var compose(const auto& g) { return g.x(0) * g.x(0); }
};

struct Recursive {
    static constexpr auto about = describe("composed.loop", "calls itself", in("x"), out("y"));
    static Var compose(const auto& g) { return call<"composed.loop">({g.x(0)}); }
};
struct Peek {
    static constexpr auto about = describe("composed.peek", "reads x", in("x"), out("y"));
    static Var compose(const auto& g) {
        const void* elements = nullptr;
        check_status(host().read(g.context(), g.x(0).get(), &elements));
        return g.x(0);
    }
};
struct Unlike {
    static constexpr auto about =
        describe("composed.unlike", "a and b differ", in("a", Port("b").of("U")), out("y"));
    static Var compose(const auto& g) { return g.x(0) + g.x(1); }
};
// An error of a call within a call, of an argument that is no input of this function.
struct Fives {
    static constexpr auto about = describe("composed.fives", "wrong", in("x"), out("y"));
    static Var compose(const auto& g) { return reshape(g.x(0) * g.x(0), {5}); }
};
struct Outer {
    static constexpr auto about = describe("composed.outer", "wrong", in("shape"), out("y"));
    static Var compose(const auto& g) { return call<"composed.fives">({g.x(0)}); }
};

}  // namespace

CATENA_PLUGIN("org.example.composed", "1.0.0", Distance, Both, PieceSums, Noise,
              Square<Wrong::nothing>, Square<Wrong::shape>, Square<Wrong::kernel>,
              Square<Wrong::backward>, Square<Wrong::gradient>, Recursive, Peek, Unlike, Fives,
              Outer);
