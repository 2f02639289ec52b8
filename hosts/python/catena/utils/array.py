"""Shapes of arrays and sums over them."""
import math
import warnings
from typing import Any

__all__ = ["size_of_shape", "sum_to"]


def size_of_shape(shape) -> Any:
    """The number of elements of an array of the shape."""
    return math.prod(shape)


def sum_to(x, shape) -> Any:
    """The sum of an array over the axes by which `shape` was broadcast to its shape.

    ``catena.functions.sum_to()`` does this with variables.
    """
    from catena import _core
    if isinstance(x, _core.Variable):
        raise TypeError("[sum_to] x: expected an array, got a variable, for which there is "
                        "catena.functions.sum_to()")
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(i + lead for i, n in enumerate(shape) if n == 1)
    return x.sum(axis=axes, keepdims=True).reshape(shape)


def _instead_of(name, other):
    warnings.warn(f"catena.utils.array.{name} is deprecated. Use {other} instead.",
                  DeprecationWarning, stacklevel=3)


def as_vec(x) -> Any:
    """The array with one axis."""
    _instead_of("as_vec", "ravel()")
    return x if x.ndim == 1 else x.ravel()


def as_mat(x) -> Any:
    """The array with two axes, of which the first stays."""
    _instead_of("as_mat", "reshape()")
    return x if x.ndim == 2 else x.reshape(len(x), -1)


def empty_like(x) -> Any:
    """A new array with the shape, the dtype and the kind of device of another one."""
    from catena.backend import get_array_module
    _instead_of("empty_like", "numpy.empty_like()")
    return get_array_module(x).empty_like(x)
