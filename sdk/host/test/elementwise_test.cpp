// Tests of elementwise kernels from formulas: forms, dtypes, shapes, errors.
#include <catena/catena.hpp>
#include <catena/core/array.hpp>

#include "formula_values.hpp"
#include "temporary.hpp"

#include <cmath>
#include <limits>
#include <thread>

using namespace catena;

TEST_CASE("muladd with dtypes by name, with a placeholder, and with pointers") {
    const Array x = iota({2, 3}), y = iota({2, 3}), z = iota({2, 3});
    const Floats expected{2, 6, 12, 20, 30, 42};
    CHECK(floats(elementwise("float32 x, float32 y, float32 z", "float32 w", "w = x * y + z",
                             "muladd_fwd")(x, y, z)) == expected);
    const auto any = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd_fwd");
    const Array w = any(x, y, z);
    CHECK(floats(w) == expected);
    CHECK(w.shape() == Shape{2, 3});
    CHECK(w.dtype() == Dtype::float32);

    const Array in_place = Array::zeros({2, 3});
    cuda::elementwise("float* w, const float* x, const float* y, const float* z",
                      "w[i] = x[i] * y[i] + z[i]", "muladd_fwd")(in_place, x, y, z);
    CHECK(floats(in_place) == expected);
}

TEST_CASE("two outputs, as the gradient of muladd has them") {
    const auto both = elementwise<2>("T x, T y, T gw", "T gx, T gy", R"(
        gx = y * gw;
        gy = x * gw;
    )",
                                     "muladd_bwd");
    const auto [gx, gy] = both(iota({3}), iota({3}), Array::full({3}, 2));
    CHECK(floats(gx) == Floats{2, 4, 6});
    CHECK(floats(gy) == Floats{2, 4, 6});
    const KernelArgument arguments[] = {gx, gy, 3};
    CHECK(both.call(arguments).size() == 2);
    CHECK(floats(both.call(arguments)[0]) == Floats{6, 12, 18});
}

TEST_CASE("a placeholder stands for any dtype, and says the output's") {
    const auto twice = elementwise("T x", "T y", "y = x + x", "twice");
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64,
                              Dtype::int32, Dtype::int64, Dtype::uint8}) {
        CAPTURE(name(dtype));
        const Array y = twice(iota({17}, dtype));
        CHECK(y.dtype() == dtype);
        CHECK(floats(y) == floats(iota({17}) + iota({17})));
    }
    const Array mask = elementwise("T x", "bool y", "y = x > 2", "above")(iota({3}));
    CHECK(mask.to_vector<int>() == std::vector<int>{0, 0, 1});
    CHECK(elementwise("bool x", "bool y", "y = !x", "negate")(mask).to_vector<int>() ==
          std::vector<int>{1, 1, 0});
    const Array large = Array::from<std::int64_t>({std::int64_t{1} << 60}, {1});
    CHECK(twice(large).item<std::int64_t>() == std::int64_t{1} << 61);
}

TEST_CASE("halves are computed with in float32 and rounded once") {
    // 1 + 2^-11 and its square are not float16 values: with intermediate rounding both would be 1.
    const auto f =
        elementwise("T x, float32 d", "T y", "T t = x + d; y = (t * t - 1) * 1024", "halves");
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16}) {
        const Array y = f(Array::ones({33}, dtype), 0x1p-11f);
        const float exact = ((1 + 0x1p-11f) * (1 + 0x1p-11f) - 1) * 1024;
        const Array rounded = Array::full({1}, exact).astype(dtype);
        CHECK(y.to_vector<float>()[32] == rounded.item<float>());
    }
    // Every float16 value passes unchanged, except the payload of a NaN.
    std::vector<float16> all(65536);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
    const auto same = elementwise("T x", "T y", "y = x", "same");
    const auto after = same(Array::from(all, {65536})).to_vector<float16>();
    int wrong = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool is_nan = (all[i].bits & 0x7fff) > 0x7c00;
        wrong += is_nan ? (after[i].bits & 0x7fff) <= 0x7c00 : after[i].bits != all[i].bits;
    }
    CHECK(wrong == 0);
    // Rounds to nearest, ties to even. Values above the range become infinite.
    const Array values = Array::from<float>({2049, 2051, 65519, 65520, 0x1p-25f, 0x1.8p-25f}, {6});
    const auto narrow = elementwise("float32 x", "float16 y", "y = x", "narrow");
    CHECK(floats(narrow(values)) == floats(values.astype(Dtype::float16)));
    const Array raw =
        elementwise("raw T x, int64 last", "raw T y", "y[i] = x[last - i]; y[i] += 1",
                    "raw_halves")(Array::full({3}, 2).astype(Dtype::float16), 2, over({3}));
    CHECK(floats(raw) == Floats{3, 3, 3});
}

