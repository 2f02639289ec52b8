"""Initial values of parameters, with the names and defaults of chainer.initializers.

Random values are drawn on the host from numpy.random, as in Chainer: after ``numpy.random.seed(0)``
they are the same as there.
"""
import math
from typing import Any

import numpy

from catena import _core
from catena.configuration import get_dtype

__all__ = ["Constant", "DownsamplingConvFilter", "GlorotNormal", "GlorotUniform", "HeNormal",
           "HeUniform", "Identity", "Initializer", "LeCunNormal", "LeCunUniform", "NaN", "Normal",
           "One", "Orthogonal", "Uniform", "UpsamplingDeconvFilter", "Zero", "generate_array",
           "get_fans"]


def get_fans(shape) -> Any:
    """The numbers of inputs and outputs of a weight (out, in, ...) per position."""
    if not isinstance(shape, tuple):
        raise ValueError(f"shape must be tuple. Actual type: {type(shape)}")
    if len(shape) < 2:
        raise ValueError(f"shape must be of length >= 2. Actual shape: {shape}")
    positions = math.prod(shape[2:])
    return shape[1] * positions, shape[0] * positions


class Initializer:
    """Fills an array. A subclass implements ``__call__(array)``.

    Args:
        dtype: the dtype of the arrays to fill; None for any, and config.dtype for new ones.
    """

    def __init__(self, dtype=None) -> None:
        self.dtype = dtype

    def __call__(self, array) -> Any:
        raise NotImplementedError

    def _store(self, array, values):
        assert self.dtype in (None, "bfloat16") or array.dtype == self.dtype, \
            f"{array.dtype} != {self.dtype}"
        if isinstance(array, numpy.ndarray):
            array[...] = values
        else:
            values = numpy.array(numpy.broadcast_to(values, array.shape), order="C")
            array.copy_from(_core.as_array(values).astype(str(array.dtype)))


class Constant(Initializer):
    """Fills with a number or an array, which is broadcast."""

    def __init__(self, fill_value, dtype=None) -> None:
        if not _is_array(fill_value) and not numpy.isscalar(fill_value):
            raise ValueError("fill_value must be either scalar, numpy.ndarray or another array, "
                             f"got {type(fill_value)}")
        self.fill_value = fill_value
        super().__init__(dtype)

    def __call__(self, array) -> None:
        value = self.fill_value
        self._store(array, _core.as_array(value).to_device(-1) if _is_array(value) else value)


class Zero(Constant):
    """Fills with zeros."""

    def __init__(self, dtype=None) -> None:
        super().__init__(0.0, dtype)


class One(Constant):
    """Fills with ones."""

    def __init__(self, dtype=None) -> None:
        super().__init__(1.0, dtype)


class NaN(Constant):
    """Fills with NaN."""

    def __init__(self, dtype=None) -> None:
        super().__init__(numpy.nan, dtype)


class Identity(Initializer):
    """Fills with a multiple of the identity matrix."""

    def __init__(self, scale=1.0, dtype=None) -> None:
        self.scale = scale
        super().__init__(dtype)

    def __call__(self, array) -> None:
        shape = array.shape
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError("Identity matrix initialization can only be used for 2D squared "
                             f"matrices, got the shape {shape}")
        self._store(array, numpy.identity(shape[0]) * self.scale)


class _Random(Initializer):
    """Draws all elements from one distribution, whose parameter is the spread."""

    def __init__(self, scale=1.0, dtype=None, *, rng=None) -> None:
        self.scale = scale
        self.rng = rng
        super().__init__(dtype)

    def __call__(self, array) -> None:
        spread = self._spread(*get_fans(array.shape))
        self._store(array, self._draw(self.rng or numpy.random, self.scale * spread, array.shape))

    def _spread(self, fan_in, fan_out):
        """The spread for the scale 1."""
        raise NotImplementedError


class _Normal(_Random):
    def _draw(self, random, spread, shape):
        return random.normal(loc=0.0, scale=spread, size=shape)


