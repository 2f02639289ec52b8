"""Functions of numbers with Chainer's arguments."""
import math
import warnings
from typing import Any

from catena import _core
from catena import functions as F
from catena._core import forms
from catena.functions._plugins import plugins, variable

__all__ = [
    "absolute", "add", "batch_l2_norm_squared", "batch_matmul", "bias", "clip", "einsum", "fmod",
    "linear_interpolate", "mean", "scale", "squared_difference", "tensordot"]


def add(*xs) -> Any:
    """The sum of arrays."""
    if not xs:
        raise TypeError("add() takes at least 1 argument, got 0")
    total = variable(xs[0], "add", "xs[0]")
    for x in xs[1:]:
        total = total + x
    return total


def absolute(self) -> Any:
    """|x| of each element."""
    return abs(variable(self, "absolute", "self"))


def squared_difference(x1, x2) -> Any:
    """(x1 - x2)^2 of each element."""
    return F.squared_error(x1, x2)


def mean(x, axis=None, weights=None, keepdims=False) -> Any:
    """The mean along axes; with weights, sum(x * weights) / sum(weights)."""
    return forms.average(x, axis, weights, keepdims)


def clip(x, x_min, x_max) -> Any:
    """x, limited to x_min <= y <= x_max; None is no limit."""
    if x_min is None and x_max is None:
        raise ValueError("[clip] x_min, x_max: expected a limit, got None and None")
    lower, upper = (-math.inf if x_min is None else x_min), (math.inf if x_max is None else x_max)
    if lower >= upper:
        raise ValueError(f"[clip] x_min, x_max: expected x_min < x_max, got {x_min} and {x_max}")
    return plugins.clip(x, lower, upper)


def fmod(x, divisor):
    """The remainder of x / divisor, with the sign of x."""
    x = variable(x, "fmod")
    if isinstance(divisor, (int, float)):
        if isinstance(divisor, float) and x.dtype.kind != "f":
            x = F.cast(x, "float32")
        divisor = F.full((), divisor, x.dtype, x.device)
    return plugins.fmod(x, divisor)


def linear_interpolate(p, x, y) -> Any:
    """p x + (1 - p) y."""
    p = variable(p, "linear_interpolate", "p")
    return p * x + (1 - p) * y


def _aligned(function, x, y, axis):
    """y with axes of length 1 such that its own begin at an axis of x."""
    y = variable(y, function, "y")
    if not 0 <= axis <= x.ndim - y.ndim:
        raise _core.ShapeError(f"[{function}] axis: expected one of x {x.shape} from which on it has "
                               f"the axes of y {y.shape}, got {axis}")
    return y.reshape((1,) * axis + y.shape + (1,) * (x.ndim - axis - y.ndim))


def bias(x, y, axis=1) -> Any:
    """x + y, where the axes of y are those of x from an axis on."""
    y = _aligned("bias", variable(x, "bias"), y, axis)
    return x + y  # an array x takes the dtype of y


def scale(x, y, axis=1) -> Any:
    """x y, where the axes of y are those of x from an axis on."""
    y = _aligned("scale", variable(x, "scale"), y, axis)
    return x * y  # an array x takes the dtype of y


def batch_matmul(a, b, transa=False, transb=False) -> Any:
    """The products of pairs of matrices: ``matmul()``, which replaces it. (B, n) is a batch of columns."""
    warnings.warn("batch_matmul() is deprecated: use matmul()", DeprecationWarning)
    return forms._batch_matmul(a, b, transa, transb)


def batch_l2_norm_squared(x) -> Any:
    """The sum of the squares of each sample x[i]."""
    x = variable(x, "batch_l2_norm_squared")
    if x.ndim < 2:
        raise _core.ShapeError(
            f"[batch_l2_norm_squared] x: expected (N, ...), got the shape {x.shape}")
    return F.sum(x**2, tuple(range(1, x.ndim)))


def tensordot(a, b, axes=2) -> Any:
    """Sums products over pairs of axes: a number of last and first axes, or two lists of axes."""
    if isinstance(axes, int):
        return forms._tensordot_last(a, b, axes)
    axes_a, axes_b = axes
    return forms._tensordot_axes(a, b, axes_a, axes_b)


def einsum(*operands) -> Any:
    """Sums of products, as ``numpy.einsum``: subscripts and operands, or operands and axes."""
    if not operands:
        raise TypeError("einsum() takes subscripts and operands, got nothing")
    if isinstance(operands[0], str):
        return forms._einsum(operands[0], operands[1:])
    text = ",".join(map(_subscripts, operands[1::2]))
    if len(operands) % 2:
        text += "->" + _subscripts(operands[-1])
    return forms._einsum(text, operands[:len(operands) // 2 * 2:2])


def _subscripts(axes):
    return "".join("..." if axis is Ellipsis else chr(ord("a") + axis) for axis in axes)
