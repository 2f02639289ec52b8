"""Functions that rearrange elements, whose arguments C++ does not have in Chainer's form."""
from catena import _core
from catena._core import forms
from catena.functions._plugins import plugins
from catena.variable import as_variable

__all__ = ["broadcast", "cast", "copy", "identity", "pad"]


def broadcast(*args):
    """Repeats arrays to the shape to which all broadcast. Returns a tuple, or one variable."""
    results = forms._broadcast(args)
    return results if len(args) > 1 else results[0]


def cast(x, typ):
    """The elements in another dtype. Floats are truncated towards zero for integer dtypes."""
    return plugins.cast(x, typ)


def copy(x, dst):
    """A copy on a device: a ``catena.Device``, its name, or the number of a GPU; -1 is the host."""
    if isinstance(dst, int):
        return forms._copy_to_gpu(x, dst)
    return forms._copy_to_device(x, dst if isinstance(dst, _core.Device) else _core.Device(dst))


def identity(*inputs):
    """Returns its inputs: one variable, or a tuple of several."""
    results = tuple(plugins.identity(x) for x in inputs)
    return results[0] if len(results) == 1 else results


def pad(x, pad_width, mode, **keywords):
    """Adds elements before and after each axis, as ``numpy.pad``.

    Args:
        x: the array.
        pad_width: a number, (before, after), or such a pair for each axis.
        mode: "constant", "edge", "reflect", "symmetric" or "wrap".
        constant_values: the number for "constant", 0 by default.
    """
    value = keywords.pop("constant_values", 0)
    if keywords:
        raise TypeError(f"[pad] arguments: expected constant_values, got {', '.join(keywords)}")
    if not isinstance(pad_width, int):
        ndim = len(getattr(x, "shape", ()))
        widths = [[each, each] if isinstance(each, int) else list(each) * (3 - len(each))
                  for each in (pad_width if _is_nested(pad_width) else [pad_width])]
        pad_width = sum(widths * (ndim if len(widths) == 1 else 1), [])
    return forms._pad(as_variable(x), pad_width, mode, value)


def _is_nested(pad_width):
    return any(not isinstance(each, int) for each in pad_width)
