// Compares matrix products with plain loops, for every dtype, transposition and edge case.
#include <catena/plugin/half.hpp>

#include <cmath>
#include <limits>

#include "host.hpp"

using namespace cuda_test;

namespace {

using catena::plugin::BFloat16;
using catena::plugin::Float16;

double number(float x) { return static_cast<double>(x); }
double number(double x) { return x; }
double number(Float16 x) { return static_cast<double>(catena::plugin::to_float(x)); }
double number(BFloat16 x) { return static_cast<double>(catena::plugin::to_float(x)); }
template <class T>
T make(double x) {
    if constexpr (std::is_floating_point_v<T>) return static_cast<T>(x);
    else return catena::plugin::to_half<T>(static_cast<float>(x));
}

// Small integers: every product and sum is exact in every dtype.
template <class T>
std::vector<T> matrix(int64_t n, int seed) {
    std::vector<T> values;
    uint32_t state = static_cast<uint32_t>(seed);
    for (int64_t i = 0; i < n; ++i) {
        state = state * 1664525 + 1013904223;
        values.push_back(make<T>(static_cast<double>(state >> 24) / 64 - 2 > 0 ? 2 : -1));
    }
    return values;
}

template <class T>
catena_gemm gemm_of(int64_t m, int64_t n, int64_t k, int trans_a, int trans_b) {
    catena_gemm g = {};
    g.struct_size = sizeof g;
    g.dtype = catena::plugin::dtype_of<T>();
    g.transpose_a = static_cast<uint8_t>(trans_a);
    g.transpose_b = static_cast<uint8_t>(trans_b);
    g.m = m;
    g.n = n;
    g.k = k;
    g.alpha = 1;
    g.lda = std::max<int64_t>(trans_a != 0 ? m : k, 1);
    g.ldb = std::max<int64_t>(trans_b != 0 ? k : n, 1);
    g.ldc = std::max<int64_t>(n, 1);
    return g;
}

template <class T>
void check_product(Stream& s, int64_t m, int64_t n, int64_t k, int trans_a, int trans_b,
                   double alpha, double beta, int64_t more = 0) {
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    CAPTURE(trans_a);
    CAPTURE(trans_b);
    CAPTURE(alpha);
    CAPTURE(beta);
    catena_gemm g = gemm_of<T>(m, n, k, trans_a, trans_b);
    g.alpha = alpha;
    g.beta = beta;
    g.lda += more;
    g.ldb += more;
    g.ldc += more;
    const auto a = matrix<T>((trans_a != 0 ? k : m) * g.lda + 1, 1);
    const auto b = matrix<T>((trans_b != 0 ? n : k) * g.ldb + 1, 2);
    auto c = matrix<T>(m * g.ldc + 1, 3);
    if (beta == 0 && m * n > 0)
        c[0] = make<T>(std::numeric_limits<double>::quiet_NaN());  // must not be read
    g.a = s.put(a);
    g.b = s.put(b);
    T* const out = s.put(c);
    g.c = out;
    g.stream = s.stream;
    CHECK(plugin().blas->supports(&g) == 1);
    const catena_status status = plugin().blas->gemm(ctx, &g);
    REQUIRE_MESSAGE(status == CATENA_OK, failure);
    const auto got = s.get(out, c.size());
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < g.ldc; ++j) {
            const auto at = static_cast<std::size_t>(i * g.ldc + j);
            if (j >= n) {  // between rows
                CHECK(number(got[at]) == number(c[at]));
                continue;
            }
            double sum = 0;
            for (int64_t l = 0; l < k; ++l)
                sum +=
                    number(
                        a[static_cast<std::size_t>(trans_a != 0 ? l * g.lda + i : i * g.lda + l)]) *
                    number(
                        b[static_cast<std::size_t>(trans_b != 0 ? j * g.ldb + l : l * g.ldb + j)]);
            CHECK(number(got[at]) ==
                  (beta == 0 ? alpha * sum : alpha * sum + beta * number(c[at])));
        }
}

template <class T>
void check_type() {
    Stream s;
    for (const int trans_a : {0, 1})
        for (const int trans_b : {0, 1}) {
            check_product<T>(s, 3, 5, 4, trans_a, trans_b, 1, 0);
            check_product<T>(s, 3, 5, 4, trans_a, trans_b, 2, -1, 3);
            check_product<T>(s, 1, 1, 1, trans_a, trans_b, -0.5, 0.5);
            check_product<T>(s, 1, 9, 7, trans_a, trans_b, 1, 1);
            check_product<T>(s, 9, 1, 7, trans_a, trans_b, 1, 1);
            check_product<T>(s, 13, 6, 1, trans_a, trans_b, 1, 0);
        }
    for (const double beta : {0.0, 1.0, 2.0}) {
        check_product<T>(s, 3, 4, 0, 0, 0, 1, beta);  // C = beta C
        check_product<T>(s, 0, 4, 2, 0, 0, 1, beta);
        check_product<T>(s, 3, 0, 2, 0, 0, 1, beta);
    }
}

}  // namespace

