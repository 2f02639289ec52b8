// centre: a port that the kernel updates in place, and a function that behaves differently in
// training.
#include <catena/plugin.hpp>
#include <catena/plugin/reduce.hpp>

using namespace catena::plugin;

struct Centre {
    static constexpr auto about =
        describe("org.example.centre",
                 "y = x - its mean over the minibatch\n\n"
                 "In training the running mean follows; outside, y = x - the running mean.",
                 in(Port("x", "(N, ...)"),
                    Port("mean", "(...), the running mean").mutated().not_differentiable()),
                 out("y"), attr("decay", 0.9, "of the running mean").range(0, 1))
            .example("x=(4,3) mean=(3)")
            .example("x=(2,2,3) mean=(2,3) decay=0.5");

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        s.check(!x.empty(), "x.ndim", "at least 1", x.size());
        s.check(std::ranges::equal(s.x(1), x.subspan(1)), "mean.shape", x.subspan(1), s.x(1));
        s.y(0, x);
    }
    static void gradient(const auto& g) {
        const auto n = static_cast<double>(std::max<std::int64_t>(g.x_shape(0)[0], 1));
        const Var gy = g.gy(0);
        g.gx(0, g.train() ? gy - sum(gy, {0}, true) / n : gy);
    }

    // Requests scratch memory for the mean of the minibatch, which only training computes.
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.train())
            plan.scratch_bytes = sizeof(T) * static_cast<std::uint64_t>(size_of(*call.raw().x[1]));
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto running = call.template mutated<T>(1);
        const auto y = call.template y<T>(0);
        const std::int64_t n = x.dim(0);
        const std::int64_t width = running.size();
        const T* mean = running.data;
        if (call.train() && n > 0) {
            T* const own = call.template scratch<T>();
            const T step = static_cast<T>(1 - call.template attr<"decay">());
            sum_axes(call, Reduction(x.shape, [](std::size_t d) { return d == 0; }), x.data, own,
                     false);
            for (std::int64_t i = 0; i < width; ++i) {
                own[i] /= static_cast<T>(n);
                running[i] += step * (own[i] - running[i]);
            }
            mean = own;
        }
        const bool add = call.adds(0);
        call.parallel(n, width, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t r = begin; r < end; ++r) {
                CATENA_LOOP
                for (std::int64_t i = 0; i < width; ++i)
                    store(y[r * width + i], add, x[r * width + i] - mean[i]);
            }
        });
    }
};

CATENA_PLUGIN("org.example.centre", "1.0.0", Centre);
