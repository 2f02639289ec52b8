// Functions that rearrange elements, with the names and defaults of Chainer and NumPy. All are
// differentiable to any order, take every dtype and count negative axes from the last. Reshaped
// results, such as those of expand_dims(), squeeze() and flatten(), share the memory of x; so may
// those of moveaxis(), if the order of the elements does not change. Results may also be x itself.
// They throw ShapeError for shapes and axes that do not fit, InvalidError for empty handles.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/lists.hpp>

#include <string_view>

namespace catena::functions {

#define CATENA_SHAPES(X)                                                                          \
    /* Joins arrays along an axis. Dtypes are promoted, as in operators.hpp. */                   \
    X concat(const ListOf<X>& xs, std::int64_t axis = 1);                                         \
    /* Joins arrays of one shape along a new axis. */                                             \
    X stack(const ListOf<X>& xs, int axis = 0);                                                   \
    /* Joins along axis 0, 1 or 2. Arrays with fewer than 2, 1 or 3 axes get more, as in NumPy: \
       (n) becomes (1, n) in vstack() and (1, n, 1) in dstack(); hstack() joins (n) along 0. */ \
    X vstack(const ListOf<X>& xs);                                                                \
    X hstack(const ListOf<X>& xs);                                                                \
    X dstack(const ListOf<X>& xs);                                                                \
    /* The parts along an axis, without that axis: the inverse of stack(). */                     \
    std::vector<X> separate(const X& x, int axis = 0);                                            \
    /* Repeats arrays so that all have the shape to which they broadcast. */                      \
    std::vector<X> broadcast(const ListOf<X>& xs);                                                \
    /* Stacks sequences, which have the time as axis 0, in shape (count, length, ...). Shorter \
       ones end with the number `padding`. length: -1 is that of the longest. */  \
    X pad_sequence(const ListOf<X>& xs, std::int64_t length = -1, double padding = 0);            \
    /* Inserts axes of length 1; they are axes of the result. */                                  \
    X expand_dims(const X& x, Ints axis);                                                         \
    /* Removes all axes of length 1, or the given ones, whose length must be 1. */                \
    X squeeze(const X& x);                                                                        \
    X squeeze(const X& x, Ints axis);                                                             \
    X flatten(const X& x);                                                                        \
    /* Moves axes to other positions; the others keep their order. */                             \
    X moveaxis(const X& x, Ints source, Ints destination);                                        \
    X swapaxes(const X& x, int axis1, int axis2);                                                 \
    /* Moves an axis back until it is before axis `start`. */                                     \
    X rollaxis(const X& x, int axis, int start = 0);                                              \
    /* Reverses the order along axes; flip(x) along all, fliplr() along 1, flipud() along 0. */   \
    X flip(const X& x);                                                                           \
    X flip(const X& x, Ints axis);                                                                \
    X fliplr(const X& x);                                                                         \
    X flipud(const X& x);                                                                         \
    /* Moves elements by `shift` places along axes; those moved beyond the end continue at the  \
       beginning. Without axes, it rolls the flattened array. One shift applies to all axes. */ \
    X roll(const X& x, std::int64_t shift);                                                       \
    X roll(const X& x, Ints shift, Ints axis);                                                    \
    /* Repeats the whole array `reps` times along each axis; fewer numbers are for the last     \
       axes, more of them add axes. */ \
    X tile(const X& x, Ints reps);                                                                \
    /* Repeats each element along an axis, or of the flattened array. repeats: a number, or one \
       for each element of the axis. */ \
    X repeat(const X& x, Ints repeats);                                                           \
    X repeat(const X& x, Ints repeats, int axis);                                                 \
    /* Adds elements before and after each axis. pad_width: a number, {before, after} for all   \
       axes, or {before, after} of each axis in turn. mode: "constant", which is `value`;       \
       "edge", "reflect", "symmetric" or "wrap", as numpy.pad(). InvalidError: another mode or  \
       a negative width. */ \
    X pad(const X& x, Ints pad_width, std::string_view mode = "constant", double value = 0);      \
    /* x with zeros above or below the k-th diagonal of its last two axes. */                     \
    X tril(const X& x, int k = 0);                                                                \
    X triu(const X& x, int k = 0);
CATENA_SHAPES(Variable)
CATENA_SHAPES(Array)
#undef CATENA_SHAPES

}  // namespace catena::functions
