// elementwise: kernels that a program writes as formulas, for every device that has a compiler.
#pragma once

#include <catena/kernels/formula_kernel.hpp>

namespace catena {

// A kernel with N outputs. Calling it with its inputs returns an Array if N is 1, a
// std::array<Array, N> if N is larger, and nothing if N is 0. If the caller passes an array for
// each output after the inputs, the call writes into these arrays, which may also be inputs.
template <std::size_t N>
class ElementwiseKernel : public FormulaKernel {
public:
    ElementwiseKernel(const char* inputs, const char* outputs, const char* operation,
                      const char* name, const ElementwiseOptions& options)
        : FormulaKernel(inputs, outputs, operation, name, options) {
        expect_outputs(N, "elementwise");
    }

    template <class... A>
    auto operator()(const A&... arguments) const {
        const KernelArgument all[] = {KernelArgument(arguments)...};
        std::array<Array, N == 0 ? 1 : N> y;
        run(all, y.data());
        if constexpr (N == 1) return std::move(y[0]);
        else if constexpr (N != 0) return y;
    }
};

// A kernel that computes each element, with arrays broadcast as in NumPy:
//   const auto muladd = elementwise("T x, T y, T z", "T w", "w = x * y + z", "muladd");
//   const Array w = muladd(x, y, z);
// The type of an argument is the name of a dtype (float32, int64, bool ...; C's float, double, int)
// or a capital letter, which stands for the dtype of the first array declared with it. `raw T x` is
// a whole array that the formula indexes: x[n - 1 - i]. i is the index of the element, n the number
// of elements. Any input that is not raw may be a number. float16 and bfloat16 are computed in
// float32. name appears in error messages, and in profilers with the prefix "catena_formula_".
//   const auto both = elementwise<2>("T x, T y", "T sum, T product",
//                                    "sum = x + y; product = x * y", "both");
//   const auto [sum, product] = both(x, y);
// The kernel is compiled on the first call with new dtypes and cached on disk: see kernels.md.
// Making the same kernel again only looks it up, so it may be done in a forward. The strings are
// code, which runs with all rights of the process. Throws InvalidError for wrong argument lists. A
// call throws the errors of FormulaKernel::call().
template <std::size_t N = 1>
ElementwiseKernel<N> elementwise(const char* inputs, const char* outputs, const char* operation,
                                 const char* name, const ElementwiseOptions& options = {}) {
    return ElementwiseKernel<N>(inputs, outputs, operation, name, options);
}

// With pointers, in place, as in Chainer 1. i runs over the first array.
//   elementwise("float* w, const float* x, const float* y, const float* z",
//               "w[i] = x[i] * y[i] + z[i]", "muladd")(w, x, y, z);
inline ElementwiseKernel<0> elementwise(const char* arguments, const char* operation,
                                        const char* name, const ElementwiseOptions& options = {}) {
    return elementwise<0>(arguments, "", operation, name, options);
}

namespace cuda {  // as in Chainer; runs on the device of its arrays, GPU or not
using catena::elementwise;
}

}  // namespace catena