TEST_CASE("shapes are broadcast as NumPy's") {
    const auto f = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd");
    const auto check = [&](const Shape& a, const Shape& b, const Shape& c, const Shape& out) {
        // Small whole numbers: the result is exact with and without fused multiply-add.
        const auto small = [](const Shape& s) {
            return elementwise("raw int64 none", "float32 y", "y = i % 61", "small")(
                Array::zeros({1}, Dtype::int64), over(s));
        };
        const Array x = small(a), y = small(b), z = small(c);
        const Array w = f(x, y, z);
        CHECK(w.shape() == out);
        CHECK(floats(w) == floats(x * y + z));
    };
    check({2, 3}, {3}, {2, 1}, {2, 3});
    check({4, 1, 3}, {5, 1}, {}, {4, 5, 3});
    check({7}, {}, {1}, {7});
    check({}, {}, {}, {});
    check({1}, {}, {1, 1}, {1, 1});
    check({2, 1, 3, 1, 2}, {1, 4, 1, 5, 1}, {2, 4, 3, 5, 2}, {2, 4, 3, 5, 2});
    check({0}, {1}, {}, {0});
    check({3, 0}, {3, 1}, {1}, {3, 0});
    check({257, 129}, {129}, {257, 1}, {257, 129});  // more than one chunk
    check({3, 40001}, {3, 1}, {40001}, {3, 40001});
    for (const std::int64_t n : {1, 3, 15, 16, 17, 63, 65, 16383, 16384, 16385, 100003}) {
        CAPTURE(n);
        check({n}, {n}, {n}, {n});
    }
}

TEST_CASE("numbers are arguments, of the formula's dtype") {
    const auto f = elementwise("T x, T a, int32 k", "T y", "y = a * x + k", "axpk");
    CHECK(floats(f(iota({3}), 0.5, 2)) == Floats{2.5, 3, 3.5});
    CHECK(floats(f(iota({3}), 2, 2.0)) == Floats{4, 6, 8});
    CHECK(f(iota({3}, Dtype::int32), 2, 0).dtype() == Dtype::int32);
    CHECK(f(2.5, Array::full({1}, 2), 0).to_vector<float>() == Floats{5});
    CHECK(elementwise("T x, T y", "T z", "z = x + y", "add")(1, 2, over({2})).dtype() ==
          Dtype::int32);
    CHECK(has(thrown<DtypeError>([&] { f(iota({3}), 2, 2.5); }),
              "[axpk] k: expected a number for int32"));
    CHECK(has(thrown<DtypeError>([&] { f(iota({3}, Dtype::int32), 0.5, 1); }), "[axpk] a:"));
    const double huge = 3e9, infinite = std::numeric_limits<double>::infinity();
    for (const double k : {huge, -huge, 1e300, infinite, std::nan("")})
        CHECK(has(thrown<DtypeError>([&] { f(iota({3}), 2, k); }), "expected a number for int32"));
    CHECK(has(thrown<DtypeError>([&] { f(iota({3}), 2, std::int64_t{1} << 31); }),
              "[axpk] k: expected a number for int32, got 2147483648"));
    const auto wide = elementwise("int64 k", "int64 y", "y = k", "wide");
    CHECK(wide(-0x1p63, over({1})).item<std::int64_t>() ==
          std::numeric_limits<std::int64_t>::min());
    CHECK_THROWS_AS(wide(0x1p63, over({1})), DtypeError);
    const auto small = elementwise("uint8 k", "int64 y", "y = k", "small");
    CHECK(small(255, over({1})).item<std::int64_t>() == 255);
    CHECK_THROWS_AS(small(256, over({1})), DtypeError);
    CHECK_THROWS_AS(small(-1, over({1})), DtypeError);
}

