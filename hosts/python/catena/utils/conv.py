"""Sizes of convolutions along one axis."""

__all__ = ["get_conv_outsize", "get_deconv_outsize"]


def get_conv_outsize(size, k, s, p, cover_all=False, d=1):
    """The size of the output of a convolution or a pooling.

    Args:
        size: that of the input.
        k, s, p, d: filter, stride, padding and dilation.
        cover_all: whether the windows cover all of the padded input.
    """
    rest = size + 2 * p - (k - 1) * d - 1
    return (rest + s - 1 if cover_all else rest) // s + 1


def get_deconv_outsize(size, k, s, p, cover_all=False, d=1):
    """The size of the input of a convolution whose output has a size. The arguments are the same."""
    outsize = s * (size - 1) + (k - 1) * d + 1 - 2 * p
    return outsize - s + 1 if cover_all else outsize
