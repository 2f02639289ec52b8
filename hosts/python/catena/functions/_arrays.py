"""Functions that rearrange and select elements, with Chainer's arguments."""
import numbers
from typing import Any

from catena import _core
from catena._core import forms
from catena.functions._plugins import F, ends_of, indices, plugins, variable
from catena.variable import as_variable

__all__ = [
    "broadcast", "cast", "gather", "identity", "index_add", "pad", "scatter", "transpose_sequence"]


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
    results = tuple(plugins.identity(x) for x in inputs)
    return results[0] if len(results) == 1 else results


def pad(x, pad_width, mode, **keywords) -> Any:
    """Adds elements before and after each axis, as ``numpy.pad``.

    Args:
        x: the array.
        pad_width: a number, (before, after), or such a pair for each axis.
        mode: "constant", "edge", "reflect", "symmetric" or "wrap".
        constant_values: the number for "constant", 0 by default; or numbers in the forms of pad_width.
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
    x = F.take(x, indices(sum(steps, []), x.device), 0)
    return F.split_axis(x, ends_of(map(len, steps))[:-1], 0)
