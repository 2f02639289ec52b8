// Mistakes that a compiler does not find. The SDK must report each where it is made.
#include <catena/plugin.hpp>

using namespace catena::plugin;

namespace {

// A correct function with two outputs: y = 2x, and a hidden number for each element, which backward
// reads.
struct Twice {
    static constexpr auto outputs = out("y", Port("kept").of("S").hidden());
    using types = Rows<Row<float, float>, Row<double, double>>;
    static constexpr auto retain_y = ports(1);

    static void infer(const auto& s) {
        s.y(0, s.x(0));
        s.y(1, s.x(0), s.wide(0));
    }
    static void gradient(const auto& g) { g.gx(0, g.gy(0) * cast(g.y(1), g.x_meta(0).dtype)); }
    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        const auto kept = call.template y<S>(1);
        for (std::int64_t i = 0; i < x.size(); ++i) {
            store(y[i], call.adds(0), 2 * x[i]);
            store(kept[i], call.adds(1), S(2));
        }
    }
};

struct HiddenAdd : Twice {  // overwrites a hidden output instead of adding to it
    static constexpr auto about =
        describe("org.example.hidden_add", "y = 2x", in("x"), outputs).example("x=(2,3)");
    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto kept = call.template y<S>(1);
        Twice::forward<T, S>(call);
        std::fill_n(kept.data, kept.size(), S(2));
    }
};

// The tensor that a kernel reads as float64.
enum class Port64 { x, y, gy, gx, none };
template <Port64 port>
struct Mistyped {
    static constexpr const char* names[] = {"org.example.mistyped.x", "org.example.mistyped.y",
                                            "org.example.mistyped.gy", "org.example.mistyped.gx",
                                            "org.example.mistyped.none"};
    static constexpr auto about =
        describe(names[static_cast<int>(port)], "y = 2x", in("x"), out("y")).example("x=(40,50)");
    static void infer(const auto& s) { s.y(0, s.x(0)); }
    static void gradient(const auto& g) { g.gx(0, 2.0 * g.gy(0)); }
    template <class T>
    static void put(T& target, bool add, auto value) {
        store(target, add, static_cast<T>(value));
    }
    template <Port64 which, class T>
    using Taken = std::conditional_t<port == which, double, T>;
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<Taken<Port64::x, T>>(0);
        const auto y = call.template y<Taken<Port64::y, T>>(0);
        for (std::int64_t i = 0; i < x.size(); ++i) put(y[i], call.adds(0), 2 * x[i]);
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<Taken<Port64::gy, T>>(0);
        const auto gx = call.template gx<Taken<Port64::gx, T>>(0);
        for (std::int64_t i = 0; i < gx.size(); ++i) put(gx[i], call.adds(0), gy ? 2 * gy[i] : 0);
    }
};

struct WrongInfer {  // infer() sets y to float64 for all dtypes of x
    static constexpr auto about =
        describe("org.example.wrong_infer", "y = x", in("x"), out("y")).example("x=(2,3)");
    static void infer(const auto& s) { s.y(0, s.x(0), dtype_of<double>()); }
    static void gradient(const auto& g) { g.gx(0, g.gy(0)); }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        for (std::int64_t i = 0; i < x.size(); ++i) store(y[i], call.adds(0), x[i]);
    }
};

struct Throws {  // on any thread, if an element is below 0
    static constexpr auto about =
        describe("org.example.throws", "y = x, for x from 0 on", in("x"), out("y"))
            .not_differentiable()
            .example("x=(2,3)[0,1]");
    static void infer(const auto& s) { s.y(0, s.x(0)); }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        call.parallel(x.size(), 4, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) {
                if (x[i] < 0) call.fail(CATENA_E_VALUE, "x", "numbers from 0 on", x[i]);
                store(y[i], call.adds(0), x[i]);
            }
        });
    }
};

}  // namespace

CATENA_PLUGIN("org.example.mistakes", "1.0.0", HiddenAdd, Mistyped<Port64::x>, Mistyped<Port64::y>,
              Mistyped<Port64::gy>, Mistyped<Port64::gx>, Mistyped<Port64::none>, WrongInfer,
              Throws);