TEST_CASE("products of float32") { check_type<float>(); }
TEST_CASE("products of float64") { check_type<double>(); }
TEST_CASE("products of float16, summed up in float32") { check_type<Float16>(); }
TEST_CASE("products of bfloat16, summed up in float32") { check_type<BFloat16>(); }

TEST_CASE("products of float32 round their operands if the call allows it") {
    Stream s;
    catena_gemm g = gemm_of<float>(1, 1, 2, 0, 0);
    // 1 + 2^-9 rounds to 1 in bfloat16 only; 1 + 2^-12 in float16, too. Sums stay float32.
    g.a = s.put(std::vector<float>{1 + 0x1p-9F, 1 + 0x1p-12F});
    g.b = s.put(std::vector<float>{1, 0x1p-10F});
    float* const c = s.put(std::vector<float>{0});
    g.c = c;
    g.stream = s.stream;
    const auto product = [&](uint32_t flags) {
        g.flags = flags;
        REQUIRE(plugin().blas->gemm(ctx, &g) == CATENA_OK);
        return s.get(c, 1)[0];
    };
    CHECK(product(0) == 1 + 0x1p-9F + 0x1p-10F + 0x1p-22F);
    CHECK(product(CATENA_CALL_BFLOAT16) == 1 + 0x1p-10F);
    CHECK(product(CATENA_CALL_FLOAT16) == 1 + 0x1p-9F + 0x1p-10F);
    CHECK(product(CATENA_CALL_DETERMINISTIC) == product(0));
}

TEST_CASE("a product on another device than the thread's") {
    Stream s(second());
    check_product<float>(s, 4, 3, 2, 0, 1, 1, 0);
    int now = -1;
    REQUIRE(cudaGetDevice(&now) == cudaSuccess);
    CHECK(now == 0);
}

TEST_CASE("products can be recorded once their handle is there") {
    const auto& graphs = plugin().extension<catena_graph>(CATENA_GRAPH_DRAFT_1);
    Stream s;
    check_product<float>(s, 2, 2, 2, 0, 0, 1, 0);
    catena_gemm g = gemm_of<float>(2, 2, 2, 0, 0);
    g.a = s.put(std::vector<float>{1, 2, 3, 4});
    g.b = s.put(std::vector<float>{1, 0, 0, 1});
    float* const c = s.put(std::vector<float>(4, 0));
    g.c = c;
    g.stream = s.stream;
    g.beta = 1;
    s.sync();
    REQUIRE(graphs.begin(ctx, s.dev, s.stream) == CATENA_OK);
    REQUIRE(plugin().blas->gemm(ctx, &g) == CATENA_OK);
    catena_graph_exec* graph = nullptr;
    REQUIRE(graphs.end(ctx, s.dev, s.stream, &graph) == CATENA_OK);
    for (int i = 0; i < 3; ++i) REQUIRE(graphs.launch(ctx, s.dev, graph, s.stream) == CATENA_OK);
    CHECK(s.get(c, 4) == std::vector<float>{3, 6, 9, 12});
    graphs.destroy(s.dev, graph);
}

TEST_CASE("what is wrong is refused in words, as on the CPU") {
    Stream s;
    const auto refused = [&](catena_gemm g, catena_status expected, const char* text) {
        g.stream = s.stream;
        CHECK(plugin().blas->gemm(ctx, &g) == expected);
        CHECK(failure == text);
    };
    catena_gemm g = gemm_of<float>(2, 3, 4, 0, 0);
    refused(g, CATENA_E_INVALID, "[gemm] data: expected a, b and c, got NULL");
    catena_gemm ld = g;
    ld.ldb = 2;
    refused(ld, CATENA_E_INVALID, "[gemm] ldb: expected at least 3, got 2");
    catena_gemm below = g;
    below.m = -1;
    refused(below, CATENA_E_SHAPE, "[gemm] extents: expected none below 0, got -1 x 3 x 4");
    catena_gemm type = g;
    type.dtype = {CATENA_CODE_INT, 32, 1};
    refused(type, CATENA_E_UNSUPPORTED,
            "[gemm] product: expected float32, float64, float16 or bfloat16 and extents below "
            "2^31, got code 0, 32 bits, 2 x 3 x 4");
    CHECK(plugin().blas->supports(&type) == 0);
    catena_gemm large = g;
    large.n = large.ldb = large.ldc = int64_t{1} << 31;
    CHECK(plugin().blas->supports(&large) == 0);
}
