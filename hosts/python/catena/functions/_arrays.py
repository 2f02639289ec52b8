"""Functions that rearrange, select and pool elements, with Chainer's arguments."""
import numbers
from typing import Any

import numpy

from catena import _core
from catena._core import forms
from catena.functions._plugins import F, check_choice, plugins, split, variable
from catena.variable import as_variable

__all__ = [
    "average_pooling_1d", "average_pooling_3d", "average_pooling_nd", "broadcast", "cast", "gather",
    "identity", "index_add", "max_pooling_1d", "max_pooling_2d", "max_pooling_3d", "max_pooling_nd",
    "pad", "scatter", "transpose_sequence"]


def broadcast(*args) -> Any:
    """Repeats arrays to the shape to which all broadcast. Returns a tuple, or one variable."""
    if not args:
        raise _core.ShapeError("[broadcast] xs: expected at least one array, got none")
    results = forms._broadcast(args)
    return results if len(args) > 1 else results[0]


def cast(x, typ) -> Any:
    """The elements in another dtype. Floats are truncated towards zero for integer dtypes.

    A variable that has the dtype is returned itself, as in Chainer.
    """
    if getattr(x, "dtype", None) == _core.dtype(typ):
        return as_variable(x)
    return plugins.cast(x, typ)


def gather(x, axis, indices) -> Any:
    """Elements at indices along an axis, as ``torch.gather``: see ``catena.gather``."""
    return plugins.gather(x, indices, axis)


def scatter(x, axis, indices, src) -> Any:
    """x, but with elements replaced at indices along an axis, as ``torch.scatter``."""
    return plugins.scatter(x, indices, src, axis)


def index_add(x, axis, indices, src) -> Any:
    """x plus slices of src at indices along an axis, as ``torch.index_add``."""
    return plugins.index_add(x, indices, src, axis)


def identity(*inputs) -> Any:
    """Returns its inputs: one variable, or a tuple of several."""
    results = tuple(map(plugins.identity, inputs))
    return results[0] if len(results) == 1 else results


def pad(x, pad_width, mode, **keywords) -> Any:
    """Adds elements before and after each axis, as ``numpy.pad``.

    pad_width and the keyword constant_values are a number, (before, after), or such a pair for each axis.
    """
    value = keywords.pop("constant_values", 0)
    if keywords:
        raise ValueError(f"[pad] arguments: expected constant_values, got {', '.join(keywords)}")
    x = variable(x, "pad")
    if not isinstance(pad_width, numbers.Number):
        pad_width = _pairs(pad_width, x.ndim)
    if isinstance(value, numbers.Number):
        return plugins.pad(x, pad_width, mode, value)
    if isinstance(pad_width, numbers.Number):
        pad_width = [pad_width] * (2 * x.ndim)
    values = _pairs(value, x.ndim)
    if len(pad_width) != 2 * x.ndim or len(values) != 2 * x.ndim:
        raise ValueError(f"[pad] pad_width, constant_values: expected pairs for {x.ndim} axes, got "
                         f"{len(pad_width) // 2} and {len(values) // 2}")
    for i, (width, value) in enumerate(zip(pad_width, values)):
        x = plugins.pad(x, [width * (i == k) for k in range(2 * x.ndim)], mode, value)
    return x


def _pairs(values, ndim):
    """Flattens widths or pairs (before, after), one for all axes or for each, to a list."""
    values = list(values)
    if all(isinstance(each, numbers.Number) for each in values):
        values = [values]
    pairs = [(each, each) if isinstance(each, numbers.Number) else tuple(each) * (3 - len(each))
             for each in values]
    return [n for pair in pairs * (ndim if len(pairs) == 1 else 1) for n in pair]


def transpose_sequence(xs) -> Any:
    """Makes sequences of steps from sequences that are sorted by length, the longest first.

    Element i of result t is element t of sequence i.
    """
    lengths = [len(x) for x in xs]
    if not any(lengths):
        return ()
    if lengths != sorted(lengths, reverse=True):
        raise _core.ShapeError(
            f"[transpose_sequence] xs: expected sequences sorted by length, got {lengths}")
    starts = [sum(lengths[:i]) for i in range(len(xs))]
    steps = [[start + t for start, n in zip(starts, lengths) if n > t] for t in range(lengths[0])]
    x = F.concat(xs, 0)
    order = _core.Array(numpy.array(sum(steps, []), "int64"), device=x.device)
    return split(F.take(x, as_variable(order), 0), map(len, steps))


def _max_pooling(name):
    def pooling(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False) -> Any:
        """The largest element of each window of x (N, C, ...).

        ksize, stride and pad are numbers, or one for each axis; the stride is ksize by default.
        ``cover_all`` also uses windows that extend beyond the padded image. ``return_indices`` returns
        the places of the maxima in their windows, too: an array, only for images (N, C, H, W).
        """
        if not return_indices:
            return getattr(plugins, name)(x, ksize, stride, pad, cover_all)
        y, indices = _core._all_outputs("catena.max_pooling_2d")(x, ksize, stride, pad, cover_all)
        return y, plugins.cast(indices, "int64").array
    pooling.__name__ = pooling.__qualname__ = name
    return pooling


def _average_pooling(name):
    def pooling(x, ksize, stride=None, pad=0, pad_value=0) -> Any:
        """The mean of each window of x (N, C, ...); ``pad_value`` None leaves the padding out of it.

        ksize, stride and pad are numbers, or one for each axis; the stride is ksize by default.
        """
        check_choice(name, "pad_value", pad_value, (0, None))
        return getattr(plugins, name)(x, ksize, stride, pad, pad_value is not None)
    pooling.__name__ = pooling.__qualname__ = name
    return pooling


max_pooling_1d = _max_pooling("max_pooling_1d")
max_pooling_2d = _max_pooling("max_pooling_2d")
max_pooling_3d = _max_pooling("max_pooling_3d")
max_pooling_nd = _max_pooling("max_pooling_nd")
average_pooling_1d = _average_pooling("average_pooling_1d")
average_pooling_3d = _average_pooling("average_pooling_3d")
average_pooling_nd = _average_pooling("average_pooling_nd")
