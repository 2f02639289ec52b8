"""Functions of numbers with Chainer's arguments."""
import math
import warnings
from typing import Any

from catena import _core
from catena.functions._plugins import F, in_dtype_of, plugins, variable, variables

__all__ = [
    "absolute", "add", "average", "batch_matmul", "bias", "clip", "einsum", "fmod", "mean", "scale",
    "swiglu", "tensordot"]


def add(*xs) -> Any:
    """The sum of arrays."""
    if not xs:
        raise TypeError("add() takes at least 1 argument, got 0")
    return sum(xs[1:], variable(xs[0], "add", "xs[0]"))


def absolute(self) -> Any:
    """|x| of each element."""
    return abs(variable(self, "absolute", "self"))


def average(x, axis=None, weights=None, keepdims=False) -> Any:
    """The mean along axes; with weights, sum(x * weights) / sum(weights)."""
    return plugins.average(x, weights, axis, keepdims)


def mean(x, axis=None, weights=None, keepdims=False) -> Any:
    """The same as ``average()``."""
    return average(x, axis, weights, keepdims)


def _operands(function, x, y):
    """x and y. An array x takes the dtype of a variable y."""
    x, y = variables(function, x=x, y=y)
    return (in_dtype_of(y, x) if y.requires_grad and not x.requires_grad else x), y


def bias(x, y, axis=1) -> Any:
    """x + y, where the axes of y are those of x from an axis on."""
    return plugins.bias(*_operands("bias", x, y), axis)


def scale(x, y, axis=1) -> Any:
    """x y, where the axes of y are those of x from an axis on."""
    return plugins.scale(*_operands("scale", x, y), axis)


def swiglu(a, b=None, axis=-1) -> Any:
    """silu(a) b; without b, a and b are the halves of `a` along an axis."""
    return plugins.swiglu_halves(a, axis) if b is None else plugins.swiglu(a, b)


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


def batch_matmul(a, b, transa=False, transb=False) -> Any:
    """The products of pairs of matrices: ``matmul()``, which replaces it. (B, n) is a batch of columns."""
    warnings.warn("batch_matmul() is deprecated: use matmul()", DeprecationWarning)
    return plugins.batch_matmul(a, b, transa, transb)


def tensordot(a, b, axes=2) -> Any:
    """Sums products over pairs of axes: a number of last and first axes, or two lists of axes."""
    if isinstance(axes, int):
        a = variable(a, "tensordot", "a")
        if not 0 <= axes <= a.ndim:
            raise _core.ShapeError(f"[tensordot] axes: expected 0 to {a.ndim}, got {axes}")
        axes = range(-axes, 0), range(axes)
    return plugins.tensordot(a, b, *axes)


def einsum(*operands) -> Any:
    """Sums of products, as ``numpy.einsum``: subscripts and operands, or operands and axes."""
    if not operands:
        raise TypeError("einsum() takes subscripts and operands, got nothing")
    if isinstance(operands[0], str):
        return plugins.einsum(operands[1:], operands[0])
    text = ",".join(map(_subscripts, operands[1::2]))
    if len(operands) % 2:
        text += "->" + _subscripts(operands[-1])
    return plugins.einsum(operands[:len(operands) // 2 * 2:2], text)


def _subscripts(axes):
    return "".join("..." if axis is Ellipsis else chr(ord("a") + axis) for axis in axes)