TEST_CASE("raw arguments, the index and the size") {
    const auto reverse = elementwise("raw T x, int64 n", "T y", "y = x[n - 1 - i]", "reverse");
    CHECK(floats(reverse(iota({4}), 4, over({4}))) == Floats{4, 3, 2, 1});
    const Array given = Array::zeros({2, 2});
    CHECK(floats(reverse(iota({4}), 4, given)) == Floats{4, 3, 2, 1});
    CHECK(floats(given) == Floats{4, 3, 2, 1});
    CHECK(floats(elementwise("raw T x, int64 k", "T y", "y = x[k] * (i + n)", "gather")(
              iota({3}), Array::from<std::int64_t>({2, 0}, {2}))) == Floats{6, 3});
    const Array counts = Array::zeros({3}, Dtype::int32);
    elementwise("int64 label, int32* counts", "atomic_add(counts + label, 1)", "count")(
        Array::from<std::int64_t>({0, 2, 2, 1, 2}, {5}), counts);
    CHECK(counts.to_vector<int>() == std::vector<int>{1, 1, 3});
    const Array sum = Array::zeros({1});
    elementwise("T x, float* sum", "atomic_add(sum, 1)", "count_all")(iota({300}), sum);
    CHECK(sum.item<float>() == 300);
    CHECK(has(thrown<InvalidError>([&] { reverse(iota({4}), 4); }), "[reverse] size: expected"));
    CHECK(has(thrown<InvalidError>([&] { reverse(4, 4, over({4})); }),
              "[reverse] x: expected an array"));
}

TEST_CASE("given outputs, which may be inputs, and keep what is not written") {
    const auto f = elementwise("T x, T y", "T z", "z = x - y", "sub");
    const Array x = iota({40000}), y = Array::ones({40000});
    const Array z = f(x, y, x);
    CHECK(z.body() == x.body());
    CHECK(x.to_vector<float>()[39999] == 39999);
    const auto swap = elementwise<2>("T x, T y", "T a, T b", "a = y; b = x", "swap");
    const Array a = iota({1000}), b = Array::zeros({1000});
    swap(a, b, a, b);
    CHECK(a.to_vector<float>()[999] == 0);
    CHECK(b.to_vector<float>()[999] == 1000);
    const Array kept = Array::full({3}, 7);
    elementwise("T x", "T y", "if (x > 2) y += x", "some")(iota({3}), kept);
    CHECK(floats(kept) == Floats{7, 7, 10});
    elementwise("T x", "T y", "if (x < 2) continue; y = 0", "leaves")(iota({3}), kept);
    CHECK(floats(kept) == Floats{7, 0, 0});
    CHECK(has(thrown<ShapeError>([&] { f(iota({3}), iota({3}), Array::zeros({4})); }), "[sub] z:"));
    CHECK(has(thrown<DtypeError>([&] { f(iota({3}), iota({3}), iota({3}, Dtype::int32)); }),
              "[sub] z: expected float32 (T, as x), got int32"));
    CHECK(has(thrown<ShapeError>([&] { f(iota({3}), iota({1}), Array::zeros({1})); }), "[sub] z:"));
    // The dtype of a given output may determine a type letter that no input uses.
    const auto cast = elementwise("T x", "U y", "y = x", "cast");
    CHECK(cast(iota({2}), Array::zeros({2}, Dtype::int64)).dtype() == Dtype::int64);
    CHECK(has(thrown<DtypeError>([&] { cast(iota({2})); }),
              "[cast] y: expected an input of dtype U"));
}

