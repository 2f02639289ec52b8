"""Helpers with the names of chainer.utils."""
import contextlib

from . import conv, type_check
from catena.utils.conv import *
from catena.utils.type_check import InvalidType as InvalidType
from catena.utils.walker_alias import *


@contextlib.contextmanager
def tempdir(**kwargs):
    """A temporary folder that is removed at the end of the scope. kwargs: of tempfile.mkdtemp()."""
    import shutil
    import tempfile
    folder = tempfile.mkdtemp(**kwargs)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def force_array(x, dtype=None):
    """A number or a numpy.ndarray as a numpy.ndarray, of a dtype unless it is None."""
    import numpy
    return numpy.asarray(x, dtype)


def size_of_shape(shape):
    """The number of elements of an array of the shape."""
    import math
    return math.prod(shape)
