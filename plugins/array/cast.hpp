// Conversion to another dtype.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/half.hpp>

namespace catena::plugins {

using namespace catena::plugin;

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T> || is_half_type<T>;

// Returns x as a type with arithmetic: float for half types. convert_to() converts it to To, and
// rounds it once.
template <class T>
constexpr auto number(T x) {
    if constexpr (is_half_type<T>) return to_float(x);
    else return x;
}
template <class To, class From>
constexpr To convert_to(From x) {
    if constexpr (is_half_type<To> && !std::is_same_v<From, float>)
        return to_half<To>(catena_to_float_odd(static_cast<double>(x)));
    else if constexpr (is_half_type<To>) return to_half<To>(x);
    else if constexpr (std::is_same_v<To, bool>) return x != From(0);
    else return static_cast<To>(x);
}

// Sets y to x, converted to y's dtype, or adds x to y.
template <class From, class To>
void convert(const auto& call, Tensor<const From> x, Tensor<To> y, bool add) {
    call.parallel(x.size(), 1, [&](std::int64_t begin, std::int64_t end) {
        const From* from = x.data;
        To* to = y.data;
        if (add) {
            using N = decltype(number(To()));
            for (std::int64_t i = begin; i < end; ++i)
                to[i] =
                    convert_to<To>(static_cast<N>(number(to[i]) + static_cast<N>(number(from[i]))));
            return;
        }
        CATENA_LOOP
        for (std::int64_t i = begin; i < end; ++i) to[i] = convert_to<To>(number(from[i]));
    });
}

struct Cast {
    static constexpr auto about =
        describe("catena.cast",
                 "y = x in another dtype; floats are truncated towards zero for integer dtypes",
                 in("x"), out(Port("y").of("U")), required<catena_dtype>("dtype", "the dtype of y"))
            .example("x=(2,3) dtype=\"float64\"");
    using isas = IsaList<Isa::baseline>;
    using types = Pairs<AllTypes>::type;
    static constexpr bool any_device = true;
    static constexpr bool any_half = false;  // the kernel needs the exact half type

    static void infer(const auto& s) { s.y(0, s.x(0), s.template attr<"dtype">()); }
    static void gradient(const auto& g) { g.gx(0, cast(g.gy(0), g.x_meta(0).dtype)); }

    template <class T, class U>
    CATENA_KERNEL static void forward(const auto& call) {
        convert(call, call.template x<T>(0), call.template y<U>(0), call.adds(0));
    }
    template <class T, class U>
        requires(is_float<T>)
    CATENA_KERNEL static void backward(const auto& call) requires(is_float<U>) {
        convert(call, call.template gy<U>(0), call.template gx<T>(0), call.adds(0));
    }
};

CATENA_FUNCTIONS(Cast);

}  // namespace catena::plugins
