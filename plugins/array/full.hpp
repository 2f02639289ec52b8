// New arrays: of one number, of integers at equal distances, of a list of integers.
#pragma once

#include <cmath>

#include "runs.hpp"

namespace catena::plugins {

inline constexpr Attribute new_dtype = attr("dtype", dtype_of<float>(), "the dtype of y");

// Sets y[i] to rule(i), or adds it.
template <class F, Isa isa, class T, class Rule>
CATENA_KERNEL void fill_each(const Call<F, isa>& call, Tensor<T> y, const Rule& rule) {
    const bool add = call.adds(0);
    call.parallel(y.size(), 1, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t i = begin; i < end; ++i) store(y[i], add, static_cast<T>(rule(i)));
    });
}

struct SameNumber {
    CATENA_FN double operator()(std::int64_t) const { return value; }
    double value;
};
struct Progression {
    CATENA_FN std::int64_t operator()(std::int64_t i) const {  // modulo 2^64
        return static_cast<std::int64_t>(start + static_cast<std::uint64_t>(i) * step);
    }
    std::uint64_t start, step;
};
struct SomeIntegers {
    static constexpr std::int64_t most = 256;
    CATENA_FN std::int64_t operator()(std::int64_t i) const { return values[i]; }
    std::int64_t values[most];
};

struct Full {
    static constexpr auto about =
        describe("catena.full", "y = an array of one number\n\nInteger dtypes drop the fraction.",
                 in(), out("y"), required<Ints>("shape", "the shape of y"),
                 required<double>("value", "the number"), new_dtype)
            .not_differentiable()
            .example("shape=[2,3] value=0.5")
            .example("shape=[] value=-7 dtype=\"int64\"");
    using isas = IsaList<Isa::baseline>;
    using types = Elements;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const catena_dtype dtype = s.template attr<"dtype">();
        const double value = s.template attr<"value">();
        const bool bytes = dtype.code == CATENA_CODE_UINT;
        const double end = bytes ? 256 : std::exp2(dtype.bits - 1);
        const bool fits = value >= (bytes ? 0 : -end) && value < end;
        s.check(fits || (!bytes && dtype.code != CATENA_CODE_INT), "value",
                "a number in the range of the dtype", value, CATENA_E_VALUE);
        s.y(0, shape_attribute(s), dtype);
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        fill_each(call, call.template y<T>(0), SameNumber{call.template attr<"value">()});
    }
};

struct Arange {
    static constexpr auto about =
        describe("catena.arange", "y = start, start + step, ...: integers at equal distances",
                 in(), out("y"), required<std::int64_t>("n", "how many").range(0, 0x1p40),
                 attr("start", 0, "the first"), attr("step", 1, "the distance"),
                 attr("dtype", dtype_of<std::int64_t>(), "the dtype of y"))
            .not_differentiable()
            .internal()  // the host's function takes numbers of any type
            .example("n=5")
            .example("n=3 start=7 step=-2 dtype=\"float32\"");
    using isas = IsaList<Isa::baseline>;
    using types = Elements;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        s.y(0, {s.template attr<"n">()}, s.template attr<"dtype">());
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        fill_each(call, call.template y<T>(0),
                  Progression{static_cast<std::uint64_t>(call.template attr<"start">()),
                              static_cast<std::uint64_t>(call.template attr<"step">())});
    }
};

struct Integers {
    static constexpr auto about =
        describe("catena.integers", "y = a list of integers", in(), out(Port("y").of("I")),
                 required<Ints>("values", "the integers"))
            .not_differentiable()
            .internal()
            .example("values=[3,-1,4]");
    using isas = IsaList<Isa::baseline>;
    using types = Rows<Row<std::int64_t>>;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const auto n = static_cast<std::int64_t>(s.template attr<"values">().size());
        s.y(0, {n}, dtype_of<std::int64_t>());
    }
    // A kernel of a device gets the list in parts, as arguments.
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const Ints values = call.template attr<"values">();
        const auto y = call.template y<T>(0);
        SomeIntegers part{};
        for (std::int64_t first = 0; first < y.size(); first += SomeIntegers::most) {
            const std::int64_t n = std::min(y.size() - first, SomeIntegers::most);
            std::copy_n(values.begin() + first, n, part.values);
            fill_each(call, Tensor<T>{y.data + first, Shape(&n, 1)}, part);
        }
    }
};

CATENA_FUNCTIONS(Full, Arange, Integers);

}  // namespace catena::plugins
