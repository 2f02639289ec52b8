// Tests of cuda::elementwise() and cuda::reduce(), on GPUs with a run-time compiler.
#include "gpus.hpp"

using namespace gpus;

TEST_CASE("elementwise and reduce, where their arrays are") {
    const SameDevice same;
    const Array x = cuda::to_gpu(Array::from({1.F, 2.F, 3.F}, {3}, cuda::host()), second_id());
    const auto square = cuda::elementwise("T x", "T y", "y = x * x", "square_on_gpu");
    const auto dot =
        cuda::reduce("const float* x, const float* y", "x[i] * y[i]", "a + b", "0", "dot_on_gpu");
    Array y;
    try {
        y = square(x);
    } catch (const UnsupportedError& error) {  // no compiler; the CPU always has one
        contains(error.what(), "[square_on_gpu] device: expected one that has a compiler");
        CHECK_FALSE(second().host_accessible());
        return;
    }
    CHECK(y.device() == second());
    CHECK(values(y) == Floats{1, 4, 9});
    const Array product = dot(x, y);
    CHECK(product.device() == second());
    CHECK(product.item<float>() == 36);
}
