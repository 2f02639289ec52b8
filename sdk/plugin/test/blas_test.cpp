// Tests products for plugins: leading dimensions, alpha, batches, an empty sum, a missing table.
#include <doctest/doctest.h>

#include <catena/plugin.hpp>
#include <catena/plugin/blas.hpp>
#include <catena/testing/plain_blas.hpp>

#include <algorithm>
#include <utility>
#include <vector>

using namespace catena::plugin;

namespace {

const void* const plain[] = {&catena::testing::plain_blas, nullptr};
const void* const none[] = {nullptr};
int asked = 0;

// Installs a host that offers nothing but products, for the lifetime of the object.
class Host {
public:
    explicit Host(const void* const* tables) : before_(std::exchange(the_host, &host_)) {
        offered = tables;
        asked = 0;
        host_.struct_size = sizeof host_;
        host_.extensions = [](catena_ctx*, const char*) {
            ++asked;
            return offered;
        };
    }
    ~Host() { the_host = before_; }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

private:
    static inline const void* const* offered = nullptr;
    catena_host host_ = {};
    const catena_host* before_;
};
catena_call a_call() {
    static catena_function function = {};
    function.name = "f";
    catena_call call = {};
    call.function = &function;
    return call;
}

}  // namespace

TEST_CASE("blocks of matrices, scaled, and added to") {
    const Host host(plain);
    const catena_call call = a_call();
    const Blas blas(nullptr, call);
    // Multiplies the left columns of A (2 x 2 of 2 x 3) by B (2 x 2) into the right columns of C.
    const std::vector<float> a = {1, 2, 99, 3, 4, 99};
    const std::vector<float> b = {1, 10, 100, 1000};
    std::vector<float> c(6, 7);
    Product<float> p = {.transpose_a = false,
                        .transpose_b = false,
                        .m = 2,
                        .n = 2,
                        .k = 2,
                        .a = a.data(),
                        .b = b.data(),
                        .c = c.data() + 1,
                        .add = false,
                        .alpha = 2,
                        .lda = 3,
                        .ldc = 3};
    blas.gemm(p);
    CHECK(c == std::vector<float>{7, 402, 4020, 7, 806, 8060});
    p.add = true;
    p.alpha = -2;
    blas.gemm(p);
    CHECK(c == std::vector<float>{7, 0, 0, 7, 0, 0});
    p.k = 0;  // adds nothing; without add, sets only the product's columns to 0
    blas.gemm(p);
    CHECK(c == std::vector<float>{7, 0, 0, 7, 0, 0});
    std::fill(c.begin(), c.end(), 5.0f);
    p.add = false;
    blas.gemm(p);
    CHECK(c == std::vector<float>{5, 0, 0, 5, 0, 0});
    CHECK(asked == 1);  // gemm() does not call the host, so that bodies of parallel() may call it
}

TEST_CASE("batches: each product from where its operands lie, a step of 0 repeats one") {
    const Host host(plain);
    const catena_call call = a_call();
    const std::vector<double> a = {1, 2, 3, 4, 5, 6};  // three matrices of 1 x 2
    const std::vector<double> b = {1, 10};             // one of 2 x 1, for all
    std::vector<double> c(6, -1);
    gemm<double>(nullptr, call,
                 {.transpose_a = false,
                  .transpose_b = false,
                  .m = 1,
                  .n = 1,
                  .k = 2,
                  .a = a.data(),
                  .b = b.data(),
                  .c = c.data(),
                  .add = false,
                  .batch = 3,
                  .step_a = 2,
                  .step_c = 2});
    CHECK(c == std::vector<double>{21, -1, 43, -1, 65, -1});
}

TEST_CASE("where no plugin offers products, the function is named") {
    const Host host(none);
    const catena_call call = a_call();
    const double one = 1;
    double c = 0;
    CHECK_THROWS_WITH_AS(
        gemm<double>(nullptr, call, {false, false, 1, 1, 1, &one, &one, &c, false}),
        "[f] catena.blas/1: expected a plugin that offers it for this device and "
        "dtype, got none",
        Error);
}