class _Uniform(_Random):
    def _draw(self, random, spread, shape):
        return random.uniform(low=-spread, high=spread, size=shape)


class _OfAnyShape(_Random):
    def __init__(self, scale=0.05, dtype=None, *, rng=None) -> None:
        super().__init__(scale, dtype, rng=rng)

    def __call__(self, array) -> None:
        self._store(array, self._draw(self.rng or numpy.random, self.scale, array.shape))


class Normal(_OfAnyShape, _Normal):
    """Draws from the normal distribution with the mean 0 and the standard deviation ``scale``."""


class LeCunNormal(_Normal):
    """Draws from the normal distribution with the standard deviation scale * sqrt(1 / fan_in)."""

    def _spread(self, fan_in, fan_out):
        return numpy.sqrt(1. / fan_in)


class GlorotNormal(_Normal):
    """As LeCunNormal, with scale * sqrt(2 / (fan_in + fan_out))."""

    def _spread(self, fan_in, fan_out):
        return numpy.sqrt(2. / (fan_in + fan_out))


class HeNormal(_Normal):
    """As LeCunNormal, with scale * sqrt(2 / fan_in), or fan_out by ``fan_option="fan_out"``."""

    def __init__(self, scale=1.0, dtype=None, fan_option="fan_in", *, rng=None) -> None:
        self.fan_option = fan_option
        super().__init__(scale, dtype, rng=rng)

    def _spread(self, fan_in, fan_out):
        if self.fan_option not in ("fan_in", "fan_out"):
            raise ValueError("fan_option should be either 'fan_in' or 'fan_out', "
                             f"got {self.fan_option!r}")
        return numpy.sqrt(2. / (fan_in if self.fan_option == "fan_in" else fan_out))


class Uniform(_OfAnyShape, _Uniform):
    """Draws from the uniform distribution over [-scale, scale)."""


class LeCunUniform(_Uniform):
    """Draws from [-s, s) with s = scale * sqrt(3 / fan_in)."""

    def _spread(self, fan_in, fan_out):
        return numpy.sqrt(3. / fan_in)


class GlorotUniform(_Uniform):
    """Draws from [-s, s) with s = scale * sqrt(6 / (fan_in + fan_out))."""

    def _spread(self, fan_in, fan_out):
        return numpy.sqrt(6. / (fan_in + fan_out))


class HeUniform(_Uniform):
    """Draws from [-s, s) with s = scale * sqrt(6 / fan_in)."""

    def _spread(self, fan_in, fan_out):
        return numpy.sqrt(6. / fan_in)


class Orthogonal(Initializer):
    """Fills with ``scale`` times orthonormal rows or columns, whichever are fewer.

    ``mode`` restricts the shapes (out, in, ...): "embedding" demands in <= out, "projection"
    in >= out, "basis" both, "auto" nothing.
    """

    _modes = {"auto": (False, False), "projection": (False, True), "embedding": (True, False),
              "basis": (True, True)}

    def __init__(self, scale=1.1, dtype=None, mode="auto", *, rng=None) -> None:
        if mode not in self._modes:
            raise ValueError(f"Invalid mode: {mode!r}. Choose from "
                             f"{', '.join(map(repr, self._modes))}.")
        self.scale = scale
        self.mode = mode
        self.rng = rng
        super().__init__(dtype)

    def __call__(self, array) -> None:
        random = self.rng or numpy.random
        if not array.shape:
            self._store(array, self.scale * (2 * int(random.randint(2)) - 1))
            return
        if not array.size:
            raise ValueError("Array to be initialized must be non-empty.")
        out_size = array.shape[0]
        in_size = array.size // out_size
        needs_embedding, needs_projection = self._modes[self.mode]
        if (needs_embedding and in_size > out_size) or (needs_projection and in_size < out_size):
            raise ValueError(f"Cannot make orthogonal {self.mode}. shape = {array.shape}, "
                             f"interpreted as {in_size}-dim input and {out_size}-dim output.")
        drawn = random.normal(size=(out_size, in_size))
        wide = in_size > out_size
        q, r = numpy.linalg.qr(drawn.T if wide else drawn)
        q = q * numpy.copysign(self.scale, numpy.diag(r))
        self._store(array, (q.T if wide else q).reshape(array.shape))


