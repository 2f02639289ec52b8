"""Convolutions and pooling with Chainer's arguments, along any number of axes."""
import math
from typing import Any

from catena import _core
from catena import functions as F
from catena._core import forms
from catena.functions._plugins import (
    as_tuple, check_choice, in_dtype_of, plugins, require_from_1, variable)

__all__ = [
    "average_pooling_1d", "average_pooling_3d", "average_pooling_nd", "convolution_1d",
    "convolution_2d", "convolution_3d", "convolution_nd", "deconvolution_1d", "deconvolution_2d",
    "deconvolution_3d", "deconvolution_nd", "deformable_convolution_2d_sampler",
    "depthwise_convolution_2d", "dilated_convolution_2d", "im2col", "local_convolution_2d",
    "max_pooling_1d", "max_pooling_2d", "max_pooling_3d", "max_pooling_nd", "shift",
    "spatial_pyramid_pooling_2d", "unpooling_1d", "unpooling_2d", "unpooling_3d", "unpooling_nd",
    "upsampling_2d"]


def convolution_2d(x, W, b=None, stride=1, pad=0, cover_all=False, dilate=1, groups=1) -> Any:
    """The cross-correlation of images with filters, plus b.

    Args:
        x: images (N, C, H, W).
        W: filters (out, C / groups, kh, kw).
        b: (out,), or None.
        stride, pad, dilate: numbers, or pairs (y, x).
        cover_all: whether to cover all of the padded image.
        groups: the channels and the filters form so many groups, which are convolved separately.
    """
    if dilate != 1:
        W = _dilated(W, dilate, "convolution_2d")
    return _in_groups(groups, b, x, W, lambda x, W, b: plugins.convolution_2d(
        x, W, b, stride, pad, cover_all))


def deconvolution_2d(x, W, b=None, stride=1, pad=0, outsize=None, dilate=1, groups=1) -> Any:
    """The transposed convolution, plus b: the sum of the filters, weighted with x, everywhere.

    Args:
        x: images (N, C, H, W).
        W: filters (C, out / groups, kh, kw).
        b: (out,), or None.
        stride, pad, dilate: numbers, or pairs (y, x).
        outsize: the height and width of the result; None: the smallest that fits.
        groups: the channels form so many groups, which are processed separately.
    """
    if dilate != 1:
        W = _dilated(W, dilate, "deconvolution_2d")
    return _in_groups(groups, b, x, W, lambda x, W, b: plugins.deconvolution_2d(
        x, W, b, stride, pad, outsize))


def _in_groups(groups, b, x, W, call):
    if groups == 1:
        return call(x, W, b)
    parts = zip(F.split_axis(x, groups, 1), F.split_axis(W, groups, 0))
    return _with_bias(F.concat([call(x, W, None) for x, W in parts], 1), b)


def _with_bias(y, b):
    return y if b is None else y + in_dtype_of(
        y, F.reshape(b, (1, y.shape[1]) + (1,) * (y.ndim - 2)))


def _dilated(W, dilate, function):
    dilate = as_tuple(dilate, 2, function, "dilate")
    if min(dilate) < 1:
        raise ValueError(f"[{function}] dilate: expected 1 or more, got {dilate}")
    return _stretched(variable(W, function, "W", 4), dilate)


def _stretched(x, steps):
    """x with zeros between its elements along the axes from 2 on."""
    for axis, step in enumerate(steps, 2):
        if step > 1 and x.shape[axis] > 0:
            before, n, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1:]
            x = F.pad(x.reshape(*before, n, 1, *after),
                      [(0, (step - 1) * (i == axis + 1)) for i in range(x.ndim + 1)], "constant")
            x = x.reshape(*before, n * step, *after)[_along(axis, slice((n - 1) * step + 1))]
    return x


def _along(axis, key):
    return (slice(None),) * axis + (key,)


