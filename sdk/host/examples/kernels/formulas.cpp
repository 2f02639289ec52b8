// Examples of kernels from formulas, one per section.
#include <catena/catena.hpp>

#include <cstdio>

using namespace catena;
namespace F = catena::functions;

namespace {

void expect(const Array& got, const Array& wanted) {
    gradient_check::assert_allclose(got, wanted.to(got.device()));
}

void values() {
    const Array x = Array::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
    const Array row = Array::from<float>({10, 20, 30}, {3});
    // [elementwise]
    const auto muladd = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd");
    const Array w = muladd(x, row, 0.5);
    // [/elementwise]
    expect(w, x * row + 0.5);

    // [outputs]
    const auto polar =
        elementwise<2>("T x, T y", "T r, T angle", "r = hypot(x, y); angle = atan2(y, x)", "polar");
    const auto [r, angle] = polar(x, row);
    // [/outputs]
    expect(r, F::sqrt(x * x + row * row));

    // [in_place]
    elementwise("T g, T rate", "T p", "p -= rate * g", "descend")(row, 0.1, row);
    elementwise("float* w, const float* x", "w[i] += x[i]", "accumulate")(w, x);
    // [/in_place]
    expect(row, Array::from<float>({9, 18, 27}, {3}));

    // [raw]
    const auto reverse = elementwise("raw T x, int64 n", "T y", "y = x[n - 1 - i]", "reverse");
    const Array backwards = reverse(x, 6, over({6}));
    const auto pick = elementwise("raw T table, int64 id", "T y", "y = table[id]", "pick");
    const Array picked = pick(row, Array::from<std::int64_t>({2, 0}, {2}));
    // [/raw]
    expect(backwards, Array::from<float>({6, 5, 4, 3, 2, 1}, {6}));
    expect(picked, Array::from<float>({27, 9}, {2}));

    // [preamble]
    const auto gelu = elementwise("T x", "T y", "y = x * phi(x)", "gelu", {.preamble = R"(
        CATENA_FN T phi(T x) { return (1 + erf(x * T(0.70710678118654752))) / 2; }
    )"});
    // [/preamble]
    expect(gelu(Array::zeros({3})), Array::zeros({3}));
}

void reductions() {
    const Array x = Array::from<float>({3, 4, 6, 8}, {2, 2});
    // [reduction]
    const auto l2norm = reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
    const Array all = l2norm(x);
    const Array rows = l2norm(x, /*axis=*/1);
    const Array kept = l2norm(x, {0, 1}, /*keepdims=*/true);
    // [/reduction]
    expect(rows, Array::from<float>({5, 10}, {2}));
    expect(kept.reshape({}), all);

    // [argmax]
    const auto argmax = reduction(
        "T x", "int64 y", "Best{x, i}",
        "a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b", "y = a.index",
        /*identity=*/"", "argmax",
        {.reduce_type = "Best", .preamble = "struct Best { T value; int64 index; };"});
    // [/argmax]
    expect(argmax(x, 1), Array::from<std::int64_t>({1, 1}, {2}));

    // [reduce]
    const auto dot = reduce("const float* x, const float* y", "x[i] * y[i]", "a + b", "0", "dot");
    const double product = dot(x, x).item();
    // [/reduce]
    if (product != 125) throw ValueError("[dot] expected 125, got " + std::to_string(product));
}

void gradients() {
    // [function]
    const ElementwiseFunction muladd(
        {"T x, T y, T z", "T w", "w = x * y + z", "muladd"},
        {"T x, T y, T gw", "T gx, T gy, T gz", "gx = gw * y; gy = gw * x; gz = gw"});
    const Variable x(Array::full({3, 2}, 2)), y(Array::full({2}, 5)), z(Array::zeros({}));
    F::sum(muladd(x, y, z)).backward();
    // [/function]
    expect(x.grad(), Array::full({3, 2}, 5));
    expect(y.grad(), Array::full({2}, 6));
    expect(z.grad(), Array::full({}, 6));
}

void caches() {
    // [stats]
    const KernelStats stats = kernel_stats();
    std::printf("compiled %d, found compiled %d\n", static_cast<int>(stats.compiled),
                static_cast<int>(stats.loaded));
    // [/stats]
}

}  // namespace

int main() try {
    values();
    reductions();
    gradients();
    caches();
} catch (const Error& e) {
    std::fprintf(stderr, "formulas: %s\n", e.what());
    return 1;
}