class _SamplingFilter(Initializer):
    """Fills a weight (in, out, k, ...) with a filter that interpolates each channel linearly."""

    _sum = None  # of the elements of the filter; None for a maximum of 1

    def __init__(self, interpolation="linear", dtype=None) -> None:
        if interpolation != "linear":
            raise ValueError(f"Unsupported interpolation method: {interpolation}")
        super().__init__(dtype)

    def __call__(self, array) -> None:
        n_in, n_out = array.shape[:2]
        sizes = array.shape[2:]
        assert n_out in (1, n_in), f"expected {n_in} or 1 output channels, got {n_out}"
        if len(set(sizes)) > 1:
            raise ValueError(f"ksize must be all same: got {sizes}")
        values = numpy.ones(())
        for size in sizes:
            half = (size + 1) // 2
            center = half - (1.0 if size % 2 == 1 else 0.5)
            values = values[..., None] * (1.0 - abs(numpy.arange(size) - center) / half)
        if self._sum is not None:
            values *= self._sum / values.sum()
        weight = numpy.zeros(array.shape)
        channels = numpy.arange(n_in)
        weight[channels, 0 if n_out == 1 else channels] = values
        self._store(array, weight)


class UpsamplingDeconvFilter(_SamplingFilter):
    """The weight of a deconvolution that enlarges images by linear interpolation."""


class DownsamplingConvFilter(_SamplingFilter):
    """The weight of a convolution that reduces images by linear interpolation."""

    _sum = 1.0


def _is_array(value):
    return not numpy.isscalar(value) and (
        isinstance(value, _core.Array) or hasattr(value, "__array_struct__")
        or hasattr(value, "__dlpack__"))


def _get_initializer(initializer, default=None):
    """An initializer from a number, an array, a callable or None: the default, else LeCunNormal."""
    initializer = default if initializer is None else initializer
    if initializer is None:
        return LeCunNormal()
    if numpy.isscalar(initializer) or (_is_array(initializer) and not callable(initializer)):
        return Constant(initializer)
    if not callable(initializer):
        raise TypeError(f"invalid type of initializer: {type(initializer)}")
    return initializer


def generate_array(initializer, shape, xp=None, dtype=None, device=None) -> Any:
    """A new array with the initializer's values.

    Args:
        initializer: a callable that fills an array on the host.
        shape: a tuple or an integer.
        xp: numpy or cupy, for the host or the current GPU.
        dtype: by default that of the initializer, else config.dtype.
        device: the device of the array, instead of ``xp``.
    """
    own_dtype = getattr(initializer, "dtype", None)
    if dtype is not None and own_dtype is not None and get_dtype(dtype) != get_dtype(own_dtype):
        raise ValueError(f"dtype mismatch: {dtype} != {own_dtype}")
    dtype = get_dtype(own_dtype if dtype is None else dtype)
    if device is None and xp is not None and xp is not numpy:
        device = _core.gpu(None)
    elif device is not None and not isinstance(device, _core.Device):
        device = _core.Device(device)
    array = numpy.empty(shape, "float32" if dtype == "bfloat16" else dtype)
    initializer(array)
    moves = device is not None and not device.host_accessible
    if dtype != "bfloat16" and not moves:
        return array
    array = _core.as_array(array).astype(str(dtype))
    return _core.as_python(array.to_device(device) if moves else array)


def __getattr__(name):
    # Chainer's modules, whose contents are here.
    if name in ("constant", "normal", "orthogonal", "sampling", "uniform"):
        import sys
        return sys.modules[__name__]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
