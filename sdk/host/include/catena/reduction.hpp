// reduction: sums, norms, maxima and so on, which a program writes as formulas.
#pragma once

#include <catena/kernels/formula_kernel.hpp>

namespace catena {

// A reduction with N outputs. A call returns the same types as a call of an ElementwiseKernel.
template <std::size_t N>
class ReductionKernel : public FormulaKernel {
public:
    ReductionKernel(const char* inputs, const char* outputs, const char* map, const char* reduce,
                    const char* finish, const char* identity, const char* name,
                    const ReductionOptions& options)
        : FormulaKernel(inputs, outputs, map, reduce, finish, identity, name, options) {
        expect_outputs(N, "reduction");
    }

    // Over all elements, or over the axes in along().
    template <class... A>
    auto operator()(const A&... arguments) const {
        return result({KernelArgument(arguments)...});
    }
    // Over one or several axes of an array; negative ones count from the last.
    auto operator()(const Array& x, int axis, bool keepdims) const {
        return result({x, along(axis, keepdims)});
    }
    auto operator()(const Array& x, int axis) const {
        return inputs() == 1 ? (*this)(x, axis, false) : result({x, axis});
    }
    auto operator()(const Array& x, std::initializer_list<int> axes, bool keepdims = false) const {
        return result({x, along(axes, keepdims)});
    }

private:
    auto result(std::initializer_list<KernelArgument> all) const {
        std::array<Array, N> y;
        run({all.begin(), all.size()}, y.data());
        if constexpr (N == 1) return std::move(y[0]);
        else return y;
    }
};

// Maps every element, reduces the values in any order, and computes the outputs from the result:
//     const auto l2norm = reduction("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm");
//     const Array all = l2norm(x), rows = l2norm(x, /*axis=*/1), kept = l2norm(x, {0, 2}, true);
// map: an expression of the inputs, which are broadcast, of the index i among the n elements that
// are reduced into one output, and of the output's index j. reduce: an associative and commutative
// expression of a and b. finish: statements with a, j and n; "" means OUTPUT = a. identity: the
// neutral value of reduce; with "" there is none, and reducing zero elements is an error. The
// result depends on shapes, not on the number of threads. Arguments, caches and errors are those of
// elementwise().
template <std::size_t N = 1>
ReductionKernel<N> reduction(const char* inputs, const char* outputs, const char* map,
                             const char* reduce, const char* finish, const char* identity,
                             const char* name, const ReductionOptions& options = {}) {
    return ReductionKernel<N>(inputs, outputs, map, reduce, finish, identity, name, options);
}

// Over all elements, as in Chainer 1. With pointers, i runs over the first array.
//     const auto dot =
//         reduce("const float* x, const float* y", "x[i] * y[i]", "a + b", "0", "dot");
//     const double product = dot(x, y).item();
ReductionKernel<1> reduce(const char* arguments, const char* map, const char* reduce,
                          const char* neutral, const char* name, Dtype dtype_out = Dtype::float32,
                          const ReductionOptions& options = {});

namespace cuda {  // as in Chainer; runs on the device of its arrays, GPU or not
using catena::reduce, catena::reduction;
}

}  // namespace catena
