// Makes kernels of every kind and dtype for cuda:0 and prints each result. With the genuine NVRTC they
// compile, but the emulator cannot load them. usage: cuda-jit-features [NAME]: only that kernel.
#include <catena/catena.hpp>

#include <cstdio>
#include <functional>
#include <string>

using namespace catena;

namespace {

int made = 0;
std::string only;

void attempt(const char* name, const std::function<void()>& call) {
    if (!only.empty() && only != name) return;
    std::string text = "done";
    try {
        call();
    } catch (const Error& error) {
        text = error.what();
    }
    ++made;
    std::printf("%s: %s\n--\n", name, text.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc > 1) only = argv[1];
    const using_device scope("cuda:0");
    const Array x = Array::empty({40, 30}), row = Array::empty({30}),
                column = Array::empty({40, 1});
    for (const Dtype dtype : {Dtype::float16, Dtype::bfloat16, Dtype::float32, Dtype::float64,
                              Dtype::int32, Dtype::int64, Dtype::uint8, Dtype::bool8}) {
        const Array a = Array::empty({9}, dtype);
        attempt("flat",
                [&] { elementwise("T x, T a", "T y", "y = x * a + (i < n)", "flat")(a, 2); });
        attempt("raw", [&] {
            elementwise("raw T x, int64 last", "raw T y", "y[i] = x[last - i]; y[i] += T(1)",
                        "raw_one")(a, 8, over({9}));
        });
        if (dtype == Dtype::bool8) continue;
        attempt("pack",
                [&] { elementwise("T x, T y, T z", "T w", "w = x * y + z", "pack")(a, a, a); });
        attempt("sum", [&] { reduction("T x", "T y", "x", "a + b", "y = a / n", "0", "mean")(a); });
        attempt("mathematics", [&] {
            elementwise(
                "T x", "T y",
                "y = exp(x) + log(x) + sin(x) + cos(x) + exp2(x) + expm1(x) + log2(x) + log10(x);"
                "y += log1p(x) + tan(x) + asin(x) + acos(x) + atan(x) + sinh(x) + cosh(x);"
                "y += tanh(x) + asinh(x) + acosh(x) + atanh(x) + erf(x) + erfc(x) + cbrt(x);"
                "y += tgamma(x) + lgamma(x) + sqrt(x) + floor(x) + ceil(x) + trunc(x) + rint(x);"
                "y += round(x) + fabs(x) + atan2(x, x) + hypot(x, x) + pow(x, 2) + fmod(x, x);"
                "y += min(x, 2) + max(x, 2.0) + fmin(x, x) + fmax(x, x) + abs((float)x);"
                "y += isnan(x) + isinf(x) + isfinite(x) + copysign((float)x, 1.0f);"
                "y += rsqrt((float)x) + rsqrt((double)x) + fma((float)x, 2.0f, 1.0f);"
                "y += abs((int)x) + abs((int64)x)",
                "mathematics")(a);
        });
    }
    attempt("walk",
            [&] { elementwise("T x, T y, T z", "T w", "w = x * y + z", "walk")(x, row, column); });
    attempt("pointers",
            [&] { elementwise("float* w, const float* x", "w[i] += x[i]", "in_place")(x, x); });
    attempt("atomics", [&] {
        elementwise("int32 k, float* f, double* d, int* c, int64* l",
                    "atomic_add(f + k, 1.0f); atomic_add(d + k, 1.0); atomic_add(c + k, 1);"
                    "atomic_add(l + k, (int64)1)",
                    "atomics")(Array::empty({3}, Dtype::int32), Array::empty({3}),
                               Array::empty({3}, Dtype::float64), Array::empty({3}, Dtype::int32),
                               Array::empty({3}, Dtype::int64));
    });
    attempt("parts", [&] {
        elementwise<2>("T x", "T y, bool z", "y = square(x) + offset; z = y > FACTOR", "parts",
                       {.preamble = "inline T square(T x) { return x * x; }\n"
                                    "template <class V> struct Pair { V a, b; };",
                        .loop_prep = "const auto [offset, none] = Pair<T>{10, 0};",
                        .after_loop = "(void)none;",
                        .options = {"-DFACTOR=100"}})(x);
    });
    const auto argmax = reduction(
        "T x", "int64 y", "Best{x, i}", "a.value > b.value ? a : b", "y = a.index", "", "my_argmax",
        {.reduce_type = "Best", .preamble = "struct Best { T value; int64 index; };"});
    // CUDA has a function with this name.
    attempt("norm",
            [&] { reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")(x); });
    attempt("rows", [&] { argmax(x, 1); });
    attempt("columns", [&] { argmax(x, 0); });
    attempt("middle", [&] { argmax(Array::empty({3, 4, 5, 6}), {1, 3}); });
    attempt("global", [&] {
        reduce("const float* x, const float* y", "x[i] * y[i]", "a + b", "0", "dot")(x, x);
    });
    attempt("broken", [&] { elementwise("T x", "T y", "T t = x;\ny = t * q;", "broken")(x); });
    attempt("option", [&] {
        elementwise("T x", "T y", "y = x", "badly", {.options = {"--no-such-option"}})(x);
    });
    std::printf("made=%d compiled=%d\n", made, static_cast<int>(kernel_stats().compiled));
} catch (const Error& error) {
    std::printf("error: %s\n", error.what());
    return 1;
}
