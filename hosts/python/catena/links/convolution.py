"""Links that are convolutions, and compositions of them."""
import functools
from typing import Any

from catena import functions as F
from catena.configuration import get_dtype
from catena.initializers import HeNormal, _get_initializer
from catena.link import Chain, ChainList
from catena.links.connection import Weighted
from catena.links.normalization import BatchNormalization
from catena.variable import as_array

__all__ = ["Convolution1D", "Convolution2D", "Convolution3D", "ConvolutionND", "Deconvolution1D",
           "Deconvolution2D", "Deconvolution3D", "DeconvolutionND", "DeformableConvolution2D",
           "DepthwiseConvolution2D", "DilatedConvolution2D", "Inception", "InceptionBN",
           "LocalConvolution2D", "MLPConvolution2D"]


def _pair(value):
    return value if hasattr(value, "__getitem__") else (value, value)


def _tuple(value, n):
    if not hasattr(value, "__getitem__"):
        return (value,) * n
    if len(value) != n:
        raise ValueError(f"expected {n} numbers, got {value}")
    return tuple(value)


class _Convolution(Weighted):
    """The base of convolutions and transposed convolutions, of images or over ``ndim`` axes."""

    _transposed = False

    def __init__(self, ndim, in_channels, out_channels, ksize, stride, pad, nobias, initialW, initial_bias,
                 dilate=1, groups=1) -> None:
        super().__init__()
        if ksize is None:
            out_channels, ksize, in_channels = in_channels, out_channels, None
        self.in_channels = in_channels
        self.out_channels = out_channels
        if ndim is None:
            self.ksize, self._extents = ksize, tuple(_pair(ksize))
            self.stride, self.pad, self.dilate = _pair(stride), _pair(pad), _pair(dilate)
        else:
            self.ksize = self._extents = _tuple(ksize, ndim)
            self.stride, self.pad, self.dilate = stride, pad, _tuple(dilate, ndim)
        self.groups = int(groups)
        self._add_weight(in_channels, out_channels, nobias, initialW, initial_bias)

    def _initialize_params(self, in_channels):
        for what, n in [("output", self.out_channels), ("input", in_channels)]:
            if n % self.groups != 0:
                raise ValueError(f"the number of {what} channels must be divisible by the number "
                                 f"of groups, got {n} and {self.groups}")
        sizes = ((in_channels, self.out_channels // self.groups) if self._transposed else
                 (self.out_channels, in_channels // self.groups))
        self.W.initialize(sizes + self._extents)

    @classmethod
    def _from_params(cls, first, W, b, stride, pad, nobias, groups, **options):
        out_channels, channels, *ksize = W.shape
        if b is not None and out_channels != b.size:
            raise ValueError("`out_channels` does not match the size of `b`")
        return cls(*first, channels * groups, out_channels, tuple(ksize), stride, pad, nobias,
                   initialW=as_array(W), initial_bias=as_array(b), groups=groups, **options)

    def forward(self, x, *others) -> Any:
        if self.W.array is None:
            self._initialize_params(x.shape[1])
        return self._convolve(x, *others)


class Convolution2D(_Convolution):
    """A convolution of images (N, channels, height, width).

    Args:
        in_channels: the number of channels. None, or leaving it out, takes it from the first call.
        out_channels: the number of filters.
        ksize: the size of filters, a number or a pair (y, x), as are stride, pad and dilate.
        stride, pad: the distance of windows, and the width of the border of zeros.
        nobias: whether there is no b.
        initialW, initial_bias: initializers, arrays or numbers; by default LeCunNormal and 0.
        dilate: the distance of the pixels of a filter.
        groups: the number of parts of the channels, which are convolved separately.
    """

    def __init__(self, in_channels, out_channels, ksize=None, stride=1, pad=0, nobias=False,
                 initialW=None, initial_bias=None, *, dilate=1, groups=1) -> None:
        super().__init__(None, in_channels, out_channels, ksize, stride, pad, nobias, initialW,
                         initial_bias, dilate, groups)

    @property
    def printable_specs(self):
        for name in ["in_channels", "out_channels", "ksize", "stride", "pad"]:
            yield name, getattr(self, name)
        yield "nobias", self.b is None
        yield "dilate", self.dilate
        yield "groups", self.groups

    @classmethod
    def from_params(cls, W, b=None, stride=1, pad=0, nobias=False, *, dilate=1, groups=1) -> Any:
        return cls._from_params((), W, b, stride, pad, nobias, groups, dilate=dilate)

    def _convolve(self, x):
        return F.convolution_2d(x, self.W, self.b, self.stride, self.pad, dilate=self.dilate,
                                groups=self.groups)


class DilatedConvolution2D(_Convolution):
    """A convolution of images with filters whose pixels are ``dilate`` apart; see Convolution2D."""

    def __init__(self, in_channels, out_channels, ksize=None, stride=1, pad=0, dilate=1,
                 nobias=False, initialW=None, initial_bias=None) -> None:
        super().__init__(None, in_channels, out_channels, ksize, stride, pad, nobias, initialW,
                         initial_bias, dilate)

    def _convolve(self, x):
        return F.dilated_convolution_2d(x, self.W, self.b, self.stride, self.pad, self.dilate)


class Deconvolution2D(_Convolution):
    """A transposed convolution of images; see Convolution2D.

    Args:
        outsize: the height and width of the results; None for the smallest that fit.
    """

    _transposed = True

    def __init__(self, in_channels, out_channels, ksize=None, stride=1, pad=0, nobias=False,
                 outsize=None, initialW=None, initial_bias=None, *, dilate=1, groups=1) -> None:
        super().__init__(None, in_channels, out_channels, ksize, stride, pad, nobias, initialW,
                         initial_bias, dilate, groups)
        self.outsize = (None, None) if outsize is None else outsize

    def _convolve(self, x):
        outsize = None if tuple(self.outsize) == (None, None) else self.outsize
        return F.deconvolution_2d(x, self.W, self.b, self.stride, self.pad, outsize,
                                  dilate=self.dilate, groups=self.groups)


class ConvolutionND(_Convolution):
    """A convolution over ``ndim`` axes; see Convolution2D."""

    def __init__(self, ndim, in_channels, out_channels, ksize=None, stride=1, pad=0, nobias=False,
                 initialW=None, initial_bias=None, cover_all=False, dilate=1, groups=1) -> None:
        super().__init__(ndim, in_channels, out_channels, ksize, stride, pad, nobias, initialW,
                         initial_bias, dilate, groups)
        self.cover_all = cover_all

    @classmethod
    def from_params(cls, W, b=None, stride=1, pad=0, nobias=False, *, cover_all=False, dilate=1,
                    groups=1) -> Any:
        return cls._from_params((W.ndim - 2,), W, b, stride, pad, nobias, groups, cover_all=cover_all,
                                dilate=dilate)

    def _convolve(self, x):
        return F.convolution_nd(x, self.W, self.b, self.stride, self.pad, cover_all=self.cover_all,
                                dilate=self.dilate, groups=self.groups)


class DeconvolutionND(_Convolution):
    """A transposed convolution over ``ndim`` axes; see Deconvolution2D."""

    _transposed = True

    def __init__(self, ndim, in_channels, out_channels, ksize=None, stride=1, pad=0, nobias=False,
                 outsize=None, initialW=None, initial_bias=None, dilate=1, groups=1) -> None:
        super().__init__(ndim, in_channels, out_channels, ksize, stride, pad, nobias, initialW,
                         initial_bias, dilate, groups)
        self.outsize = outsize

    def _convolve(self, x):
        return F.deconvolution_nd(x, self.W, self.b, self.stride, self.pad, self.outsize,
                                  dilate=self.dilate, groups=self.groups)


class Convolution1D(ConvolutionND):
    """A convolution over one axis: of sequences (N, channels, length); see Convolution2D."""

    __init__ = functools.partialmethod(ConvolutionND.__init__, 1)


class Convolution3D(ConvolutionND):
    """A convolution over three axes: of volumes (N, channels, depth, height, width)."""

    __init__ = functools.partialmethod(ConvolutionND.__init__, 3)


class Deconvolution1D(DeconvolutionND):
    """A transposed convolution over one axis; see Deconvolution2D."""

    __init__ = functools.partialmethod(DeconvolutionND.__init__, 1)


class Deconvolution3D(DeconvolutionND):
    """A transposed convolution over three axes; see Deconvolution2D."""

    __init__ = functools.partialmethod(DeconvolutionND.__init__, 3)


class DepthwiseConvolution2D(Weighted):
    """A convolution with ``channel_multiplier`` filters for each channel; see Convolution2D."""

    def __init__(self, in_channels, channel_multiplier, ksize, stride=1, pad=0, nobias=False,
                 initialW=None, initial_bias=None) -> None:
        super().__init__()
        self.ksize = ksize
        self.stride = _pair(stride)
        self.pad = _pair(pad)
        self.channel_multiplier = channel_multiplier
        self.nobias = nobias
        self._add_weight(None, None, nobias, _get_initializer(initialW, HeNormal(1 / 2 ** 0.5)), initial_bias)
        if in_channels is not None:
            self._initialize_params(in_channels)

    def _initialize_params(self, in_channels):
        self.W.initialize((self.channel_multiplier, in_channels, *_pair(self.ksize)))
        if self.b is not None:
            self.b.initialize(self.channel_multiplier * in_channels)

    def forward(self, x) -> Any:
        if self.W.array is None:
            self._initialize_params(x.shape[1])
        return F.depthwise_convolution_2d(x, self.W, self.b, self.stride, self.pad)


class LocalConvolution2D(Weighted):
    """A convolution of images with other filters at each position; see Convolution2D.

    Args:
        in_size: the height and width of images, a number or a pair; by default taken from the first
            call, as the number of channels.
    """

    def __init__(self, in_channels, out_channels, in_size=None, ksize=None, stride=1, nobias=False,
                 initialW=None, initial_bias=None) -> None:
        super().__init__()
        self.ksize = ksize
        self.stride = _pair(stride)
        self.nobias = nobias
        self.out_channels = out_channels
        self._add_weight(None, None, nobias, initialW, initial_bias)
        if in_channels is not None and in_size is not None:
            self._initialize_params(in_channels, _pair(in_size))

    def _initialize_params(self, in_channels, in_size):
        ksize = tuple(_pair(self.ksize))
        size = tuple((n - k) // s + 1 for n, k, s in zip(in_size, ksize, self.stride))
        self.W.initialize((self.out_channels, *size, in_channels, *ksize))
        if self.b is not None:
            self.b.initialize((self.out_channels, *size))

    def forward(self, x) -> Any:
        if self.W.array is None:
            self._initialize_params(x.shape[1], x.shape[2:])
        return F.local_convolution_2d(x, self.W, self.b, self.stride)


class DeformableConvolution2DSampler(_Convolution):
    """The second part of DeformableConvolution2D."""

    def __init__(self, in_channels, out_channels, ksize, stride, pad, nobias, initialW,
                 initial_bias) -> None:
        super().__init__(None, in_channels, out_channels, ksize, stride, pad, nobias,
                         _get_initializer(initialW, 0), initial_bias)

    def _convolve(self, x, offset):
        return F.deformable_convolution_2d_sampler(x, offset, self.W, self.b, self.stride, self.pad)


class DeformableConvolution2D(Chain):
    """A convolution of images. Another one computes by how much the elements of filters are moved.

    The arguments are those of Convolution2D: offset_NAME of the convolution of offsets, deform_NAME of the
    other one, whose W is 0 by default.
    """

    def __init__(self, in_channels, out_channels, ksize, stride=1, pad=0, offset_nobias=False,
                 offset_initialW=None, offset_initial_bias=None, deform_nobias=False,
                 deform_initialW=None, deform_initial_bias=None) -> None:
        super().__init__()
        kh, kw = _pair(ksize)
        with self.init_scope():
            self.offset_conv = Convolution2D(in_channels, 2 * kh * kw, ksize, stride, pad,
                                             offset_nobias, offset_initialW, offset_initial_bias)
            self.deform_conv = DeformableConvolution2DSampler(
                in_channels, out_channels, ksize, stride, pad, deform_nobias, deform_initialW,
                deform_initial_bias)

    def forward(self, x) -> Any:
        return self.deform_conv(x, self.offset_conv(x))


class Inception(Chain):
    """Four branches of convolutions and pooling; see "Going Deeper with Convolutions" (2014).

    Their results are joined: a 1x1 convolution to out1 channels; 1x1 to proj3, then 3x3 to out3;
    1x1 to proj5, then 5x5 to out5; 3x3 max pooling, then 1x1 to proj_pool. relu follows each
    convolution.
    """

    def __init__(self, in_channels, out1, proj3, out3, proj5, out5, proj_pool, conv_init=None,
                 bias_init=None) -> None:
        super().__init__()

        def conv(n_in, n_out, ksize):
            return Convolution2D(n_in, n_out, ksize, pad=ksize // 2, initialW=conv_init,
                                 initial_bias=bias_init)

        with self.init_scope():
            self.conv1 = conv(in_channels, out1, 1)
            self.proj3 = conv(in_channels, proj3, 1)
            self.conv3 = conv(proj3, out3, 3)
            self.proj5 = conv(in_channels, proj5, 1)
            self.conv5 = conv(proj5, out5, 5)
            self.projp = conv(in_channels, proj_pool, 1)

    def forward(self, x) -> Any:
        return F.relu(F.concat((
            self.conv1(x), self.conv3(F.relu(self.proj3(x))), self.conv5(F.relu(self.proj5(x))),
            self.projp(F.max_pooling_2d(x, 3, stride=1, pad=1))), axis=1))


class InceptionBN(Chain):
    """Branches of convolutions with batch normalization; see the paper of the latter (2015).

    Args:
        out1: the channels of the 1x1 branch; 0 for no such branch.
        proj3, out3: the channels of 1x1 and then 3x3 convolutions.
        proj33, out33: the channels of 1x1 and then two 3x3 convolutions.
        pooltype: "max" or "avg".
        proj_pool: the channels of the 1x1 convolution after pooling; None for none.
        stride: of the last convolution of each branch, and of pooling.
        conv_init, dtype: the initializer of filters, and the dtype of the normalizations.
    """

    def __init__(self, in_channels, out1, proj3, out3, proj33, out33, pooltype, proj_pool=None,
                 stride=1, conv_init=None, dtype=None) -> None:
        super().__init__()
        if pooltype not in ("max", "avg"):
            raise NotImplementedError(f'pooltype: expected "max" or "avg", got {pooltype!r}')
        self.out1 = out1
        self.proj_pool = proj_pool
        self.stride = stride
        self.pooltype = pooltype
        layers = [("proj3", in_channels, proj3, 1, 1), ("conv3", proj3, out3, 3, stride),
                  ("proj33", in_channels, proj33, 1, 1), ("conv33a", proj33, out33, 3, 1),
                  ("conv33b", out33, out33, 3, stride)]
        if out1 > 0:
            assert stride == 1 and proj_pool is not None
            layers.append(("conv1", in_channels, out1, 1, 1))
        if proj_pool is not None:
            layers.append(("poolp", in_channels, proj_pool, 1, 1))
        with self.init_scope():
            for name, n_in, n_out, ksize, step in layers:
                setattr(self, name, Convolution2D(n_in, n_out, ksize, step, ksize // 2, nobias=True,
                                                  initialW=conv_init))
                setattr(self, name + "n", BatchNormalization(n_out, dtype=get_dtype(dtype)))

    def _run(self, h, *names):
        for name in names:
            h = F.relu(self[name + "n"](self[name](h)))
        return h

    def forward(self, x) -> Any:
        outs = [self._run(x, "conv1")] if self.out1 > 0 else []
        outs += [self._run(x, "proj3", "conv3"), self._run(x, "proj33", "conv33a", "conv33b")]
        if self.pooltype == "max":
            pool = F.max_pooling_2d(x, 3, stride=self.stride, pad=1, cover_all=False)
        else:
            pool = F.average_pooling_2d(x, 3, stride=self.stride, pad=1)
        outs.append(pool if self.proj_pool is None else self._run(pool, "poolp"))
        return F.concat(outs, axis=1)


class MLPConvolution2D(ChainList):
    """A convolution, whose arguments are those of Convolution2D, and then 1x1 convolutions.

    out_channels is a tuple of the channels of all. The activation between them is F.relu by default.
    conv_init and bias_init are their initializers.
    """

    def __init__(self, in_channels, out_channels, ksize=None, stride=1, pad=0, activation=None, *,
                 conv_init=None, bias_init=None) -> None:
        if ksize is None:
            out_channels, ksize, in_channels = in_channels, out_channels, None
        assert len(out_channels) > 0
        super().__init__(
            Convolution2D(in_channels, out_channels[0], ksize, stride, pad, initialW=conv_init,
                          initial_bias=bias_init),
            *[Convolution2D(n_in, n_out, 1, initialW=conv_init, initial_bias=bias_init)
              for n_in, n_out in zip(out_channels, out_channels[1:])])
        self.activation = F.relu if activation is None else activation

    def forward(self, x) -> Any:
        for layer in self[:-1]:
            x = self.activation(layer(x))
        return self[-1](x)