TEST_CASE("arrays may begin and end anywhere, also where neighbours are taken in one piece") {
    const auto part = [](const Array& whole, std::int64_t begin, std::int64_t n) {
        char* const at = static_cast<char*>(whole.body()->tensor.dl.data);
        const auto itemsize = whole.nbytes() / whole.size();
        return Array::wrap(whole.device(), at + begin * itemsize, {n}, whole.dtype(),
                           [whole] { static_cast<void>(whole); });
    };
    const auto f = elementwise("T x, float32 scale", "T y", "T t = x * scale; y = t + last",
                               "parts", {.loop_prep = "T last = 1;"});
    const auto some = elementwise<2>("T x", "T y, int64 k",
                                     "if (i % 3 == 1) continue; y = x; k = i", "some_of_two");
    constexpr std::int64_t all = 64;
    for (const Dtype dtype :
         {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64, Dtype::uint8}) {
        for (const std::int64_t n : {1, 2, 3, 4, 7, 8, 9, 16, 17, 33, 40}) {
            for (const std::int64_t begin : {0, 1, 2, 4, 8}) {
                CAPTURE(name(dtype));
                CAPTURE(n);
                CAPTURE(begin);
                const Array x = iota({all}, dtype), y = Array::full({all}, 7, dtype),
                            z = Array::full({all}, 7, dtype),
                            k = Array::full({all}, 7, Dtype::int64);
                f(part(x, begin, n), 2, part(y, begin, n));
                f(part(x, begin, n), 2, part(z, 0, n));
                Floats expected(all, 7), first(all, 7), chosen(all, 7), index(all, 7);
                for (std::int64_t i = 0; i < n; ++i) {
                    const auto from = static_cast<std::size_t>(begin + i);
                    const auto to = static_cast<std::size_t>(i);
                    expected[from] = first[to] = static_cast<float>(2 * (begin + i + 1) + 1);
                    if (i % 3 == 1) continue;
                    chosen[to] = static_cast<float>(begin + i + 1);
                    index[from] = static_cast<float>(i);
                }
                CHECK(floats(y) == expected);
                CHECK(floats(z) == first);
                z.fill(7);
                some(part(x, begin, n), part(z, 0, n), part(k, begin, n));
                CHECK(floats(z) == chosen);
                CHECK(floats(k) == index);
            }
        }
    }
}

TEST_CASE("what a call writes in place is noticed by a graph that needs it") {
    const Variable x(iota({3}));
    const Variable y = x * x;
    elementwise("float* x", "x[i] = 0", "clear")(x.data());
    CHECK_THROWS_AS(functions::sum(y).backward(), GraphError);
}

TEST_CASE("preamble, code around the loop, options") {
    // NVRTC has no standard headers.
    const bool on_cpu = Device::current().backend() == "cpu";
    const std::string preamble =
        on_cpu ? "#include <climits>\nstatic_assert(CHAR_BIT == 8, \"\");\n" : "";
    const auto f = elementwise("T x", "T y", "y = square(x) + offset + FACTOR", "with_all",
                               {.preamble = preamble + "inline T square(T x) { return x * x; }",
                                .loop_prep = "const T offset = 10;",
                                .after_loop = "(void)offset;",
                                .options = {"-DFACTOR=100"}});
    CHECK(floats(f(iota({3}))) == Floats{111, 114, 119});
    const auto own =
        elementwise("T x", "T y", "y = pack{x, low}.first; if (high < x) y = 0", "own_names",
                    {.preamble = "struct pack { T first, second; };",
                     .loop_prep = "const auto [low, high] = pack{0, 2};"});
    CHECK(floats(own(iota({3}))) == Floats{1, 2, 0});
    CHECK(has(thrown<InvalidError>(
                  [] { elementwise("T x", "T y", "y = x;\ni = 0", "index")(iota({3})); }),
              "[index] operation, line 2"));
    CHECK(has(thrown<InvalidError>([] {
                  elementwise("T x", "T y", "y = x", "badly", {.options = {"-D1=2"}})(iota({1}));
              }),
              "macro"));
}

