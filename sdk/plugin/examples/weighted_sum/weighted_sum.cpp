// weighted_sum: any number of inputs, with a variadic port, and a list as an attribute.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct WeightedSum {
    static constexpr auto about =
        describe("org.example.weighted_sum", "y = sum of weights[i] * x[i]",
                 in(Port("x", "arrays of one shape").variadic()), out("y"),
                 required<Floats>("weights", "a factor for each x"))
            .example("x=(2,3) x=(2,3) weights=[0.5,-2]")
            .example("x=(4) weights=[3]")
            .example("x=() x=() x=() weights=[1,0,2]");

    static void infer(const auto& s) {
        const std::size_t n = s.template attr<"weights">().size();
        s.check(n == s.n_x(), "weights", std::to_string(s.n_x()) + " numbers", n, CATENA_E_INVALID);
        for (std::size_t i = 1; i < n; ++i)
            s.check(std::ranges::equal(s.x(i), s.x(0)), "x.shape", s.x(0), s.x(i));
        s.y(0, s.x(0));
    }
    static void gradient(const auto& g) {
        for (std::size_t i = 0; i < g.n_x(); ++i)
            if (g.wants(i)) g.gx(i, g.gy(0) * g.template attr<"weights">()[i]);
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const Floats weights = call.template attr<"weights">();
        const auto y = call.template y<T>(0);
        for (std::size_t i = 0; i < weights.size(); ++i)
            add_scaled(call, weights[i], call.template x<T>(i).data, y, i > 0 || call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const Floats weights = call.template attr<"weights">();
        const T* const gy = call.template gy<T>(0).data;
        for (std::size_t i = 0; i < weights.size(); ++i)
            if (call.wants(i))
                add_scaled(call, weights[i], gy, call.template gx<T>(i), call.adds(i));
    }

private:
    // Stores weight * from in `to`, or adds it to the old value.
    template <class T>
    CATENA_KERNEL static void add_scaled(const auto& call, double weight, const T* from,
                                         Tensor<T> to, bool add) {
        const T w = static_cast<T>(weight);
        call.parallel(to.size(), 1, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            CATENA_LOOP
            for (std::int64_t i = begin; i < end; ++i) store(to[i], add, w * from[i]);
        });
    }
};

CATENA_PLUGIN("org.example.weighted_sum", "1.0.0", WeightedSum);
