"""Functions of numbers with Chainer's arguments."""
from catena._core import forms
from catena.variable import as_variable

__all__ = ["absolute", "add", "einsum", "mean", "tensordot"]


def add(*xs):
    """The sum of two or more arrays."""
    if len(xs) < 2:
        raise TypeError(f"add() takes at least 2 arguments, got {len(xs)}")
    total = as_variable(xs[0])
    for x in xs[1:]:
        total = total + x
    return total


def absolute(self):
    """|x| of each element."""
    return abs(as_variable(self))


def mean(x, axis=None, weights=None, keepdims=False):
    """The mean along axes; with weights, sum(x * weights) / sum(weights)."""
    return forms.average(x, axis, weights, keepdims)


def tensordot(a, b, axes=2):
    """Sums products over pairs of axes: a number of last and first axes, or two lists of axes."""
    if isinstance(axes, int):
        return forms._tensordot_last(a, b, axes)
    axes_a, axes_b = axes
    return forms._tensordot_axes(a, b, axes_a, axes_b)


def einsum(*operands):
    """Sums of products, as ``numpy.einsum``: subscripts and operands, or operands and their axes."""
    if not operands:
        raise TypeError("einsum() takes subscripts and operands, got nothing")
    if isinstance(operands[0], str):
        return forms._einsum(operands[0], operands[1:])
    names = [_subscripts(axes) for axes in operands[1::2]]
    text = ",".join(names) if len(operands) % 2 == 0 else (
        ",".join(names) + "->" + _subscripts(operands[-1]))
    return forms._einsum(text, operands[0:len(operands) // 2 * 2:2])


def _subscripts(axes):
    return "".join("..." if axis is Ellipsis else chr(ord("a") + axis) for axis in axes)