TEST_CASE("mathematics, as exact as the library's") {
    const auto check = [](const char* code, double (*f)(double), double low, double high) {
        CAPTURE(code);
        const auto kernel =
            elementwise("T x", "T y", (std::string("y = ") + code + "(x)").c_str(), "mathematics");
        const int n = 1003;
        std::vector<double> x(n), exact(n);
        for (int i = 0; i < n; ++i) {
            x[static_cast<std::size_t>(i)] = low + (high - low) * i / (n - 1);
            exact[static_cast<std::size_t>(i)] = f(x[static_cast<std::size_t>(i)]);
        }
        const Array a = Array::from(x, {n});
        gradient_check::assert_allclose(kernel(a), Array::from(exact, {n}), 1e-14, 1e-14);
        gradient_check::assert_allclose(kernel(a.astype(Dtype::float32)), Array::from(exact, {n}),
                                        2e-6, 1e-6);
    };
    check("exp", std::exp, -5, 5);
    check("log", std::log, 0.1, 50);
    check("tanh", std::tanh, -3, 3);
    check("sin", std::sin, -3, 3);
    check("sqrt", std::sqrt, 0, 9);
    check("erf", std::erf, -2, 2);
    check("floor", std::floor, -3.3, 3.1);
    check("abs", std::fabs, -3, 3);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    const Array x = Array::from<float>({nan, inf, -inf, 1}, {4});
    const Floats y = floats(elementwise("T x", "T y", "y = exp(x)", "exp_edges")(x));
    CHECK(std::isnan(y[0]));
    CHECK(y[1] == inf);
    CHECK(y[2] == 0);
    CHECK(floats(elementwise("T x", "T y", "y = max(x, 0)", "relu")(x))[0] == 0);
    CHECK(elementwise("T x", "int32 y", "y = isnan(x) + 2 * isinf(x) + 4 * isfinite(x)", "kinds")(x)
              .to_vector<int>() == std::vector<int>{1, 2, 2, 4});
    CHECK(floats(elementwise("T x", "T y", "y = pow(x, 2) + min(x, 2)", "powers")(iota({3}))) ==
          Floats{2, 6, 11});
}

TEST_CASE("code that does not compile is shown, with its line") {
    const std::string text = thrown<InvalidError>([] {
        elementwise("T x, T y", "T w", "T t = x;\nw = t * q + y;", "broken")(iota({2}), iota({2}));
    });
    CHECK(has(text,
              "[broken] operation, line 2: expected code that compiles, got\n    w = t * q + y;"));
    CHECK(has(text, "q"));
    CHECK(has(text, "float32 x, float32 y -> float32 w"));
    const std::string other = thrown<InvalidError>([] {
        elementwise("T x", "T y", "y = f(x)", "broken",
                    {.preamble = "\n\nT f(T x) { return z; }"})(iota({2}));
    });
    CHECK(has(other, "[broken] preamble, line 3: expected code that compiles, got\n    T f(T x)"));
}

