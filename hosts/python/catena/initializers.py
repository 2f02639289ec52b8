"""Initial values of parameters, with the names and defaults of chainer.initializers."""
import numpy


class Initializer:
    """Fills an array. A subclass implements ``__call__(array)``."""

    def __init__(self, dtype=None):
        self.dtype = dtype

    def __call__(self, array):
        raise NotImplementedError


class Constant(Initializer):
    """Fills with a number or an array."""

    def __init__(self, fill_value, dtype=None):
        self.fill_value = fill_value
        super().__init__(dtype)

    def __call__(self, array):
        array[...] = self.fill_value


def NaN(dtype=None):
    return Constant(numpy.nan, dtype)


def generate_array(initializer, shape, xp=None, dtype=None, device=None):
    """A new array of the shape with the initializer's values, in its dtype or config.dtype."""
    from catena.configuration import config
    array = numpy.empty(shape, dtype or getattr(initializer, "dtype", None) or config.dtype)
    initializer(array)
    return array