def _out_size(size, k, s, p, cover_all=False):
    """The number of windows along an axis; 0 if none fits."""
    return max(0, (size + 2 * p - k + (s - 1 if cover_all else 0)) // s + 1)


def convolution_nd(x, W, b=None, stride=1, pad=0, cover_all=False, dilate=1, groups=1) -> Any:
    """``convolution_2d()`` along any number of axes: x is (N, C, ...), W (out, C / groups, ...)."""
    x = variable(x, "convolution_nd")
    W = variable(W, "convolution_nd", "W", x.ndim)
    n = x.ndim - 2
    stride, pad, dilate = _tuples("convolution_nd", n, stride=stride, pad=pad, dilate=dilate)
    if 0 in W.shape[2:]:
        raise _core.ShapeError("[convolution_nd] W.shape[2:]: expected at least 1 along each axis, "
                               f"got {W.shape[2:]}")
    if n == 2:
        return convolution_2d(x, W, b, stride, pad, cover_all, dilate, groups)
    if n == 1:
        y = convolution_2d(F.expand_dims(x, 2), F.expand_dims(W, 2), b, (1,) + stride, (0,) + pad,
                           cover_all, (1,) + dilate, groups)
        return F.squeeze(y, 2)
    # the sum over the elements of the filter along axis 2, with the other axes as images
    s, p, d, size = stride[0], pad[0], dilate[0], x.shape[2]
    out = _out_size(size, (W.shape[2] - 1) * d + 1, s, p, cover_all)
    reach = (W.shape[2] - 1) * d + s * (out - 1) + 1
    x = F.pad(x, [(0, 0), (0, 0), (p, max(0, reach - p - size))] + [(0, 0)] * (n - 1), "constant")
    y = 0
    for i in range(W.shape[2]):
        at = F.swapaxes(x[:, :, i * d:i * d + s * (out - 1) + 1:s], 1, 2)
        y += convolution_nd(at.reshape(len(x) * out, *at.shape[2:]), W[:, :, i], None, stride[1:],
                            pad[1:], cover_all, dilate[1:], groups)
    return _with_bias(F.swapaxes(y.reshape(len(x), out, *y.shape[1:]), 1, 2), b)


def deconvolution_nd(x, W, b=None, stride=1, pad=0, outsize=None, dilate=1, groups=1) -> Any:
    """``deconvolution_2d()`` along any axes: x is (N, C, ...), W (C, out / groups, ...)."""
    x = variable(x, "deconvolution_nd")
    W = variable(W, "deconvolution_nd", "W", x.ndim)
    n = x.ndim - 2
    stride, pad, dilate = _tuples("deconvolution_nd", n, stride=stride, pad=pad, dilate=dilate)
    reach = [(k - 1) * d + 1 for k, d in zip(W.shape[2:], dilate)]
    sizes = as_tuple(outsize, n, "deconvolution_nd", "outsize") if outsize is not None else [
        s * (m - 1) + k - 2 * p for m, k, s, p in zip(x.shape[2:], reach, stride, pad)]
    if n == 2:
        return deconvolution_2d(x, W, b, stride, pad, outsize, dilate, groups)
    if n == 1:
        y = deconvolution_2d(F.expand_dims(x, 2), F.expand_dims(W, 2), b, (1,) + stride, (0,) + pad,
                             (1,) + tuple(sizes), (1,) + dilate, groups)
        return F.squeeze(y, 2)
    # a convolution of x, with zeros between and around its elements, with the reversed filters
    x = _stretched(x, stride)
    widths = [(k - 1 - p, size + p - m) for size, k, p, m in zip(sizes, reach, pad, x.shape[2:])]
    x = F.pad(x, [(0, 0), (0, 0)] + [(max(0, a), max(0, b)) for a, b in widths], "constant")
    x = x[(slice(None),) * 2 + tuple(slice(max(0, -a), min(0, b) or None) for a, b in widths)]
    W = F.flip(W, tuple(range(2, W.ndim)))
    return _in_groups(groups, b, x, W, lambda x, W, b: convolution_nd(
        x, F.swapaxes(W, 0, 1), b, 1, 0, False, dilate))


def _tuples(function, n, **arguments):
    """One number for each of n axes, for each argument. Those but pad are at least 1."""
    for name, value in arguments.items():
        arguments[name] = as_tuple(value, n, function, name)
        if name != "pad":
            require_from_1(function, **{name: min(arguments[name], default=1)})
    return list(arguments.values())


def _of_axes(function, n, name):
    """The function for n axes."""
    def limited(x, *args, **kwargs):
        return function(variable(x, name, "x", n + 2), *args, **kwargs)
    limited.__name__ = limited.__qualname__ = name
    limited.__doc__ = f"``{function.__name__}()`` along {n} {'axis' if n == 1 else 'axes'}."
    limited.__wrapped__ = function  # inspect.signature() shows its arguments
    return limited


def depthwise_convolution_2d(x, W, b=None, stride=1, pad=0) -> Any:
    """The convolution of each channel with filters of its own.

    Args:
        x: images (N, C, H, W).
        W: filters (multiplier, C, kh, kw).
        b: (multiplier C,), or None.
        stride, pad: numbers, or pairs (y, x).
    """
    multiplier, channels, kh, kw = W.shape
    W = F.transpose(W, (1, 0, 2, 3)).reshape(multiplier * channels, 1, kh, kw)
    return convolution_2d(x, W, b, stride, pad, groups=channels)


def dilated_convolution_2d(x, W, b=None, stride=1, pad=0, dilate=1, cover_all=False) -> Any:
    """``convolution_2d()`` with filters whose elements are `dilate` pixels apart."""
    return convolution_2d(x, W, b, stride, pad, cover_all, dilate)


def im2col(x, ksize, stride=1, pad=0, cover_all=False, dilate=1) -> Any:
    """The windows of images as columns: (N, C kh kw, windows along y, windows along x)."""
    x = variable(x, "im2col", "x", 4)
    steps = _tuples("im2col", 2, ksize=ksize, stride=stride, pad=pad, dilate=dilate)
    columns, outs, widths = [], [], [(0, 0), (0, 0)]
    for size, k, s, p, d in zip(x.shape[2:], *steps):
        out = _out_size(size, (k - 1) * d + 1, s, p, cover_all)
        outs.append(out)
        widths.append((p, max(0, (k - 1) * d + s * (out - 1) + 1 - size - p)))
    (kh, kw), (sy, sx), _, (dy, dx) = steps
    shape = len(x), x.shape[1] * kh * kw, *outs
    x = F.pad(x, widths, "constant")
    for i in range(kh):
        for j in range(kw):
            columns.append(x[:, :, i * dy:i * dy + sy * (outs[0] - 1) + 1:sy,
                             j * dx:j * dx + sx * (outs[1] - 1) + 1:sx])
    return F.stack(columns, 2).reshape(shape)


def local_convolution_2d(x, W, b=None, stride=1) -> Any:
    """A convolution with other filters at each position.

    Args:
        x: images (N, C, H, W).
        W: filters (out, out height, out width, C, kh, kw).
        b: (out, out height, out width), or None.
        stride: a number, or a pair (y, x).
    """
    x = variable(x, "local_convolution_2d", "x", 4)
    W = variable(W, "local_convolution_2d", "W", 6)
    out, oh, ow = W.shape[:3]
    columns = im2col(x, W.shape[4:], stride)[:, :, :oh, :ow]
    size = math.prod(W.shape[3:])
    columns = columns.reshape(len(x), size, oh * ow).transpose(2, 0, 1)
    y = F.matmul(columns, W.reshape(out, oh * ow, size).transpose(1, 2, 0))
    y = in_dtype_of(x, y.transpose(1, 2, 0).reshape(len(x), out, oh, ow))
    return y if b is None else y + in_dtype_of(x, variable(b, "local_convolution_2d", "b"))


def shift(x, ksize=3, dilate=1) -> Any:
    """Moves groups of channels by different steps, as a convolution with one 1 in each filter.

    Args:
        x: images (N, C, H, W). The channels form kh kw groups.
        ksize: the size of the filters that this stands for: odd; a number, or a pair (y, x).
        dilate: the length of a step: a number, or a pair (y, x).
    """
    x = variable(x, "shift", "x", 4)
    (kh, kw), (dy, dx) = _tuples("shift", 2, ksize=ksize, dilate=dilate)
    if kh % 2 != 1 or kw % 2 != 1:
        raise ValueError(f"[shift] ksize: expected odd numbers, got {(kh, kw)}")
    groups = kh * kw
    if x.shape[1] < groups:
        raise _core.ShapeError(
            f"[shift] x: expected (N, C, H, W) with C >= {groups}, got {x.shape}")
    py, px = kh // 2 * abs(dy), kw // 2 * abs(dx)
    size, (h, w) = x.shape[1] // groups, x.shape[2:]
    padded = F.pad(x, ((0, 0), (0, 0), (py, py), (px, px)), "constant")
    order = list(range(groups))
    order[groups // 2], order[-1] = order[-1], order[groups // 2]
    parts = []
    for i, place in enumerate(order):
        y, x = py - (place // kw - kh // 2) * dy, px - (place % kw - kw // 2) * dx
        last = (i + 1) * size if i + 1 < groups else None
        parts.append(padded[:, i * size:last, y:y + h, x:x + w])
    return F.concat(parts, 1)


def deformable_convolution_2d_sampler(x, offset, W, b=None, stride=1, pad=0) -> Any:
    """A convolution whose filters' elements are moved by offsets in pixels.

    Args:
        x: images (N, C, H, W).
        offset: (N, 2 kh kw, out height, out width): those along x, then those along y.
        W: filters (out, C, kh, kw).
        b: (out,), or None.
        stride, pad: numbers, or pairs (y, x).
    """
    function = "deformable_convolution_2d_sampler"
    x, offset, W = (variable(each, function, name, 4)
                    for each, name in ((x, "x"), (offset, "offset"), (W, "W")))
    (out, c, kh, kw), (n, _, h, w) = W.shape, x.shape
    (sy, sx), (ph, pw) = _tuples(function, 2, stride=stride, pad=pad)
    if offset.shape[1] != 2 * kh * kw:
        raise ValueError(f"[{function}] offset: expected {2 * kh * kw} channels, got the shape "
                         f"{offset.shape}")
    oh, ow = offset.shape[2:]
    offset = offset.reshape(n, 2, kh, kw, oh, ow)

    def places(k, out, step, axis):
        numbers = F.arange(k, dtype=offset.dtype, device=x.device).reshape(k, 1) + (
            F.arange(out, dtype=offset.dtype, device=x.device) * step)
        return F.reshape(numbers, tuple(m if i in (axis, axis + 2) else 1
                                        for i, m in enumerate((kh, kw, oh, ow))))

    u = (offset[:, 0] + places(kw, ow, sx, 1)) / (w + 2 * pw - 1) * 2 - 1
    v = (offset[:, 1] + places(kh, oh, sy, 0)) / (h + 2 * ph - 1) * 2 - 1
    points = F.stack([u, v], 1).reshape(n, 2, kh * kw, oh * ow)
    columns = F.spatial_transformer_sampler(
        F.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), "constant"), points)
    y = F.matmul(W.reshape(out, c * kh * kw), columns.reshape(n, c * kh * kw, oh * ow))
    return _with_bias(in_dtype_of(x, y.reshape(n, out, oh, ow)), b)


def max_pooling_2d(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False) -> Any:
    """The largest element of each window.

    Args:
        x: images (N, C, H, W).
        ksize, stride, pad: numbers, or pairs (y, x). The stride is ksize by default.
        cover_all: whether to use windows that extend beyond the padded image.
        return_indices: whether to return the places of the maxima in their windows, too: an array.
    """
    if not return_indices:
        return plugins.max_pooling_2d(x, ksize, stride, pad, cover_all)
    y, indices = forms._max_pooling_2d(x, ksize, stride, pad, cover_all)
    return y, indices.array


def _pooled(x, pool, function, ksize, stride, pad):
    """Pools along one axis after the other."""
    steps = _tuples(function, x.ndim - 2, ksize=ksize, stride=ksize if stride is None else stride,
                    pad=pad)
    for axis, (k, s, p) in enumerate(zip(*steps), 2):
        before, after = x.shape[:axis], x.shape[axis + 1:]
        images = x.reshape(1, math.prod(before), x.shape[axis], math.prod(after))
        y = pool(images, (k, 1), (s, 1), (p, 0))
        x = y.reshape(*before, y.shape[2], *after)
    return x


def max_pooling_nd(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False) -> Any:
    """``max_pooling_2d()`` along any number of axes: x is (N, C, ...)."""
    x = variable(x, "max_pooling_nd")
    if x.ndim == 4:
        return max_pooling_2d(x, ksize, stride, pad, cover_all, return_indices)
    if return_indices:
        raise _core.UnsupportedError(
            f"[max_pooling_nd] return_indices: expected images (N, C, H, W), got {x.shape}")
    return _pooled(x, lambda x, *steps: plugins.max_pooling_2d(x, *steps, cover_all),
                   "max_pooling_nd", ksize, stride, pad)


def average_pooling_nd(x, ksize, stride=None, pad=0, pad_value=0) -> Any:
    """``average_pooling_2d()`` along any number of axes: x is (N, C, ...).

    Args:
        x: the images.
        ksize, stride, pad: numbers, or one for each axis. The stride is ksize by default.
        pad_value: 0, or None to leave the padding out of the means.
    """
    check_choice("average_pooling_nd", "pad_value", pad_value, (0, None))
    x = variable(x, "average_pooling_nd")
    steps = plugins.average_pooling_2d, "average_pooling_nd", ksize, stride, pad
    y = _pooled(x, *steps)
    if pad_value is None:
        y = y / _pooled(F.full_like(x[:1, :1], 1), *steps)
    return y


def spatial_pyramid_pooling_2d(x, pyramid_height, pooling=None) -> Any:
    """Maxima over 1, 4, 16, ... parts of images, as channels (N, C (1 + 4 + ...), 1, 1)."""
    check_choice("spatial_pyramid_pooling_2d", "pooling", pooling, ("max",))
    x = variable(x, "spatial_pyramid_pooling_2d", "x", 4)
    most = 16  # 4^16 parts are more than images have pixels
    if not 1 <= pyramid_height <= most:
        raise _core.InvalidError("[spatial_pyramid_pooling_2d] pyramid_height: expected 1 to "
                                 f"{most}, got {pyramid_height}")
    ys = []
    for level in range(pyramid_height):
        ksize = tuple(-(-size // 2**level) for size in x.shape[2:])
        pad = tuple((k * 2**level - size) // 2 for k, size in zip(ksize, x.shape[2:]))
        ys.append(plugins.max_pooling_2d(x, ksize, None, pad, True).reshape(len(x), -1, 1, 1))
    return F.concat(ys)


def unpooling_nd(x, ksize, stride=None, pad=0, outsize=None, cover_all=True) -> Any:
    """Repeats each element in its window: the transpose of a sum over windows.

    Args:
        x: (N, C, ...).
        ksize, stride, pad: numbers, or one for each axis. The stride is ksize by default.
        outsize: the extents of the result; None: the smallest that fits.
        cover_all: whether the windows may extend beyond the result.
    """
    x = variable(x, "unpooling_nd")
    steps = ksize, stride, pad = _tuples(
        "unpooling_nd", x.ndim - 2, ksize=ksize, stride=ksize if stride is None else stride,
        pad=pad)
    sizes = _outsizes(x.shape[2:], *steps, cover_all) if outsize is None else as_tuple(
        outsize, x.ndim - 2, "unpooling_nd", "outsize")
    expected = tuple(_out_size(*each, cover_all) for each in zip(sizes, ksize, stride, pad))
    if expected != x.shape[2:]:
        raise _core.ShapeError(f"[unpooling_nd] outsize: expected one with {x.shape[2:]} windows, "
                               f"got {sizes} with {expected}")
    if min(sizes) <= 0:
        one = x[(slice(None),) * 2 + tuple(slice(min(max(0, size), 1)) for size in sizes)]
        return F.broadcast_to(one, x.shape[:2] + tuple(max(0, size) for size in sizes))
    W = F.full((1, 1) + ksize, 1, x.dtype, x.device)
    y = deconvolution_nd(x.reshape(-1, 1, *x.shape[2:]), W, None, stride, pad, sizes)
    return y.reshape(*x.shape[:2], *y.shape[2:])


def _outsizes(sizes, ksize, stride, pad, cover_all):
    """The extents from which windows give these sizes."""
    return tuple(s * (size - 1) + k - 2 * p - (s - 1 if cover_all else 0)
                 for size, k, s, p in zip(sizes, ksize, stride, pad))


def upsampling_2d(x, indexes, ksize, stride=None, pad=0, outsize=None, cover_all=True) -> Any:
    """Puts each element where the maximum of its window was; the others are 0.

    Args:
        x: images (N, C, H, W).
        indexes: the places in the windows that ``max_pooling_2d()`` returns.
        ksize, stride, pad, cover_all: its arguments.
        outsize: the height and width of the result; None: the smallest that fits.
    """
    x = variable(x, "upsampling_2d", "x", 4)
    (kh, kw), (sy, sx), (ph, pw) = steps = _tuples(
        "upsampling_2d", 2, ksize=ksize, stride=ksize if stride is None else stride, pad=pad)
    h, w = x.shape[2:]
    if tuple(indexes.shape) != x.shape:
        raise _core.ShapeError(
            f"[upsampling_2d] indexes: expected the shape {x.shape}, got {indexes.shape}")
    oh, ow = outsize if outsize is not None else _outsizes((h, w), *steps, cover_all)
    height, width = max(oh + ph, sy * (h - 1) + kh), max(ow + pw, sx * (w - 1) + kw)
    indexes = F.cast(indexes, "int64")
    row = F.cast(F.floor(F.cast(indexes, "float64") / kw), "int64")
    place = (row + F.arange(h, device=x.device).reshape(h, 1) * sy) * width + (
        indexes - row * kw + F.arange(w, device=x.device) * sx)
    images = x.shape[0] * x.shape[1]
    place = place.reshape(images, h * w) + (
        F.arange(images, device=x.device).reshape(images, 1) * (height * width))
    y = F.index_add(F.full((images * height * width,), 0, x.dtype, x.device), 0, F.flatten(place),
                    F.flatten(x))
    return y.reshape(*x.shape[:2], height, width)[:, :, ph:ph + oh, pw:pw + ow]


convolution_1d = _of_axes(convolution_nd, 1, "convolution_1d")
convolution_3d = _of_axes(convolution_nd, 3, "convolution_3d")
deconvolution_1d = _of_axes(deconvolution_nd, 1, "deconvolution_1d")
deconvolution_3d = _of_axes(deconvolution_nd, 3, "deconvolution_3d")
max_pooling_1d = _of_axes(max_pooling_nd, 1, "max_pooling_1d")
max_pooling_3d = _of_axes(max_pooling_nd, 3, "max_pooling_3d")
average_pooling_1d = _of_axes(average_pooling_nd, 1, "average_pooling_1d")
average_pooling_3d = _of_axes(average_pooling_nd, 3, "average_pooling_3d")
unpooling_1d = _of_axes(unpooling_nd, 1, "unpooling_1d")
unpooling_2d = _of_axes(unpooling_nd, 2, "unpooling_2d")
unpooling_3d = _of_axes(unpooling_nd, 3, "unpooling_3d")