TEST_CASE("code that ends too early is shown, and where") {
    const auto text = [](const char* code, const ElementwiseOptions& options = {}) {
        return thrown<InvalidError>(
            [&] { elementwise("T x", "T y", code, "early", options)(iota({2})); });
    };
    CHECK(has(text("y = x +"),
              "[early] operation, line 1: expected code that compiles, got\n"
              "    y = x +\n           ^"));
    CHECK(has(text("y = x +\n  x *"),
              "[early] operation, line 2: expected code that compiles, got\n"
              "      x *\n         ^"));
    CHECK(has(text("y = x", {.loop_prep = "const T k = 2 *"}),
              "[early] loop_prep, line 1: expected code that compiles, got\n    const T k = 2 *"));
    CHECK(has(thrown<InvalidError>([] {
                  reduction("T x", "T y", "x *", "a + b", "y = a", "0", "early")(iota({2}));
              }),
              "[early] operation, line 1: expected code that compiles, got\n    x *\n       ^"));
    CHECK(has(thrown<InvalidError>(
                  [] { reduction("T x", "T y", "x", "a +", "y = a", "0", "early")(iota({2})); }),
              "[early] reduce, line 1: expected code that compiles, got\n    a +\n       ^"));
}

TEST_CASE("a return would leave elements out, unless it is a lambda's") {
    const auto text = [](const char* code) {
        return thrown<InvalidError>([&] { elementwise("T x", "T y", code, "early"); });
    };
    CHECK(has(text("if (i == 0) { y = 7; return; } y = x"),
              "[early] code: expected `continue` for the next element, got `return`"));
    CHECK(has(text("y = x; return\n;"), "got `return`"));
    CHECK(has(text("return; const auto f = [](T t) { return t; }; y = f(x)"), "got `return`"));
    CHECK(has(text("auto f = [](T t) { if (t > 1) { return t; } return -t; }; if (x < 0) return; "
                   "y = f(x)"),
              "got `return`"));
    for (const char* lambda :
         {"[](T* p) -> T* { return p; }", "[](T* p) -> const T* { return p; }",
          "[=](auto p) mutable noexcept { return p; }", "[]<class V>(V p) -> V { return p; }"}) {
        const std::string good = std::string("auto f = ") + lambda + "; T t = x; y = *f(&t)";
        CHECK(floats(elementwise("T x", "T y", good.c_str(), "lambdas")(iota({3}))) ==
              floats(iota({3})));
        CHECK(has(text(("const auto f = " + std::string(lambda) + "; return;").c_str()),
                  "got `return`"));
    }
    CHECK(has(text("T t[2] = {x, x}; y = t[0]; if (y > t[1]) { return; }"), "got `return`"));
    const Floats expected = {7, 2, 3};
    CHECK(floats(elementwise("T x", "T y",
                             "// no return here, /* nor\nif (i == 0) { y = 7; continue; } y = x",
                             "goes_on")(iota({3}))) == expected);
    CHECK(floats(elementwise("T x", "T y",
                             "/* return */ const auto f = [&](T t) { return i == 0 ? T(7) : t; }; "
                             "y = f(x)",
                             "lambda")(iota({3}))) == expected);
}

TEST_CASE("kernels and arguments may have the names of functions") {
    for (const char* name : {"norm", "main", "kernel"}) {
        CAPTURE(name);
        CHECK(floats(elementwise("T x", "T y", "y = exp(x) + 1", name)(Array::zeros({5}))) ==
              Floats(5, 2));
        CHECK(reduction("T x", "T y", "x", "a + b", "y = a", "0", name)(iota({3})).item<float>() ==
              6);
    }
    const auto f = elementwise<2>("T load, T read, float32 write, T pack", "T walk, T store",
                                  "walk = load + read; store = write * pack", "names");
    for (const Dtype dtype : {Dtype::float16, Dtype::float32}) {
        const Array x = iota({9}, dtype), row = iota({3}, dtype), square = x.reshape({3, 3});
        const auto y = f.call(std::vector<KernelArgument>{x, x, 2, x});
        CHECK(floats(y[0]) == floats(iota({9}) + iota({9})));
        CHECK(floats(y[1]) == floats(iota({9}) + iota({9})));
        const auto z = f.call(std::vector<KernelArgument>{square, row, 2, square});
        CHECK(floats(z[0]) == floats(iota({9}).reshape({3, 3}) + iota({3})));
    }
}

