"""NumPy's functions on arrays of GPUs, with CuPy's names.

They are those of catena.functions, without graphs. ``xp = backend.get_array_module(x)`` is this
module for an array on a GPU, and numpy for others. Arrays of CuPy itself can be used in variables:
they share their memory by DLPack.
"""
from typing import Any

import numpy

from catena import _core
from catena._core import Array as ndarray
from catena.configuration import no_backprop_mode
from catena.kernels import ElementwiseKernel, ReductionKernel, elementwise, memoize, reduce

__all__ = ["ElementwiseKernel", "ReductionKernel", "array", "asarray", "asnumpy", "concatenate",
           "elementwise", "empty", "empty_like", "full", "full_like", "memoize", "ndarray", "ones",
           "ones_like", "random", "reduce", "zeros", "zeros_like"]

_names = {"amax": "max", "amin": "min", "divide": "div", "dot": "matmul", "multiply": "mul",
          "negative": "neg", "power": "pow", "ravel": "flatten", "subtract": "sub",
          "true_divide": "div"}


def _unwrapped(result):
    if isinstance(result, (list, tuple)):
        return type(result)(map(_unwrapped, result))
    return result._array if isinstance(result, _core.Variable) else result


def _on_arrays(name):
    from catena import functions
    function = getattr(functions, _names.get(name, name))

    def call(*args, **kwargs):
        with no_backprop_mode():
            return _unwrapped(function(*args, **kwargs))
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"numpy.{name}() as catena.functions.{function.__name__}() on arrays."
    return call


def __getattr__(name):
    value = getattr(numpy, name, None)
    is_constant = isinstance(value, (float, type)) or name == "newaxis"
    if name.startswith("_") or not is_constant and not callable(value):
        raise AttributeError(f"module 'catena.cupy' has no attribute {name!r}")
    if not is_constant:
        try:
            value = _on_arrays(name)
        except AttributeError:
            raise AttributeError(f"catena.functions has no function for numpy.{name}()") from None
    globals()[name] = value
    return value


def full(shape, fill_value, dtype=float) -> Any:
    """A new array on the current GPU, filled with a number."""
    return _core.full(shape, fill_value, dtype, _core.gpu(None))


def makers_of(dtype) -> Any:
    """The functions empty(), zeros() and ones(), with a default dtype."""
    def maker(value):
        return lambda shape, dtype=dtype: _core.full(shape, value, dtype, _core.gpu(None))
    return map(maker, (None, 0, 1))


empty, zeros, ones = makers_of(float)


def full_like(a, fill_value, dtype=None) -> Any:
    """A new array of the shape, dtype and device of another one."""
    return _core.full(a.shape, fill_value, a.dtype if dtype is None else dtype, a.device)


def _maker_like(value):
    return lambda a, dtype=None: full_like(a, value, dtype)


empty_like, zeros_like, ones_like = map(_maker_like, (None, 0, 1))


def asarray(a, dtype=None) -> Any:
    """The array on the current GPU, unless it is on a GPU; also of lists and numbers."""
    if not isinstance(a, ndarray):
        a = _core.as_array(a if hasattr(a, "__dlpack__") else numpy.asarray(a))
    a = a if dtype is None else a.astype(dtype)
    return a if a.device.is_gpu else a.to_device(_core.gpu(None))


def array(object, dtype=None) -> Any:
    """A copy of an array, list or number on the current GPU."""
    return asarray(object, dtype).copy()


def asnumpy(a) -> Any:
    """The array on the host, as a numpy.ndarray."""
    return _core.as_python(_core.as_array(a).to_device(-1))


def concatenate(arrays, axis=0) -> Any:
    """The arrays, joined along an axis."""
    return _on_arrays("concat")(list(arrays), axis)


class _Random:
    """Random numbers of numpy.random, on the current GPU."""

    def __getattr__(self, name):
        function = getattr(numpy.random, name)
        return lambda *args, **kwargs: asarray(function(*args, **kwargs))


random = _Random()
