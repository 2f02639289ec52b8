// Tests of reductions from formulas: axes, expressions, edge cases, a fixed order of summation.
#include <catena/catena.hpp>

#include "formula_values.hpp"
#include "temporary.hpp"

#include <cmath>
#include <limits>

using namespace catena;

namespace {

const auto& sum() {
    static const auto kernel = reduction("T x", "T y", "x", "a + b", "y = a", "0", "my_sum");
    return kernel;
}
// An argmax: the reduced type has the value and the index of an element.
const auto& argmax() {
    static const auto kernel = reduction(
        "T x", "int64 y", "Best{x, i}",
        "a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b", "y = a.index", "",
        "my_argmax", {.reduce_type = "Best", .preamble = "struct Best { T value; int64 index; };"});
    return kernel;
}

}  // namespace

TEST_CASE("the norm of all elements, of rows, of columns") {
    const auto l2norm = reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
    const Array x = Array::from<float>({3, 4, 6, 8}, {2, 2});
    CHECK(l2norm(x).shape() == Shape{});
    CHECK(l2norm(x).item<float>() == doctest::Approx(std::sqrt(125.0)));
    CHECK(floats(l2norm(x, 1)) == Floats{5, 10});
    CHECK(l2norm(x, 1, true).shape() == Shape{2, 1});
    CHECK(l2norm(x, -2).shape() == Shape{2});
    CHECK(l2norm(x, {0, 1}, true).shape() == Shape{1, 1});
    CHECK(l2norm(x, along({-1, 0})).shape() == Shape{});
    CHECK(l2norm(x, std::initializer_list<int>{}).shape() == Shape{2, 2});
    CHECK(floats(l2norm(x, std::initializer_list<int>{})) == Floats{3, 4, 6, 8});
}

TEST_CASE("every set of axes, as the library's sum has it") {
    for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{3, 1, 7, 2}, Shape{5, 17, 1, 33}}) {
        const Array x = iota(shape);
        for (unsigned set = 0; set < 16; ++set) {
            CAPTURE(set);
            std::vector<int> axes;
            std::vector<std::int64_t> wide;
            for (int d = 0; d < 4; ++d) {
                if (!(set >> d & 1)) continue;
                axes.push_back(d);
                wide.push_back(d);
            }
            if (axes.empty()) continue;
            for (const bool keepdims : {false, true}) {
                const Array expected = functions::sum(x, wide, keepdims);
                const Array y = sum()(x, along(axes, keepdims));
                CHECK(y.shape() == expected.shape());
                gradient_check::assert_allclose(y, expected, 0, 1e-6);
            }
        }
    }
}

TEST_CASE("lengths around those of vectors and pieces of work") {
    for (const std::int64_t n : {1, 2, 3, 7, 63, 64, 65, 127, 129, 1000, 16385, 200003}) {
        CAPTURE(n);
        const Array x = Array::ones({n}), tall = Array::ones({n, 3}), wide = Array::ones({3, n});
        CHECK(sum()(x).item<double>() == n);
        CHECK(floats(sum()(tall, 0)) == Floats(3, static_cast<float>(n)));
        CHECK(floats(sum()(wide, 1)) == Floats(3, static_cast<float>(n)));
        CHECK(floats(sum()(wide, 0)) == Floats(static_cast<std::size_t>(n), 3));
        CHECK(argmax()(iota({n})).item<std::int64_t>() == n - 1);
        CHECK(argmax()(Array::ones({n})).item<std::int64_t>() == 0);
        CHECK(argmax()(Array::ones({2, n}), 1).to_vector<std::int64_t>() ==
              std::vector<std::int64_t>{0, 0});
    }
}

TEST_CASE("without an identity: largest elements and where they are") {
    const auto amax = reduction("T x", "T y", "x", "a > b ? a : b", "", "", "my_amax");
    const Array x = Array::from<float>({-5, -1, -3, -2, -4, -9}, {2, 3});
    CHECK(amax(x).item<float>() == -1);
    CHECK(floats(amax(x, 0)) == Floats{-2, -1, -3});
    CHECK(floats(amax(x, 1)) == Floats{-1, -2});
    CHECK(argmax()(x).item<std::int64_t>() == 1);
    CHECK(argmax()(x, 0).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0, 0});
    CHECK(argmax()(x, 1).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0});
    const Array deep = iota({3, 5, 2, 4});
    CHECK(floats(amax(deep, {0, 2})) == floats(amax(amax(deep, 2), 0)));
    CHECK(amax(iota({2}, Dtype::uint8)).dtype() == Dtype::uint8);
    CHECK(has(thrown<ValueError>([&] {
                  amax(Array::zeros({3, 0}), 1);
              }),
              "[my_amax] axis: expected at least one"));
    CHECK(amax(Array::zeros({0, 3}), 1).shape() == Shape{0});
}

TEST_CASE("nothing reduced is the identity") {
    const auto product = reduction("T x", "T y", "x", "a * b", "y = a", "1", "my_prod");
    CHECK(product(Array::zeros({0})).item<float>() == 1);
    CHECK(floats(product(Array::zeros({2, 0}), 1)) == Floats{1, 1});
    CHECK(floats(sum()(Array::zeros({0, 2}), 0)) == Floats{0, 0});
    CHECK(sum()(Array::zeros({0, 2}), 1).shape() == Shape{0});
    CHECK(product(Array::full({}, 5)).item<float>() == 5);
}

