// Tests gemm against a plain loop, the choice of OpenBLAS' kernels, equal bits on any thread count.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "host.hpp"

using namespace cpu_test;

namespace {

struct Shape {
    int64_t m;
    int64_t n;
    int64_t k;
    bool transpose_a = false;
    bool transpose_b = false;
};

// Operands whose rows are longer than needed, so that a wrong leading dimension shows.
template <typename T>
struct Product {
    catena_gemm gemm = {};
    std::vector<T> a;
    std::vector<T> b;
    std::vector<T> c;

    Product(const Shape& shape, double alpha, double beta) {
        const auto [m, n, k, transpose_a, transpose_b] = shape;
        gemm.struct_size = sizeof gemm;
        gemm.dtype = {CATENA_CODE_FLOAT, sizeof(T) * 8, 1};
        gemm.transpose_a = transpose_a;
        gemm.transpose_b = transpose_b;
        gemm.m = m;
        gemm.n = n;
        gemm.k = k;
        gemm.alpha = alpha;
        gemm.beta = beta;
        gemm.lda = (transpose_a ? m : k) + 3;
        gemm.ldb = (transpose_b ? k : n) + 2;
        gemm.ldc = n + 5;
        fill(a, (transpose_a ? k : m) * gemm.lda);
        fill(b, (transpose_b ? n : k) * gemm.ldb);
        fill(c, m * gemm.ldc);
    }

    static void fill(std::vector<T>& values, int64_t size) {
        static std::mt19937 random;
        std::uniform_real_distribution<T> uniform(-1, 1);
        values.resize(static_cast<size_t>(std::max<int64_t>(size, 1)));
        std::generate(values.begin(), values.end(), [&] { return uniform(random); });
    }

    catena_status run(const catena_blas& table = *plugin().blas) {
        gemm.a = a.data();
        gemm.b = b.data();
        gemm.c = c.data();
        return table.gemm(nullptr, &gemm);
    }

    // Returns the expected c after run(); columns from n on keep their values.
    std::vector<T> expected() const {
        std::vector<T> out = c;
        for (int64_t i = 0; i < gemm.m; ++i)
            for (int64_t j = 0; j < gemm.n; ++j) {
                double sum = 0;
                for (int64_t l = 0; l < gemm.k; ++l) {
                    const int64_t at_a = gemm.transpose_a ? l * gemm.lda + i : i * gemm.lda + l;
                    const int64_t at_b = gemm.transpose_b ? j * gemm.ldb + l : l * gemm.ldb + j;
                    sum += static_cast<double>(a[static_cast<size_t>(at_a)]) *
                           static_cast<double>(b[static_cast<size_t>(at_b)]);
                }
                T& value = out[static_cast<size_t>(i * gemm.ldc + j)];
                value =
                    static_cast<T>(gemm.alpha * sum +
                                   (gemm.beta == 0 ? 0 : gemm.beta * static_cast<double>(value)));
            }
        return out;
    }
};

template <typename T>
double largest_difference(const std::vector<T>& x, const std::vector<T>& y) {
    double largest = 0;
    for (size_t i = 0; i < x.size(); ++i) {
        const double difference = std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
        if (!(difference <= largest)) largest = difference;  // keeps NaN
    }
    return largest;
}

template <typename T>
void check(const Shape& shape, double alpha, double beta) {
    CAPTURE(shape.m);
    CAPTURE(shape.n);
    CAPTURE(shape.k);
    CAPTURE(shape.transpose_a);
    CAPTURE(shape.transpose_b);
    CAPTURE(alpha);
    CAPTURE(beta);
    Product<T> product(shape, alpha, beta);
    const std::vector<T> expected = product.expected();
    REQUIRE(product.run() == CATENA_OK);
    const double tolerance = 8 * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                             (1 + static_cast<double>(shape.k));
    CHECK(largest_difference(product.c, expected) < tolerance);
}

const Shape shapes[] = {{1, 1, 1},     {3, 1, 2},      {7, 5, 3},    {8, 8, 8},
                        {1, 100, 300}, {100, 1, 77},   {17, 33, 65}, {64, 64, 64},
                        {100, 10, 99}, {31, 257, 129}, {130, 97, 4}, {100, 99, 784}};
// With so few rows or columns that other code computes them: odd sizes, and several strips of columns.
const Shape few[] = {{1, 40, 5},     {1, 300, 70},   {1, 257, 1000}, {1, 9000, 17}, {2, 601, 128},
                     {3, 700, 150},  {7, 5000, 16},  {8, 520, 131},  {513, 1, 64},  {700, 5, 129},
                     {2000, 8, 130}, {1, 1, 10'000}, {5, 3, 30'000}, {1, 701, 799}, {5, 799, 701}};

std::vector<Shape> all_shapes() {
    std::vector<Shape> all(std::begin(shapes), std::end(shapes));
    all.insert(all.end(), std::begin(few), std::end(few));
    return all;
}

}  // namespace

