// huber_loss: a string attribute with a list of valid values.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct HuberLoss {
    static constexpr const char* reductions[] = {"mean", "sum", nullptr};
    static constexpr auto about =
        describe("org.example.huber_loss",
                 "loss = mean or sum of d^2 / 2 where |d| < delta, else of delta (|d| - delta / 2)"
                 "\n\nd = x - t.",
                 in("x", "t"), out("loss"),
                 attr("delta", 1.0, "where the parabola becomes a line").range(0, 1e6),
                 attr("reduce", "mean", "what becomes of the elements' losses").one_of(reductions))
            .example("x=(2,3)[1,3] t=(2,3)[-1,0.5] delta=0.25")
            .example("x=(4) t=(4) delta=3 reduce=\"sum\"")
            .example("x=() t=() delta=3");
    static constexpr auto retain_x = ports(0, 1);

    static void infer(const auto& s) {
        s.check(std::ranges::equal(s.x(1), s.x(0)), "t.shape", s.x(0), s.x(1));
        s.y(0, {});
    }
    static void gradient(const auto& g) {
        const double delta = g.template attr<"delta">();
        const Var slope = math::max(math::min(g.x(0) - g.x(1), delta), -delta);
        const Var gx = g.gy(0) * slope / divisor(g, size_of(g.x_shape(0)));
        g.gx(0, gx);
        g.gx(1, -gx);
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto t = call.template x<T>(1);
        const auto delta = call.template attr<"delta">();
        // Pieces start at the same elements for any number of threads, and are added in order.
        double sums[most_pieces] = {};
        const std::int64_t n = x.size();
        const std::int64_t piece = std::max<std::int64_t>(4096, n / most_pieces + 1);
        call.parallel((n + piece - 1) / piece, piece,
                      [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                          for (std::int64_t p = begin; p < end; ++p)
                              for (std::int64_t i = p * piece; i < std::min(n, (p + 1) * piece);
                                   ++i)
                                  sums[p] += loss(static_cast<double>(x[i]) - t[i], delta);
                      });
        double total = 0;
        for (const double sum : sums) total += sum;
        store(*call.template y<T>(0).data, call.adds(0), static_cast<T>(total / divisor(call, n)));
    }

private:
    static constexpr std::int64_t most_pieces = 64;

    static double loss(double d, double delta) {
        const double a = math::abs(d);
        return a < delta ? a * a / 2 : delta * (a - delta / 2);
    }
    // The host has checked that reduce is "mean" or "sum".
    static double divisor(const auto& call, std::int64_t n) {
        return call.template attr<"reduce">() == "mean" ? static_cast<double>(n) : 1.0;
    }
    static std::int64_t size_of(Shape shape) {
        std::int64_t n = 1;
        for (const std::int64_t d : shape) n *= d;
        return n;
    }
};

CATENA_PLUGIN("org.example.huber_loss", "1.0.0", HuberLoss);
