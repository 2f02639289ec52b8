// Tests oneDNN's products against a plain loop.
#include <catena/testing/plain_blas.hpp>

#include <pthread.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>

#include "products.hpp"

using namespace onednn_test;

namespace {

const Size sizes[] = {{100, 100, 784}, {20, 1300, 65}, {1300, 65, 20},  {64, 64, 128},
                      {1, 900, 900},   {900, 1, 900},  {17, 333, 129},  {333, 17, 129},
                      {5, 4000, 31},   {130, 97, 101}, {20, 65, 10000}, {257, 255, 256}};

}  // namespace

TEST_CASE("products") {
    for (const Size& size : sizes)
        for (const bool transpose_a : {false, true})
            for (const bool transpose_b : {false, true})
                for (const double beta : {0.0, 1.0, 0.25}) {
                    CAPTURE(size.m);
                    CAPTURE(size.n);
                    CAPTURE(size.k);
                    CAPTURE(transpose_a);
                    CAPTURE(transpose_b);
                    CAPTURE(beta);
                    Product p(size, transpose_a, transpose_b, beta == 0.25 ? -0.5 : 1, beta);
                    const Array expected = p.run(plain_blas);
                    for (const int threads : {1, 3})
                        CHECK(compare(p.run(blas(), threads), expected, {1e-4, 1e-3}) == "");
                }
}

TEST_CASE("beta 0 overwrites what is no number") {
    Product p({100, 100, 100}, false, true, 1, 0);
    const Array expected = p.run(plain_blas);
    for (std::int64_t i = 0; i < p.c.size(); ++i)
        if (i % p.gemm.ldc < p.gemm.n) p.c.set(i, std::nan(""));
    CHECK(compare(p.run(blas(), 2), expected, {1e-4, 1e-4}) == "");
}

TEST_CASE("deterministic products have the same bits for any number of threads") {
    for (const Size& size : sizes)
        for (const bool transpose : {false, true}) {
            Product p(size, transpose, !transpose, 1, 1);
            p.gemm.flags = CATENA_CALL_DETERMINISTIC;
            const Array first = p.run(blas(), 1);
            for (const int threads : {2, 3, 8}) CHECK(p.run(blas(), threads) == first);
        }
}

// oneDNN's products point the stack register into the heap; signal handlers must not run there.
TEST_CASE("signals are handled on the thread's own stack") {
    static std::atomic<int> handled;
    static std::atomic<int> astray;
    static char* low;
    static std::size_t bytes;
    pthread_attr_t attributes;
    void* stack = nullptr;
    REQUIRE(pthread_getattr_np(pthread_self(), &attributes) == 0);
    REQUIRE(pthread_attr_getstack(&attributes, &stack, &bytes) == 0);
    pthread_attr_destroy(&attributes);
    low = static_cast<char*>(stack);
    struct sigaction action = {};
    action.sa_handler = [](int) {
        const auto* here = static_cast<char*>(__builtin_frame_address(0));
        handled.fetch_add(1);
        if (here < low || here >= low + bytes) astray.fetch_add(1);
    };
    struct sigaction before = {};
    REQUIRE(sigaction(SIGALRM, &action, &before) == 0);
    const itimerval often = {{0, 500}, {0, 500}};
    REQUIRE(setitimer(ITIMER_REAL, &often, nullptr) == 0);
    Product p({100, 100, 784}, false, true, 1, 0);
    while (handled < 200) p.run(blas());
    const itimerval never = {};
    setitimer(ITIMER_REAL, &never, nullptr);
    sigaction(SIGALRM, &before, nullptr);
    CHECK(astray == 0);
}

TEST_CASE("what is better done elsewhere is refused") {
    Product p({100, 100, 784}, false, true, 1, 0);
    CHECK(blas().supports(&p.gemm) == 1);
    const auto refused = [&](auto change) {
        catena_gemm gemm = p.gemm;
        change(gemm);
        return blas().supports(&gemm) == 0;
    };
    CHECK(refused([](catena_gemm& g) { g.dtype = dtype_of<double>(); }));
    CHECK(refused([](catena_gemm& g) { g.dtype = dtype_of<Float16>(); }));
    CHECK(refused([](catena_gemm& g) { g.m = 0; }));
    CHECK(refused([](catena_gemm& g) { g.k = 0; }));
    CHECK(refused([](catena_gemm& g) { g.lda = 10; }));
    CHECK(refused([](catena_gemm& g) { g.m = g.n = g.k = 20; }));
    const auto tall = [](std::int64_t k) {
        return [k](catena_gemm& g) {
            g.m = 784;
            g.n = g.ldb = 100;
            g.k = g.lda = k;
            g.transpose_b = 0;
        };
    };
    CHECK(refused(tall(100)));
    CHECK(!refused(tall(200)));
    CHECK(refused([](catena_gemm& g) { g.ldb = std::int64_t{1} << 31; }));
}
