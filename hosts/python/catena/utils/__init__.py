"""Helpers with the names of chainer.utils."""
import collections.abc as collections_abc
from typing import Any

from . import argument, array, cache, conv, conv_nd, meta, precision, type_check
from catena.utils.array import *
from catena.utils.conv import *
from catena.utils.experimental import *
from catena.utils.meta import *
from catena.utils.type_check import InvalidType as InvalidType
from catena.utils.walker_alias import *


def tempdir(**kwargs) -> Any:
    """A temporary folder that is removed at the end of the scope. kwargs: of tempfile.mkdtemp()."""
    import tempfile
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True, **kwargs)


def force_array(x, dtype=None) -> Any:
    """A number or an array as an array, of a dtype unless it is None."""
    import numpy
    if numpy.isscalar(x):
        return numpy.array(x, dtype)
    return x if dtype is None or x.dtype == dtype else x.astype(dtype)


def force_type(dtype, value) -> Any:
    """A number or an array in a dtype."""
    import numpy
    if numpy.isscalar(value):
        return numpy.dtype(dtype).type(value)
    return value if value.dtype == dtype else value.astype(dtype)
