"""Functions of layers with Chainer's arguments: normalizations, noise."""
import warnings
from typing import Any

from catena import _core
from catena._core import forms
from catena.configuration import config
from catena.functions._plugins import F, in_dtype_of, plugins, variable, variables

__all__ = [
    "batch_normalization", "batch_renormalization", "dropout", "embed_id",
    "fixed_batch_normalization", "fixed_batch_renormalization", "gaussian", "rrelu",
    "simplified_dropconnect"]


def embed_id(x, W, ignore_label=None) -> Any:
    """The row of W (ids, size) for each id in x. Those of ``ignore_label``, one or several, are 0.

    Negative ids count from the end, but are errors in debug mode.
    """
    try:
        return plugins.embed_id(x, W, ignore_label)
    except _core.InvalidValueError:
        if _core.get_flag("debug", False):
            raise
        x, W = variables("embed_id", x=x, W=W)
        negative = F.logical_and(F.less(x, 0), F.greater_equal(x, -len(W)))
        for label in (ignore_label,) if isinstance(ignore_label, int) else ignore_label or ():
            negative = F.logical_and(negative, F.not_equal(x, label))
        if not F.cast(negative, "int32").array.any():
            raise
    return plugins.embed_id(F.where(negative, x + len(W), x), W, ignore_label)


def _key_axes(x, gamma, axis):
    """The axes of x that gamma has, in their order."""
    if axis is None:
        return tuple(range(1, gamma.ndim + 1))
    axis = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(a >= b for a, b in zip(axis, axis[1:])):
        raise RuntimeError(f"[batch_normalization] axis: expected ascending axes, got {axis}")
    return tuple(i for i in range(x.ndim) if i not in axis)


