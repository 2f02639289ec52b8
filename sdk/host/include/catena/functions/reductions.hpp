// Reductions along axes, and sorting, as compositions of the functions in <catena/functions.hpp>,
// which has max, min, mean, prod, var, logsumexp, argmax, any, cumsum, topk and others.
//
// axis: the axes, negative ones from the last; empty: all. All are differentiable to any order.
// They throw InvalidError for an empty handle, and the errors of the functions that they call.
#pragma once

#include <catena/functions.hpp>

#include <limits>

namespace catena::functions {

// The standard deviation, the square root of var(). The gradient is 0 where it is 0, as in PyTorch.
Variable std(const Variable& x, Ints axis = {}, bool keepdims = false, std::int64_t ddof = 0);
Array std(const Array& x, Ints axis = {}, bool keepdims = false, std::int64_t ddof = 0);

// The norm of the elements as a vector, also along two axes: for ord 2 the square root of the sum
// of squares, for 1 the sum of absolute values, for infinity the largest of them. Half precision is
// computed in float32. Squares of large or small elements neither overflow nor vanish. The gradient
// of ord 2 is 0 where the norm is 0. Throws InvalidError for another ord.
Variable norm(const Variable& x, double ord = 2, Ints axis = {}, bool keepdims = false);
Array norm(const Array& x, double ord = 2, Ints axis = {}, bool keepdims = false);

// The average, weighted if there are weights: sum(x * weights) / sum(weights). They have the shape
// of x, or the extents of `axis` in x, in its order. Works like Chainer's, which takes weights for
// one axis or all. Throws ShapeError for weights of another shape.
Variable average(const Variable& x, Ints axis = {}, const Variable& weights = {},
                 bool keepdims = false);
Array average(const Array& x, Ints axis = {}, const Array& weights = {}, bool keepdims = false);

// The elements in order along an axis. Equal elements keep their order. NaN counts as the largest.
Variable sort(const Variable& x, std::int64_t axis = -1, bool descending = false);
Array sort(const Array& x, std::int64_t axis = -1, bool descending = false);
// The indices of these elements in x, as int64.
Variable argsort(const Variable& x, std::int64_t axis = -1, bool descending = false);
Array argsort(const Array& x, std::int64_t axis = -1, bool descending = false);

}  // namespace catena::functions
