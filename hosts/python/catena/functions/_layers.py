"""Functions of layers with Chainer's arguments: convolutions, normalizations, pooling, dropout."""
from catena import _core
from catena._core import forms
from catena.functions._plugins import plugins
from catena.variable import as_variable

__all__ = [
    "batch_normalization", "convolution_2d", "deconvolution_2d", "dropout",
    "fixed_batch_normalization", "max_pooling_2d"]


def convolution_2d(x, W, b=None, stride=1, pad=0, cover_all=False, dilate=1, groups=1):
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
        W = _dilated(as_variable(W), dilate)
    if groups == 1:
        return plugins.convolution_2d(x, W, b, stride, pad, cover_all)
    xs = forms.split_axis(x, groups, 1)
    Ws = forms.split_axis(W, groups, 0)
    ys = [plugins.convolution_2d(x, W, None, stride, pad, cover_all) for x, W in zip(xs, Ws)]
    return _with_bias(forms.concat(ys, 1), b)


def deconvolution_2d(x, W, b=None, stride=1, pad=0, outsize=None, dilate=1, groups=1):
    """The transposed convolution, plus b: the sum of the filters, weighted with x, at all positions.

    Args:
        x: images (N, C, H, W).
        W: filters (C, out / groups, kh, kw).
        b: (out,), or None.
        stride, pad, dilate: numbers, or pairs (y, x).
        outsize: the height and width of the result; None: the smallest that fits.
        groups: the channels form so many groups, which are processed separately.
    """
    if dilate != 1:
        W = _dilated(as_variable(W), dilate)
    if groups == 1:
        return plugins.deconvolution_2d(x, W, b, stride, pad, outsize)
    xs = forms.split_axis(x, groups, 1)
    Ws = forms.split_axis(W, groups, 0)
    ys = [plugins.deconvolution_2d(x, W, None, stride, pad, outsize) for x, W in zip(xs, Ws)]
    return _with_bias(forms.concat(ys, 1), b)


def _with_bias(y, b):
    if b is None:
        return y
    return y + plugins.reshape(b, (1, -1) + (1,) * (y.ndim - 2))


def _dilated(W, dilate):
    """The filters with zeros between their elements."""
    dy, dx = (dilate, dilate) if isinstance(dilate, int) else dilate
    out, size, kh, kw = W.shape
    W = W.reshape(out, size, kh, 1, kw, 1)
    W = forms._pad(W, [0, 0] * 3 + [0, dy - 1, 0, 0, 0, dx - 1], "constant", 0)
    W = W.reshape(out, size, kh * dy, kw * dx)
    return W[:, :, :(kh - 1) * dy + 1, :(kw - 1) * dx + 1]


def max_pooling_2d(x, ksize, stride=None, pad=0, cover_all=True, return_indices=False):
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


def _key_axes(x, gamma, axis):
    """The axes of x that gamma has, in their order."""
    if axis is None:
        return tuple(range(1, gamma.ndim + 1))
    axis = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(a >= b for a, b in zip(axis, axis[1:])):
        raise RuntimeError(f"[batch_normalization] axis: expected ascending axes, got {axis}")
    return tuple(i for i in range(x.ndim) if i not in axis)


def _normalized(x, gamma, axis, normalize):
    """Calls normalize(x) with the channels as axis 1 of x, and in the dtype of gamma."""
    keys, dtype, shape = _key_axes(x, gamma, axis), x.dtype, x.shape
    if tuple(shape[i] for i in keys if i < x.ndim) != gamma.shape:
        raise _core.ShapeError(f"[batch_normalization] gamma: expected the axes {keys} of x with "
                               f"the shape {shape}, got {gamma.shape}")
    if dtype != gamma.dtype:
        x = plugins.cast(x, gamma.dtype)
    if keys == (1,):
        y = normalize(x)
    else:
        order = tuple(i for i in range(x.ndim) if i not in keys) + keys
        moved = x.transpose(order)
        y = normalize(moved.reshape(-1, gamma.size)).reshape(moved.shape)
        y = y.transpose(tuple(order.index(i) for i in range(x.ndim)))
    return y if y.dtype == dtype else plugins.cast(y, dtype)


def batch_normalization(x, gamma, beta, *, eps=2e-5, running_mean=None, running_var=None, decay=0.9,
                        axis=None):
    """gamma (x - mean) / sqrt(var + eps) + beta, with the mean and variance of each channel.

    Args:
        x: the batch: (N, C, ...) for gamma (C,).
        gamma, beta: a number for each channel.
        eps: added to the variance.
        running_mean, running_var: arrays that are updated in place, or None.
        decay: how much of these is kept.
        axis: the axes over which the mean and variance are taken; None: 0, and those after gamma's.
    """
    if running_mean is None and running_var is None and axis is None:
        if getattr(gamma, "dtype", 0) == getattr(x, "dtype", 1) and gamma.ndim == 1:
            return plugins.batch_normalization(x, gamma, beta, eps)
    x, gamma, beta = as_variable(x), as_variable(gamma), as_variable(beta)

    def normalize(x):
        y, mean, var = forms._batch_normalization(x, gamma.reshape(-1), beta.reshape(-1), eps)
        if running_mean is not None:
            _blend(running_mean, mean, decay)
        if running_var is not None:
            count = x.size // gamma.size
            _blend(running_var, var * (count / max(count - 1, 1)), decay)
        return y

    return _normalized(x, gamma, axis, normalize)


def _blend(running, value, decay):
    running *= decay
    value = plugins.cast(value * (1 - decay), running.dtype).reshape(running.shape)
    running += value if isinstance(running, _core.Variable) else value.array


def fixed_batch_normalization(x, gamma, beta, mean, var, eps=2e-5, axis=None):
    """gamma (x - mean) / sqrt(var + eps) + beta, with a given mean and variance of each channel."""
    x, gamma, beta, mean, var = map(as_variable, (x, gamma, beta, mean, var))
    return _normalized(
        x, gamma, axis, lambda x: plugins.fixed_batch_normalization(
            x, *(each.reshape(-1) for each in (gamma, beta, mean, var)), eps))


def dropout(x, ratio=.5, *, mask=None, return_mask=False):
    """Sets elements to 0 at random in training, and scales the others to keep the mean.

    Args:
        x: the array.
        ratio: the probability of an element to become 0.
        mask: the array by which x is multiplied instead.
        return_mask: whether to return that array, too. It is None outside training.
    """
    if not 0 <= ratio < 1:
        raise ValueError(f"[dropout] ratio: expected 0 to below 1, got {ratio}")
    if mask is None and not return_mask:
        return plugins.dropout(x, ratio)
    x = as_variable(x)
    if not _core.get_flag("train", False):
        return (x, None) if return_mask else x
    if mask is None:
        mask = plugins.dropout(forms.full_like(x, 1), ratio).array
    y = x * mask
    return (y, mask) if return_mask else y