TEST_CASE("several inputs are broadcast; the outputs' index, the count, numbers and whole arrays") {
    const auto dot = reduction("T x, T y", "T z", "x * y", "a + b", "z = a", "0", "my_dot");
    CHECK(dot(iota({2, 3}), iota({3})).item<float>() == 46);
    CHECK(floats(dot(iota({2, 3}), iota({3}), along(1))) == Floats{14, 32});
    CHECK(floats(dot(iota({2, 3}), iota({2, 1}), along(0))) == Floats{9, 12, 15});
    CHECK(floats(dot(iota({2, 3}), 2, along(1))) == Floats{12, 30});
    const auto mean = reduction<2>("T x, raw T shift", "T mean, int64 count", "x + shift[j]",
                                   "a + b", "mean = a / n; count = n", "0", "my_mean");
    const auto [m, count] = mean(iota({2, 3}), iota({2}), along(1));
    CHECK(floats(m) == Floats{3, 7});
    CHECK(count.to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 3});
    const auto places = reduction("T x", "int64 y", "i", "a + b", "", "0", "places");
    CHECK(places(iota({2, 3}), 1).to_vector<std::int64_t>() == std::vector<std::int64_t>{3, 3});
    CHECK(places(iota({2, 3}), 0).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 1, 1});
    CHECK(places(iota({2, 3})).item<std::int64_t>() == 15);
    const Array given = Array::zeros({2});
    CHECK(dot(iota({2, 3}), iota({3}), given, along(1)).body() == given.body());
    CHECK(floats(given) == Floats{14, 32});
}

TEST_CASE("Chainer 1's global reduction") {
    const auto dot =
        reduce("const float* x, const float* y", "x[i] * y[i]", "a + b", "0", "global_dot");
    CHECK(dot(iota({2, 3}), iota({6})).item<float>() == 91);
    CHECK(dot(Array::ones({100001}), Array::ones({100001})).item<double>() == 100001);
    const auto any = reduce("T x", "x > 4", "a || b", "false", "any_above", Dtype::bool8);
    CHECK(any(iota({5})).item<bool>());
    CHECK_FALSE(any(iota({4})).item<bool>());
}

TEST_CASE("dtypes: halves are summed in float32, integers exactly") {
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
        const Array x = Array::full({4096}, 0.25).astype(dtype);
        CHECK(sum()(x).dtype() == dtype);
        CHECK(sum()(x).item<float>() == 1024);
    }
    const Array large = Array::full({3}, 0, Dtype::int64);
    elementwise("int64* x", "x[i] = (1ll << 53) + 1", "big")(large);
    CHECK(sum()(large).item<std::int64_t>() == 3 * ((std::int64_t{1} << 53) + 1));
    const auto wide = reduction("T x", "T y", "x", "a + b", "y = a > 255 ? 255 : a", "0",
                                "saturated", {.reduce_type = "int32"});
    CHECK(wide(Array::full({10}, 200, Dtype::uint8)).item<int>() == 255);
    const Array nan = Array::from<float>({1, std::numeric_limits<float>::quiet_NaN(), 2}, {3});
    CHECK(std::isnan(sum()(nan).item<float>()));
}

TEST_CASE("the result does not depend on the number of threads") {
    const Array x = functions::exp(iota({300, 1001}) * 1e-5);
    const Array flat = x.reshape({300300});
    const int before = Device::current().threads();
    std::vector<std::vector<Floats>> results;
    for (const int threads : {1, 2, 3, 7}) {
        Device::current().set_threads(threads);
        results.push_back({floats(sum()(flat)), floats(sum()(x, 0)), floats(sum()(x, 1))});
        CHECK(results.back() == results.front());
    }
    Device::current().set_threads(before);
}

TEST_CASE("what is wrong is said") {
    CHECK(has(thrown<InvalidError>([] {
                  sum()(iota({2, 2}), 2);
              }),
              "[my_sum] axis: expected each from -2 to 1"));
    CHECK(has(thrown<InvalidError>([] { sum()(iota({2, 2}), {0, -2}); }), "[my_sum] axis:"));
    CHECK(has(thrown<InvalidError>([] { reduction("T x", "T y", "x", "", "", "0", "r"); }),
              "[r] reduce: expected"));
    CHECK(has(thrown<InvalidError>([] { reduction("T a", "T y", "x", "a+b", "", "0", "r"); }),
              "[r] a: expected another name"));
    CHECK(has(thrown<InvalidError>([] { reduction("T x", "T y, T z", "x", "a+b", "", "0", "r"); }),
              "[r] finish: expected"));
    CHECK(has(thrown<InvalidError>([] { reduction("T* x", "T y", "x[i]", "a+b", "", "0", "r"); }),
              "[r] x: expected an input that is only read"));
    const std::string text = thrown<InvalidError>(
        [] { reduction("T x", "T y", "x", "a +* q", "", "0", "bad_sum")(iota({2})); });
    CHECK(has(text, "[bad_sum] reduce, line 1: expected code that compiles, got\n    a +* q"));
    CHECK(has(thrown<InvalidError>([] {
                  reduction("T x", "T y", "Big()", "a", "", "", "too_big",
                            {.reduce_type = "Big",
                             .preamble =
                                 "struct Big { double x[9]; operator T() const { return 0; } };"})(
                      iota({2}));
              }),
              "at most 64 bytes"));
}
