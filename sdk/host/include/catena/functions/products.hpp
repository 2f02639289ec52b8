// Products of arrays. All are differentiable to any order. Operands of batch_matmul() have one
// floating dtype, also float16 or bfloat16. tensordot() and einsum() promote their operands to a
// common dtype as operators do: operands that are all bool give int32, and integers or bool next to
// halves are rounded to the half dtype first. Two different floating dtypes are a DtypeError.
//
// F::matmul computes the products of floating dtypes. Halves are multiplied and added in float32.
// F::matmul has no integers: their products are computed one by one and added, exactly modulo 2^32,
// 2^64 or, for uint8, 2^8; this needs memory for all products.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/lists.hpp>
#include <catena/operators.hpp>

namespace catena::functions {

// The products of B pairs of matrices, of shape (B, m, n). a and b have the shape (B, rows,
// columns), or (B, length) for columns of that length; transa and transb transpose each matrix
// first, as in Chainer. F::matmul also broadcasts. Throws ShapeError.
Variable batch_matmul(const Variable& a, const Variable& b, bool transa = false,
                      bool transb = false);
Array batch_matmul(const Array& a, const Array& b, bool transa = false, bool transb = false);

// Sums the products of a and b over pairs of axes, as numpy.tensordot: the last `axes` axes of a
// with the first ones of b, or axes_a[i] of a with axes_b[i] of b. The other axes of a, then those
// of b, are the axes of the result. Throws ShapeError; InvalidError if an axis occurs twice.
Variable tensordot(const Variable& a, const Variable& b, int axes = 2);
Array tensordot(const Array& a, const Array& b, int axes = 2);
Variable tensordot(const Variable& a, const Variable& b, Ints axes_a, Ints axes_b);
Array tensordot(const Array& a, const Array& b, Ints axes_a, Ints axes_b);

// Sums of products by numpy.einsum's subscripts: F::einsum("bik,bkj->bij", {a, b}). A letter names
// an axis of an operand. Letters that are not in the output are summed; one that occurs twice in an
// operand is its diagonal. "..." stands for axes without names, which broadcast. An axis of length
// 1 broadcasts to the other axes of its letter. Without "->", the output has the axes of "..." and
// then all letters that occur once, in alphabetical order. Operands are multiplied in pairs, first
// those that leave the fewest elements. The result may share memory with an operand if nothing is
// computed. NumPy's form with lists of axes instead of subscripts does not exist. Throws
// InvalidError for wrong subscripts, ShapeError for operands that do not match.
Variable einsum(std::string_view subscripts, const VariableList& operands);
Array einsum(std::string_view subscripts, const ArrayList& operands);
// The same with separate operands, as in Chainer: F::einsum("ij,jk->ik", a, b).
template <Operand X, std::same_as<X>... Others>
X einsum(std::string_view subscripts, const X& first, const Others&... others) {
    const X operands[] = {first, others...};
    return einsum(subscripts, ListOf<X>(std::span<const X>(operands)));
}

}  // namespace catena::functions
