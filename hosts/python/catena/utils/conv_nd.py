"""The windows of a convolution as an array (`im2col`), and the sum of such windows (`col2im`)."""
import itertools
from typing import Any

from catena.utils.conv import get_conv_outsize, get_deconv_outsize

__all__ = ["as_tuple", "col2im_nd", "get_conv_outsize", "get_deconv_outsize", "im2col_nd"]


def _require_lengths(function, n, **given):
    for name, value in given.items():
        if len(value) != n:
            raise AssertionError(f"[{function}] {name}: expected {n} values, got {value}")


def as_tuple(x, n) -> Any:
    """A tuple of n equal numbers, or x itself as a tuple if it has n elements."""
    if not hasattr(x, "__getitem__"):
        return (x,) * n
    _require_lengths("as_tuple", n, x=x)
    return tuple(x)


def _windows(ksize, stride, dilate, outs):
    """Yields the index of each element of the filter, and of the elements that it is multiplied with."""
    for offset in itertools.product(*map(range, ksize)):
        begins = [i * d for i, d in zip(offset, dilate)]
        yield (slice(None),) * 2 + offset, (slice(None),) * 2 + tuple(
            slice(b, b + s * out, s) for b, s, out in zip(begins, stride, outs))


def _module(array):
    from catena.backend import get_array_module
    return get_array_module(array)


def im2col_nd_cpu(img, ksize, stride, pad, pval=0, cover_all=False, dilate=1, outs=None) -> Any:
    """im2col_nd() with a value for the padding, and perhaps the sizes of the output."""
    n = img.ndim - 2
    _require_lengths("im2col_nd", n, ksize=ksize, stride=stride, pad=pad)
    dilate, sizes = as_tuple(dilate, n), img.shape[2:]
    outs = tuple(get_conv_outsize(x, k, s, p, cover_all, d) if out is None else out
                 for x, k, s, p, d, out in zip(
                     sizes, ksize, stride, pad, dilate, outs or (None,) * n))
    if min(outs) <= 0:
        raise AssertionError(f"[im2col_nd] img: expected an output with elements, got {outs} from "
                             f"{sizes}, ksize {ksize}, stride {stride}, pad {pad}")
    xp, lead = _module(img), img.shape[:2]
    ends = [max(x + 2 * p, (k - 1) * d + s * out)
            for x, k, s, p, d, out in zip(sizes, ksize, stride, pad, dilate, outs)]
    padded = xp.full((*lead, *ends), pval, dtype=img.dtype)
    padded[(slice(None),) * 2 + tuple(slice(p, p + x) for p, x in zip(pad, sizes))] = img
    col = xp.empty((*lead, *ksize, *outs), dtype=img.dtype)
    for to, of in _windows(ksize, stride, dilate, outs):
        col[to] = padded[of]
    return col


def im2col_nd(img, ksize, stride, pad, cover_all=False, dilate=1) -> Any:
    """The elements of img (batch, channel, sizes) below each element of a filter, for all its positions.

    ksize, stride, pad and dilate are numbers for each axis. Returns an array (batch, channel, ksize, output
    sizes). With cover_all, the windows cover all of the padded input.
    """
    return im2col_nd_cpu(img, ksize, stride, pad, cover_all=cover_all, dilate=dilate)


def col2im_nd(col, stride, pad, dims, dilate=1) -> Any:
    """Adds the elements of im2col_nd()'s result at the places they come from: (batch, channel, dims)."""
    n = len(stride)
    _require_lengths("col2im_nd", n, pad=pad, dims=dims)
    _require_lengths("col2im_nd", 2 * n + 2, col=col.shape)
    dilate = as_tuple(dilate, n)
    lead, ksize, outs = col.shape[:2], col.shape[2:n + 2], col.shape[n + 2:]
    ends = [max(x + 2 * p, (k - 1) * d + s * out)
            for x, k, s, p, d, out in zip(dims, ksize, stride, pad, dilate, outs)]
    padded = _module(col).zeros((*lead, *ends), dtype=col.dtype)
    for of, to in _windows(ksize, stride, dilate, outs):
        padded[to] += col[of]
    return padded[(slice(None),) * 2 + tuple(slice(p, p + x) for p, x in zip(pad, dims))]


im2col_nd_gpu, col2im_nd_cpu, col2im_nd_gpu = im2col_nd, col2im_nd, col2im_nd