def _normalized(x, gamma, others, axis, normalize):
    """Calls normalize(x, gamma, *others) with the channels as axis 1 of x, in the dtype of gamma."""
    for other in others:
        if other.shape != gamma.shape:
            raise _core.ShapeError("[batch_normalization] beta, mean, var: expected the shape of "
                                   f"gamma, {gamma.shape}, got {other.shape}")
    keys, dtype, shape = _key_axes(x, gamma, axis), x.dtype, x.shape
    if tuple(shape[i] for i in keys if i < x.ndim) != gamma.shape:
        raise _core.ShapeError(f"[batch_normalization] gamma: expected the axes {keys} of x with "
                               f"the shape {shape}, got {gamma.shape}")
    if dtype != gamma.dtype and dtype.kind != "f":
        raise _core.DtypeError(f"[batch_normalization] x: expected a floating dtype, got {dtype}")
    x = in_dtype_of(gamma, x)
    vectors = [each if each.ndim == 1 else each.reshape(-1) for each in (gamma, *others)]
    if keys == (1,):
        y = normalize(x, *vectors)
    else:
        order = tuple(i for i in range(x.ndim) if i not in keys) + keys
        moved = x.transpose(order)
        flat = moved.reshape(x.size // max(gamma.size, 1), gamma.size)
        y = normalize(flat, *vectors).reshape(moved.shape)
        y = y.transpose(tuple(order.index(i) for i in range(x.ndim)))
    return y if y.dtype == dtype else plugins.cast(y, dtype)


def batch_normalization(x, gamma, beta, *, eps=2e-5, running_mean=None, running_var=None, decay=0.9,
                        axis=None) -> Any:
    """gamma (x - mean) / sqrt(var + eps) + beta, with the mean and variance of each channel.

    running_mean and running_var are arrays that are updated in place, of which ``decay`` is kept. axis has
    the axes over which the mean and variance are taken; None: 0, and those after gamma's.
    """
    if x.size == gamma.size:
        warnings.warn("[batch_normalization] x: got one value for each channel, which becomes beta",
                      UserWarning)
    if running_mean is None and running_var is None and axis is None:
        if getattr(gamma, "dtype", 0) == getattr(x, "dtype", 1) and gamma.ndim == 1:
            return plugins.batch_normalization(x, gamma, beta, eps)
    x, gamma, beta = variables("batch_normalization", x=x, gamma=gamma, beta=beta)

    def normalize(*inputs):
        y, mean, var = _core._all_outputs("catena.batch_normalization")(*inputs, eps)
        _blend_statistics(running_mean, running_var, mean, var, x.size // gamma.size, decay)
        return y

    return _normalized(x, gamma, [beta], axis, normalize)


def _blend_statistics(running_mean, running_var, mean, var, count, decay):
    """Updates arrays in place with the statistics of a batch of `count` values for each channel."""
    if config.in_recomputing:  # F.forget() calls the function a second time
        return
    for running, value, factor in ((running_mean, mean, 1),
                                   (running_var, var, count / max(count - 1, 1))):
        if running is not None:
            running *= decay
            value = in_dtype_of(running, value * (factor * (1 - decay))).reshape(running.shape)
            running += value if isinstance(running, _core.Variable) else value.array


def fixed_batch_normalization(x, gamma, beta, mean, var, eps=2e-5, axis=None) -> Any:
    """gamma (x - mean) / sqrt(var + eps) + beta, with a given mean and variance of each channel."""
    x, gamma, beta, mean, var = variables(
        "fixed_batch_normalization", x=x, gamma=gamma, beta=beta, mean=mean, var=var)
    if gamma.dtype in ("float16", "bfloat16"):  # the function computes with statistics in float32
        mean, var = plugins.cast(mean, "float32"), plugins.cast(var, "float32")
    return _normalized(x, gamma, [beta, mean, var], axis,
                       lambda *inputs: plugins.fixed_batch_normalization(*inputs, eps))


def batch_renormalization(x, gamma, beta, rmax, dmax, eps=2e-5, running_mean=None, running_var=None,
                          decay=0.9, update_statistics=False) -> Any:
    """Batch normalization, corrected towards the running statistics (Ioffe, 2017).

    The normalized values are multiplied by r and d is added: the ratio of the standard deviations
    and the difference of the means of the batch and of the running statistics, limited to 1 / rmax
    to rmax and to -dmax to dmax. Both are constants for gradients. ``update_statistics`` updates
    the running statistics in place.
    """
    x, gamma, beta, old_mean, old_var = variables(
        "batch_renormalization", x=x, gamma=gamma, beta=beta, running_mean=running_mean,
        running_var=running_var)

    def normalize(*inputs):
        y, mean, var = plugins.batch_renormalization(*inputs, rmax, dmax, eps)
        if update_statistics:
            _blend_statistics(running_mean, running_var, mean, var, x.size // gamma.size, decay)
        return y

    return _normalized(x, gamma, [beta, old_mean, old_var], None, normalize)


def fixed_batch_renormalization(x, gamma, beta, mean, var, eps=2e-5) -> Any:
    """The same as ``fixed_batch_normalization()``, which replaces it."""
    warnings.warn("fixed_batch_renormalization() is fixed_batch_normalization()",
                  DeprecationWarning)
    return fixed_batch_normalization(x, gamma, beta, mean, var, eps)


def dropout(x, ratio=.5, *, mask=None, return_mask=False) -> Any:
    """Sets elements to 0 in training, with the probability ``ratio``, and scales the others to keep the mean.

    ``mask`` is an array by which x is multiplied instead. ``return_mask`` returns that array, too, which
    is None outside training.
    """
    if not 0 <= ratio < 1:
        raise ValueError(f"[dropout] ratio: expected 0 to below 1, got {ratio}")
    if mask is None and not return_mask:
        return plugins.dropout(x, ratio)
    x = variable(x, "dropout")
    if not _core.get_flag("train", False):
        return (x, None) if return_mask else x
    if mask is None:
        mask = plugins.dropout(forms.full_like(x, 1), ratio).array
    y = x * mask
    return (y, mask) if return_mask else y


def gaussian(mean, ln_var, *, eps=None, return_eps=False) -> Any:
    """A sample of normal distributions: mean + e^(ln_var / 2) eps; eps is drawn from N(0, 1) if it is None.

    ``return_eps`` returns that array, too.
    """
    if return_eps and eps is None:
        mean = variable(mean, "gaussian", "mean")
        eps = plugins.normal(mean.shape, dtype=mean.dtype, device=mean.device).array
    y = plugins.gaussian(mean, ln_var, eps)
    return (y, eps) if return_eps else y


def rrelu(x, l=1. / 8, u=1. / 3, *, r=None, return_r=False) -> Any:
    """x where x >= 0, else r x; r is drawn from U[l, u) in training, else it is their mean.

    ``r`` is an array to use in training instead; ``return_r`` returns the array that was used, too.
    """
    if return_r:
        x = variable(x, "rrelu")
        if not _core.get_flag("train", False):
            r = forms.full_like(x, (l + u) / 2).array
        elif r is None:
            r = plugins.uniform(x.shape, l, u, x.dtype, device=x.device).array
    y = plugins.rrelu(x, r, l, u)
    return (y, r) if return_r else y


def simplified_dropconnect(x, W, b=None, ratio=0.5, train=True, mask=None, use_batchwise_mask=True) -> Any:
    """x W^T + b, with weights set to 0 with the probability ``ratio``, and the others scaled.

    Without ``train``, all weights are used. ``mask`` has 1 or True for the weights to use, 0 or False
    for others; by default it is drawn, for each sample if ``use_batchwise_mask``.
    """
    return plugins.simplified_dropconnect(x, W, b, mask, ratio, train, use_batchwise_mask)
