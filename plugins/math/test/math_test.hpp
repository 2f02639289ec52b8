// Helpers of the tests of math.catena.
#pragma once

#include <doctest/doctest.h>

#include <catena/testing.hpp>

#include <cmath>
#include <functional>

using namespace catena::testing;

inline World& world() {
    static World world({MATH_PLUGIN, ARRAY_PLUGIN});
    return world;
}

using F = std::function<double(double)>;
using F2 = std::function<double(double, double)>;

inline void check_unary(const std::string& name, const F& f, double low, double high,
                        const Attrs& attrs = {}) {
    CAPTURE(name);
    for (const Dims& shape : {Dims{}, Dims{1}, Dims{0, 3}, Dims{3, 17}, Dims{5, 1, 7}}) {
        const Array x = Array::random<double>(shape, 3, low, high);
        CHECK(check(world(), {name, {x}, attrs}) == "");
        const Array y = world().forward(name, {x}, attrs)[0];
        for (std::int64_t i = 0; i < x.size(); ++i)
            CHECK(y.at(i) == doctest::Approx(f(x.at(i))).epsilon(1e-12));
    }
}

inline void check_binary(const std::string& name, const F2& f, double low, double high) {
    CAPTURE(name);
    struct Pair {
        Dims a, b;
    };
    for (const Pair& s : {Pair{{}, {}}, Pair{{4, 5}, {4, 5}}, Pair{{4, 5}, {5}},
                          Pair{{4, 5}, {4, 1}}, Pair{{3}, {}}, Pair{{1}, {2, 3}},
                          Pair{{2, 1, 3}, {4, 1}}, Pair{{0, 3}, {3}}, Pair{{1, 3}, {0, 3}}}) {
        const Array a = Array::random<double>(s.a, 5, low, high);
        const Array b = Array::random<double>(s.b, 6, low, high);
        CHECK(check(world(), {name, {a, b}}) == "");
    }
    const Array a = Array::random<double>({6, 7}, 7, low, high);
    const Array b = Array::random<double>({6, 7}, 8, low, high);
    const Array y = world().forward(name, {a, b})[0];
    for (std::int64_t i = 0; i < a.size(); ++i)
        CHECK(y.at(i) == doctest::Approx(f(a.at(i), b.at(i))).epsilon(1e-12));
}

inline bool alike(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) < 1e-6 * std::abs(b);
}
inline Array row(const std::vector<double>& values) {
    return Array::from<double>(values, {static_cast<std::int64_t>(values.size())});
}
// Checks the gradient of input i, by the kernel and composed, in float64 and float32.
inline void check_gradient(const std::string& name, const std::vector<Array>& x, const Attrs& attrs,
                           std::size_t i, const std::vector<double>& expected) {
    for (const catena_dtype dtype : {dtype_of<double>(), dtype_of<float>()}) {
        std::vector<Array> given;
        for (const Array& a : x) given.push_back(a.to(dtype));
        const auto y = world().forward(name, given, attrs);
        const Array gy = Array::constant(y[0].shape(), dtype, 1);
        const Array kernel = world().backward(name, given, y, {gy}, attrs)[i];
        const Array composed = world().gradient(name, given, y, {gy}, attrs)[i];
        for (std::size_t k = 0; k < expected.size(); ++k) {
            CAPTURE(k);
            const auto at = static_cast<std::int64_t>(k);
            CHECK(alike(kernel.at(at), expected[k]));
            // A composed gradient is missing if the function is constant everywhere.
            CHECK(alike(composed ? composed.at(at) : 0.0, expected[k]));
        }
    }
}
// Checks the derivative of the gradient of input `of` with respect to input `by`.
inline void check_second(const std::string& name, const std::vector<Array>& x, const Attrs& attrs,
                         std::size_t of, std::size_t by, const std::vector<double>& expected) {
    const auto y = world().forward(name, x, attrs);
    const Array gy = Array::constant(y[0].shape(), y[0].dtype(), 1);
    std::vector<Array> ggx(x.size());
    ggx[of] = gy;
    const Array got = world().second(name, x, y, {gy}, ggx, attrs)[by];
    for (std::size_t k = 0; k < expected.size(); ++k) {
        CAPTURE(k);
        CHECK(alike(got.at(static_cast<std::int64_t>(k)), expected[k]));
    }
}