TEST_CASE_TEMPLATE("products agree with a plain loop", T, float, double) {
    for (const int32_t threads : {1, 3}) {
        plugin().threads->set_count(plugin().dev, threads);
        for (Shape shape : all_shapes())
            for (const int transposes : {0, 1, 2, 3}) {
                shape.transpose_a = (transposes & 1) != 0;
                shape.transpose_b = (transposes & 2) != 0;
                check<T>(shape, 1, 0);
                check<T>(shape, -0.5, 1);
                check<T>(shape, 2, 0.25);
            }
    }
    plugin().threads->set_count(plugin().dev, 0);
}

TEST_CASE_TEMPLATE("beta 0 overwrites what is no number", T, float, double) {
    for (const Shape& shape : all_shapes()) {
        Product<T> product(shape, 1, 0);
        const std::vector<T> expected = product.expected();
        for (int64_t i = 0; i < shape.m; ++i)
            std::fill_n(product.c.begin() + i * product.gemm.ldc, shape.n,
                        std::numeric_limits<T>::quiet_NaN());
        REQUIRE(product.run() == CATENA_OK);
        CHECK(largest_difference(product.c, expected) < 0.01);
    }
}

TEST_CASE_TEMPLATE("an empty sum scales C", T, float, double) {
    check<T>({5, 70, 0}, 1, 0.5);
    check<T>({50, 70, 0, true, true}, 1, 0);
    check<T>({50, 70, 20}, 0, 0.5);
    Product<T> product({5, 7, 0}, 1, 0);
    std::fill(product.c.begin(), product.c.end(), std::numeric_limits<T>::quiet_NaN());
    REQUIRE(product.run() == CATENA_OK);
    CHECK(product.c[0] == 0);
    CHECK(product.c[6] == 0);
    CHECK(std::isnan(product.c[7]));
}

TEST_CASE("an empty C needs no data") {
    for (const Shape& shape : {Shape{0, 7, 5}, Shape{7, 0, 5}, Shape{0, 0, 0}}) {
        Product<float> product(shape, 1, 0);
        CHECK(plugin().blas->gemm(nullptr, &product.gemm) == CATENA_OK);
    }
}

TEST_CASE("what is wrong is refused with a reason") {
    const auto fails = [](auto change) {
        Product<float> product({4, 5, 6}, 1, 0);
        product.gemm.a = product.gemm.b = product.gemm.c = product.c.data();
        change(product.gemm);
        return plugin().blas->gemm(nullptr, &product.gemm);
    };
    CHECK(fails([](catena_gemm& gemm) { gemm.lda = 5; }) == CATENA_E_INVALID);
    CHECK(failure == "[gemm] lda: expected at least 6, got 5");
    CHECK(fails([](catena_gemm& gemm) { gemm.ldb = 4; }) == CATENA_E_INVALID);
    CHECK(failure == "[gemm] ldb: expected at least 5, got 4");
    CHECK(fails([](catena_gemm& gemm) { gemm.ldc = 4; }) == CATENA_E_INVALID);
    CHECK(failure == "[gemm] ldc: expected at least 5, got 4");
    CHECK(fails([](catena_gemm& gemm) { gemm.k = -1; }) == CATENA_E_SHAPE);
    CHECK(fails([](catena_gemm& gemm) { gemm.b = nullptr; }) == CATENA_E_INVALID);
    CHECK(fails([](catena_gemm& gemm) { gemm.dtype.bits = 16; }) == CATENA_E_UNSUPPORTED);
    CHECK(fails([](catena_gemm& gemm) { gemm.lda = int64_t{1} << 31; }) == CATENA_E_UNSUPPORTED);
}

TEST_CASE("supports() asks for the type and the extents") {
    Product<double> product({4, 5, 6}, 1, 0);
    CHECK(plugin().blas->supports(&product.gemm) == 1);
    product.gemm.dtype.code = CATENA_CODE_INT;
    CHECK(plugin().blas->supports(&product.gemm) == 0);
}