TEST_CASE("definitions that are wrong are refused at once") {
    const auto text = [](const char* in, const char* out, const char* code = "y = x",
                         const char* name = "k") {
        return thrown<InvalidError>([&] { elementwise(in, out, code, name); });
    };
    CHECK(has(text("floaty x", "T y"),
              "[k] x: expected a dtype (float32, int64 ...) or a capital letter"));
    CHECK(has(text("T", "T y"), "[k] arguments: expected a type and a name, got 'T'"));
    CHECK(has(text("T** x", "T y"), "[k] x: expected a dtype"));
    CHECK(has(text("T x,", "T y"), "[k] arguments: expected a type and a name, got ''"));
    CHECK(has(text("T x, T x", "T y"), "[k] x: expected a name for each argument"));
    CHECK(has(text("T i", "T y"), "[k] i: expected another name"));
    CHECK(has(text("T while", "T y"), "[k] arguments: expected a type and a name, got 'T while'"));
    CHECK(has(text("T x", "T y", " "), "[k] operation: expected code, got none"));
    CHECK(has(text("T x", "T y", "y = x", "a b"), "name: expected an identifier"));
    CHECK(has(text("T x", "T y, T z"), "[k] outputs: expected 1, as elementwise<1>() says, got 2"));
    CHECK(has(thrown<InvalidError>([] { elementwise("T x", "y = x", "k"); }),
              "[k] arguments: expected an output"));
    const auto f = elementwise("T x, T y", "T z", "z = x", "k");
    CHECK(has(thrown<InvalidError>([&] { f(iota({1})); }),
              "[k] arguments: expected 2, or 3 with arrays"));
    CHECK(has(thrown<InvalidError>([&] { f(iota({1}), Array()); }),
              "[k] argument 1: expected an array"));
    CHECK(has(thrown<ShapeError>([&] { f(iota({2}), iota({3})); }),
              "[k] y: expected a shape that goes with (2,), got (3,)"));
    CHECK(has(thrown<DtypeError>([&] { f(iota({2}), iota({2}, Dtype::int32)); }),
              "[k] y: expected float32 (T, as x), got int32"));
    if (const auto second = test_device::second()) {
        CHECK_THROWS_AS(f(iota({2}), iota({2}).to(*second)), DeviceError);
        CHECK(f(iota({2}).to(*second), 1).device() == *second);
    }
}

TEST_CASE("the result does not depend on the number of threads") {
    const auto f = elementwise("T x, T y", "T z", "z = tanh(x) * exp(-y) + sin(x * y)", "threads");
    const Array x = iota({37, 4001}) * 1e-4, y = iota({4001}) * 1e-3;
    const int before = Device::current().threads();
    std::vector<Floats> results;
    for (const int threads : {1, 2, 3, 5}) {
        Device::current().set_threads(threads);
        results.push_back(floats(f(x, y)));
        CHECK(results.back() == results.front());
    }
    Device::current().set_threads(before);
}

TEST_CASE("threads that call at once, first of all") {
    const auto f =
        elementwise("T x, T y", "T z", "z = x * 3 + y /* of several threads */", "crowd");
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    const KernelStats before = kernel_stats();
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t, device = Device::current()] {
            const using_device scope(device);
            const auto again =
                elementwise("T x, T y", "T z", "z = x * 3 + y /* of several threads */", "crowd");
            for (int i = 0; i < 20; ++i) {
                const Array x = Array::full({64 + t}, i);
                if (floats((i % 2 ? f : again)(x, x))[63] != 4 * static_cast<float>(i)) ++wrong;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    const KernelStats after = kernel_stats();
    CHECK(after.compiled + after.loaded == before.compiled + before.loaded + 1);
    CHECK(after.hits >= before.hits + 76);
}
