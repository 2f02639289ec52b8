"""Sizes of convolutions along one axis, and their windows in two axes."""
from typing import Any

__all__ = ["get_conv_outsize", "get_deconv_outsize"]


def get_conv_outsize(size, k, s, p, cover_all=False, d=1) -> Any:
    """The size of the output of a convolution or a pooling with filter k, stride s, padding p, dilation d.

    With ``cover_all``, the windows cover all of the padded input.
    """
    rest = size + 2 * p - (k - 1) * d - 1
    return (rest + s - 1 if cover_all else rest) // s + 1


def get_deconv_outsize(size, k, s, p, cover_all=False, d=1) -> Any:
    """The size of the input of a convolution whose output has a size. The arguments are the same."""
    outsize = s * (size - 1) + (k - 1) * d + 1 - 2 * p
    return outsize - s + 1 if cover_all else outsize


def im2col_cpu(img, kh, kw, sy, sx, ph, pw, pval=0, cover_all=False, dy=1, dx=1, out_h=None,
               out_w=None) -> Any:
    """im2col() with a value for the padding."""
    from catena.utils.conv_nd import im2col_nd_cpu
    return im2col_nd_cpu(
        img, (kh, kw), (sy, sx), (ph, pw), pval, cover_all, (dy, dx), (out_h, out_w))


def im2col(img, kh, kw, sy, sx, ph, pw, cover_all=False, dy=1, dx=1, out_h=None, out_w=None) -> Any:
    """The windows (batch, channel, kh, kw, out_h, out_w) of images; see conv_nd.im2col_nd()."""
    return im2col_cpu(img, kh, kw, sy, sx, ph, pw, 0, cover_all, dy, dx, out_h, out_w)


def col2im(col, sy, sx, ph, pw, h, w, dy=1, dx=1) -> Any:
    """The images (batch, channel, h, w) to whose elements windows are added."""
    from catena.utils.conv_nd import col2im_nd
    return col2im_nd(col, (sy, sx), (ph, pw), (h, w), (dy, dx))


im2col_gpu, col2im_cpu, col2im_gpu = im2col, col2im, col2im