TEST_CASE_TEMPLATE("deterministic products have the same bits for any number of threads", T, float,
                   double) {
    for (const Shape& shape : {Shape{100, 101, 784, false, true}, Shape{100, 784, 100, true, false},
                               Shape{300, 301, 302}, Shape{33, 1000, 64, true, true}}) {
        Product<T> product(shape, 1.5, 0.5);
        product.gemm.flags = CATENA_CALL_DETERMINISTIC;
        const std::vector<T> before = product.c;
        std::vector<T> first;
        for (const int32_t threads : {1, 2, 3, 8}) {
            plugin().threads->set_count(plugin().dev, threads);
            product.c = before;
            REQUIRE(product.run() == CATENA_OK);
            if (first.empty()) first = product.c;
            CHECK(product.c == first);
        }
    }
    plugin().threads->set_count(plugin().dev, 0);
}

namespace {

const catena_blas& bfloat16() { return *plugin().bfloat16; }

bool has_bfloat16() {
    catena_gemm gemm = Product<float>({128, 128, 128}, 1, 0).gemm;
    gemm.flags = CATENA_CALL_BFLOAT16;
    const bool has = bfloat16().supports(&gemm) != 0;
    if (!has) MESSAGE("not tested: this processor has no fast bfloat16");
    return has;
}

float rounded(float x) { return catena_from_bfloat16(catena_to_bfloat16(x)); }

// Whole blocks, incomplete tiles, incomplete pairs of numbers, several parts of each extent.
const Shape bfloat16_shapes[] = {{1, 1, 1},       {32, 32, 32},   {33, 31, 63},
                                 {7, 50, 1},      {48, 16, 2},    {97, 100, 70},
                                 {100, 10, 1030}, {20, 1100, 65}, {257, 20, 515}};

}  // namespace

TEST_CASE("bfloat16 products round the operands to bfloat16 and add float32") {
    if (!has_bfloat16()) return;
    for (Shape shape : bfloat16_shapes)
        for (const int transposes : {0, 1, 2, 3})
            for (const double beta : {0.0, 1.0, 0.25}) {
                CAPTURE(shape.m);
                CAPTURE(shape.n);
                CAPTURE(shape.k);
                CAPTURE(transposes);
                CAPTURE(beta);
                shape.transpose_a = (transposes & 1) != 0;
                shape.transpose_b = (transposes & 2) != 0;
                Product<float> product(shape, beta == 1 ? 1 : -0.5, beta);
                product.gemm.flags = CATENA_CALL_BFLOAT16;
                const std::vector<float> exact = product.expected();
                Product<float> narrow = product;
                for (float& x : narrow.a) x = rounded(x);
                for (float& x : narrow.b) x = rounded(x);
                const std::vector<float> expected = narrow.expected();
                if (beta == 0)
                    for (int64_t i = 0; i < shape.m; ++i)
                        std::fill_n(product.c.begin() + i * product.gemm.ldc, shape.n,
                                    std::numeric_limits<float>::quiet_NaN());
                const std::vector<float> before = product.c;
                REQUIRE(product.run(bfloat16()) == CATENA_OK);
                const double terms = 1 + static_cast<double>(shape.k);
                CHECK(largest_difference(product.c, expected) < 1e-6 * terms);
                CHECK(largest_difference(product.c, exact) < std::ldexp(1, -8) * terms);
                for (const int32_t threads : {1, 3}) {
                    plugin().threads->set_count(plugin().dev, threads);
                    Product<float> again = product;
                    again.c = before;
                    REQUIRE(again.run(bfloat16()) == CATENA_OK);
                    CHECK(again.c == product.c);
                }
                plugin().threads->set_count(plugin().dev, 0);
            }
}

TEST_CASE("bfloat16 products propagate NaN and infinity") {
    if (!has_bfloat16()) return;
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const bool transposed : {false, true}) {
        Product<float> product({40, 40, 40, transposed, transposed}, 1, 0);
        product.gemm.flags = CATENA_CALL_BFLOAT16;
        std::fill(product.b.begin(), product.b.end(), 1.0F);
        const auto row = [&](int64_t i) {
            return transposed ? i : i * product.gemm.lda;  // its first element
        };
        product.a[static_cast<size_t>(row(3))] = infinity;
        product.a[static_cast<size_t>(row(35))] = std::numeric_limits<float>::quiet_NaN();
        product.a[static_cast<size_t>(row(36))] = 3.4e38F;  // rounds to infinity
        REQUIRE(product.run(bfloat16()) == CATENA_OK);
        const auto result = [&](int64_t i, int64_t j) {
            return product.c[static_cast<size_t>(i * product.gemm.ldc + j)];
        };
        for (const int64_t j : {0, 39}) {
            CHECK(result(3, j) == infinity);
            CHECK(std::isnan(result(35, j)));
            CHECK(result(36, j) == infinity);
            CHECK(std::isfinite(result(34, j)));
            CHECK(std::isfinite(result(37, j)));
        }
    }
}

