"""What the modules of functions share."""
import functools
import itertools

from catena import _core
from catena.variable import as_variable


class _Plugins:
    """Functions of plugins without Chainer's forms: ``plugins.relu`` is ``catena.relu``."""

    def __getattr__(self, name):
        function = _core.plugin_function("catena." + name)
        setattr(self, name, function)
        return function


plugins = _Plugins()


def variable(x, function, name="x", ndim=None):
    """The argument as a variable. TypeError unless it is an array, ShapeError for other axes."""
    if x is None:
        raise TypeError(f"[{function}] {name}: expected a variable or an array, got None")
    x = as_variable(x)
    if ndim is not None and x.ndim != ndim:
        raise _core.ShapeError(
            f"[{function}] {name}: expected {ndim} axes, got the shape {x.shape}")
    return x


def variables(function, **arguments):
    """The arguments as variables."""
    return [variable(value, function, name) for name, value in arguments.items()]


def indices(numbers, device):
    """Integers as a variable on a device."""
    import numpy
    return as_variable(_core.Array(numpy.array(numbers, "int64"), device=device))


def ends_of(lengths):
    """Where sequences end that are joined."""
    return list(itertools.accumulate(lengths))


def as_tuple(value, n, function, name):
    """One number for each of n axes."""
    if not isinstance(value, int):
        value = tuple(value)
        if len(value) != n:
            raise ValueError(f"[{function}] {name}: expected one number or {n}, got {value}")
        return value
    return (value,) * n


def check_choice(function, argument, value, choices):
    """Raises ValueError unless the value is one of the choices."""
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"[{function}] {argument}: expected one of {known}, got {value!r}")


def casting(function):
    """Lets a function of x, W and b take W and b of another floating dtype than that of x."""
    @functools.wraps(function)
    def call(x, W, b=None, *args, **kwargs):
        try:
            return function(x, W, b, *args, **kwargs)
        except _core.DtypeError:
            arrays = [as_variable(each) for each in (x, W, b) if each is not None]
            dtypes = {str(each.dtype) for each in arrays}
            if len(dtypes) == 1 or not all("float" in dtype for dtype in dtypes):
                raise
        x, *parameters = arrays
        cast = [plugins.cast(each, x.dtype) for each in parameters]
        return function(x, *cast, *(() if b is not None else (None,)), *args, **kwargs)
    return call
