"""Functions that rearrange and select elements, with Chainer's arguments."""
import numbers
from typing import Any

from catena import _core
from catena import functions as F
from catena._core import forms
from catena.functions._plugins import (
    check_choice, ends_of, indices, plugins, require_from_1, variable)
from catena.variable import as_variable

__all__ = [
    "as_strided", "broadcast", "cast", "copy", "depth2space", "diagonal", "identity", "pad", "resize_images",
    "space2depth", "spatial_transformer_grid", "spatial_transformer_sampler", "transpose_sequence"]


def as_strided(x, shape, strides, storage_offset=None) -> Any:
    """A copy of the elements at storage_offset + sum(index * strides) of the flattened x.

    Args:
        x: the array.
        shape: the shape of the result.
        strides: the distance of neighbouring elements along each axis, in elements.
        storage_offset: the place of the first element; None: 0.
    """
    x = variable(x, "as_strided")
    place = F.full((), storage_offset or 0, "int64", x.device)
    for n, step in zip(shape, strides):
        place = F.expand_dims(place, -1) + F.arange(n, device=x.device) * step
    return F.take(F.flatten(x), place, 0)


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


def copy(x, dst) -> Any:
    """A copy on a device: a ``catena.Device``, its name, or the number of a GPU; -1 is the host."""
    if isinstance(dst, int):
        return forms._copy_to_gpu(x, dst)
    return forms._copy_to_device(x, dst if isinstance(dst, _core.Device) else _core.Device(dst))


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
        return forms._pad(x, pad_width, mode, value)
    if isinstance(pad_width, numbers.Number):
        pad_width = [pad_width] * (2 * x.ndim)
    values = _pairs(value, x.ndim)
    if len(pad_width) != 2 * x.ndim or len(values) != 2 * x.ndim:
        raise ValueError(f"[pad] pad_width, constant_values: expected pairs for {x.ndim} axes, got "
                         f"{len(pad_width) // 2} and {len(values) // 2}")
    for i, (width, value) in enumerate(zip(pad_width, values)):
        x = forms._pad(x, [width * (i == k) for k in range(2 * x.ndim)], mode, value)
    return x


def _pairs(values, ndim):
    """What stands before and after each axis, as a flat list: from (before, after) or pairs."""
    values = list(values)
    if all(isinstance(each, numbers.Number) for each in values):
        values = [values]
    pairs = [(each, each) if isinstance(each, numbers.Number) else tuple(each) * (3 - len(each))
             for each in values]
    return [n for pair in pairs * (ndim if len(pairs) == 1 else 1) for n in pair]


def depth2space(X, r) -> Any:
    """Moves channels to places: (N, r r C, H, W) becomes (N, C, r H, r W)."""
    X = variable(X, "depth2space", "X", 4)
    require_from_1("depth2space", r=r)
    n, c, h, w = X.shape
    x = X.reshape((n, r, r, c // r**2, h, w))
    return x.transpose(0, 3, 4, 1, 5, 2).reshape(n, c // r**2, r * h, r * w)


def space2depth(X, r) -> Any:
    """Moves places to channels: (N, C, r H, r W) becomes (N, r r C, H, W)."""
    X = variable(X, "space2depth", "X", 4)
    require_from_1("space2depth", r=r)
    n, c, h, w = X.shape
    x = X.reshape((n, c, h // r, r, w // r, r))
    return x.transpose(0, 3, 5, 1, 2, 4).reshape(n, r**2 * c, h // r, w // r)


def diagonal(x, offset=0, axis1=0, axis2=1) -> Any:
    """The diagonal of two axes, as a new last axis."""
    x = F.moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    first = offset if offset >= 0 else -offset * columns
    n = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    x = x.reshape(x.shape[:-2] + (rows * columns,))
    return x[..., first:first + n * (columns + 1):columns + 1][..., :n]


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


def resize_images(x, output_shape, *, mode="bilinear", align_corners=True) -> Any:
    """Images (N, C, H, W) in another size.

    Args:
        x: the images.
        output_shape: the new height and width.
        mode: "bilinear" or "nearest".
        align_corners: whether the first and the last pixels of a row stay at the corners.
    """
    check_choice("resize_images", "mode", mode, ("bilinear", "nearest"))
    x = variable(x, "resize_images", "x", 4)
    require_from_1("resize_images", output_shape=min(output_shape))
    for axis, n in zip((2, 3), output_shape):
        x = _resized(x, axis, n, mode, align_corners)
    return x


def _resized(x, axis, n, mode, align_corners):
    size = x.shape[axis]
    if mode == "nearest":
        place = F.floor(F.arange(n, dtype="float64", device=x.device) * (size / n))
        return F.take(x, F.cast(F.minimum(place, size - 1), "int64"), axis)
    if align_corners:
        place = F.linspace(0, size - 1, n, dtype="float64", device=x.device)
    else:
        place = (F.arange(n, dtype="float64", device=x.device) + 0.5) * (size / n) - 0.5
        place = F.maximum(place, 0)
    first = F.floor(place)
    weight = F.cast(place - first, x.dtype).reshape((n,) + (1,) * (3 - axis))
    after = F.cast(F.minimum(first + 1, size - 1), "int64")
    return (F.take(x, F.cast(first, "int64"), axis) * (1 - weight)
            + F.take(x, after, axis) * weight)


def spatial_transformer_grid(theta, output_shape) -> Any:
    """Sampling points (N, 2, H, W) from affine transformations (N, 2, 3) of an image in [-1, 1]."""
    theta = variable(theta, "spatial_transformer_grid", "theta", 3)
    h, w = output_shape
    xs = F.linspace(-1, 1, w, dtype=theta.dtype, device=theta.device)
    ys = F.linspace(-1, 1, h, dtype=theta.dtype, device=theta.device)
    points = F.stack([F.broadcast_to(xs, (h, w)), F.broadcast_to(ys.reshape(h, 1), (h, w)),
                      F.full_like(F.broadcast_to(xs, (h, w)), 1)])
    return F.matmul(theta, points.reshape(3, h * w)).reshape(len(theta), 2, h, w)


def spatial_transformer_sampler(x, grid) -> Any:
    """The pixels of images at points, with bilinear interpolation; zero outside the images.

    Args:
        x: images (N, C, H, W).
        grid: points (N, 2, h, w): x and y coordinates, from -1 to 1 within an image.
    """
    x = variable(x, "spatial_transformer_sampler", "x", 4)
    grid = variable(grid, "spatial_transformer_sampler", "grid", 4)
    n, c, h, w = x.shape
    padded = F.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "constant")
    point = grid.reshape(n, 2, -1)
    sides = []
    for axis, size in ((0, w), (1, h)):
        place = F.clip((point[:, axis] + 1) * ((size - 1) / 2) + 1, 0., float(size + 1))
        first = F.minimum(F.floor(place), float(size))
        index = F.cast(F.where(F.isnan(first), 0, first), "int64")
        sides.append([(index, first + 1 - place), (index + 1, place - first)])
    batch = F.arange(n, device=x.device).reshape(n, 1)
    y = sum(F.get_item(padded, (batch, slice(None), v, u)) * (u_weight * v_weight)[:, :, None]
            for v, v_weight in sides[1] for u, u_weight in sides[0])
    return y.reshape(n, *grid.shape[2:], c).transpose(0, 3, 1, 2)