TEST_CASE("supports() accepts only large products for bfloat16, if they may be rounded") {
    Product<float> product({128, 128, 128}, 1, 0);
    CHECK(bfloat16().supports(&product.gemm) == 0);
    CHECK(product.run(bfloat16()) == CATENA_E_UNSUPPORTED);
    product.gemm.flags = CATENA_CALL_FLOAT16;
    CHECK(bfloat16().supports(&product.gemm) == 0);
    const auto refused = [&](const Shape& shape) {
        catena_gemm gemm = product.gemm;
        gemm.flags = CATENA_CALL_BFLOAT16;
        gemm.m = shape.m;
        gemm.n = gemm.ldb = gemm.ldc = shape.n;
        gemm.k = gemm.lda = shape.k;
        return bfloat16().supports(&gemm) == 0;
    };
    CHECK(refused({1, 4096, 4096}));
    CHECK(refused({4096, 1, 4096}));
    CHECK(refused({4096, 4096, 4}));
    CHECK(refused({64, 64, 64}));
    CHECK(refused({512, 512, 0}));
    CHECK(refused({0, 512, 512}));
    if (!has_bfloat16()) return;
    CHECK(!refused({100, 100, 100}));
    Product<float> scaled({50, 70, 0}, 1, 0.5);
    scaled.gemm.flags = CATENA_CALL_BFLOAT16;
    const std::vector<float> expected = scaled.expected();
    REQUIRE(scaled.run(bfloat16()) == CATENA_OK);
    CHECK(scaled.c == expected);
}

TEST_CASE_TEMPLATE("products with few rows have the same bits for any number of threads", T, float,
                   double) {
    for (Shape shape : few)
        for (const bool transposed : {false, true}) {
            (shape.m > shape.n ? shape.transpose_a : shape.transpose_b) = transposed;
            Product<T> product(shape, 1.5, 0.5);
            const std::vector<T> before = product.c;
            product.gemm.flags = CATENA_CALL_DETERMINISTIC;
            std::vector<T> first;
            for (const int32_t threads : {1, 2, 3, 8}) {
                plugin().threads->set_count(plugin().dev, threads);
                product.c = before;
                REQUIRE(product.run() == CATENA_OK);
                if (first.empty()) first = product.c;
                CHECK(product.c == first);
            }
        }
    plugin().threads->set_count(plugin().dev, 0);
}

TEST_CASE_TEMPLATE("products with few rows sum an infinity once", T, float, double) {
    for (const bool transposed : {false, true})
        for (const int64_t at : {0, 3, 10, 19}) {
            Product<T> product({1, 6, 20, false, transposed}, 1, 0);
            std::fill(product.a.begin(), product.a.end(), T(1));
            std::fill(product.b.begin(), product.b.end(), T(1));
            product.b[static_cast<size_t>(transposed ? at : at * product.gemm.ldb)] =
                std::numeric_limits<T>::infinity();
            REQUIRE(product.run() == CATENA_OK);
            CHECK(product.c[0] == std::numeric_limits<T>::infinity());
            CHECK(product.c[1] == 20);
        }
}

TEST_CASE("several threads of the host may multiply at the same time") {
    std::vector<std::thread> callers;
    std::vector<double> differences(3);
    for (double& difference : differences) {
        Product<float> product({90, 110, 130, false, true}, 1, 0);
        callers.emplace_back([&difference, product]() mutable {
            const std::vector<float> expected = product.expected();
            for (int round = 0; round < 20; ++round) {
                product.run();
                difference = std::max(difference, largest_difference(product.c, expected));
            }
        });
    }
    for (auto& caller : callers) caller.join();
    for (const double difference : differences) CHECK(difference < 1e-4);
}

TEST_CASE("OpenBLAS runs its kernels for the widest vectors of this CPU") {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (std::getenv("OPENBLAS_CORETYPE") != nullptr) return;  // the user chooses the kernels
    check<float>({100, 100, 100}, 1, 0);
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(library != nullptr);
    const auto corename =
        reinterpret_cast<const char* (*)()>(dlsym(library, "openblas_get_corename"));
    REQUIRE((corename != nullptr));
    const std::string core = corename();
    CAPTURE(core);
    const auto one_of = [&](std::initializer_list<const char*> names) {
        return std::any_of(names.begin(), names.end(), [&](auto name) { return core == name; });
    };
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0)
        CHECK(one_of({"SkylakeX", "Cooperlake", "SapphireRapids"}));
    else if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0)
        CHECK(one_of({"Haswell", "Zen"}));
    else CHECK(!core.empty());
#else
    CHECK(!core.empty());
#endif
    dlclose(library);
}
