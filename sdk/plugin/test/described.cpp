// Descriptions and kernels that do not compile; the first error says what is wrong.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct Described {
#if defined(RANGE)  // a range of floats for an integer attribute
    static constexpr auto eps = attr("eps", 1, "an offset").range(1e-3, 1);
#elif defined(REVERSED)
    static constexpr auto eps = attr("eps", 1.0, "an offset").range(1, 1e-3);
#elif defined(TEXT)
    static constexpr auto eps = attr("eps", "1", "an offset").range(1e-3, 1);
#elif defined(CHOICES)
    static constexpr const char* list[] = {"one", "two", nullptr};
    static constexpr auto eps = attr("eps", 1.0, "an offset").one_of(list);
#else
    static constexpr auto eps = attr("eps", 1.0, "an offset").range(1e-3, 1);
#endif
    static constexpr auto about =
#if defined(LISTS)
        describe("org.example.described", "y = x + eps", in("x"), in("w"), out("y"), eps)
#elif defined(NO_OUTPUT)
        describe("org.example.described", "y = x + eps", in("x"), eps)
#elif defined(PLAIN)
        describe("org.example.described", "y = x + eps", in("x"), out("y"), eps, 1.0)
#else
        describe("org.example.described", "y = x + eps", in("x"), out("y"), eps)
#endif
            .not_differentiable();

    static void infer(const auto& s) {
#if defined(INFER)
        s.check(s.template attr<"epz">() > 0, "eps", "another", "this");
#endif
        s.y(0, s.x(0));
    }
#if defined(SUPPORTS)
    bool supports(const auto&) const { return true; }
#elif defined(SAYS)
    static int supports(const auto&) { return 1; }
#else
    static bool supports(const auto&) { return true; }
#endif
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
#if defined(KERNEL)
        const T eps = static_cast<T>(call.template attr<"epz">());
#else
        const T eps = static_cast<T>(call.template attr<"eps">());
#endif
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        for (std::int64_t i = 0; i < x.size(); ++i) store(y[i], call.adds(0), x[i] + eps);
    }
};

CATENA_PLUGIN("org.example.described", "1.0.0", Described);
