"""Comparison of arrays of any devices."""
import numpy

from catena import _core
from catena.variable import as_array


def assert_allclose(x, y, atol=1e-5, rtol=1e-4, verbose=True) -> None:
    """Raises AssertionError unless |x - y| <= atol + rtol |y| for all elements, on any devices."""
    x, y = (numpy.asarray(as_array(each)) for each in (x, y))
    try:
        numpy.testing.assert_allclose(x, y, rtol=rtol, atol=atol, verbose=verbose)
    except AssertionError as error:
        lines = [str(error), "", "assert_allclose failed:", f"  shape: {x.shape} {y.shape}",
                 f"  dtype: {x.dtype} {y.dtype}"]
        if x.shape == y.shape:
            difference = numpy.abs(x.astype(float) - y)
            allowed = atol + rtol * numpy.abs(y.astype(float))
            worst = numpy.unravel_index(numpy.argmax(difference - allowed), x.shape)
            lines += [f"  i: {tuple(map(int, worst))}", f"  x[i]: {x[worst]}",
                      f"  y[i]: {y[worst]}", f"  absolute error[i]: {difference[worst]}",
                      f"  total tolerance: {allowed[worst]}"]
        with numpy.printoptions(threshold=10000):
            lines += [f"x: {x}", f"y: {y}"]
        raise AssertionError("\n".join(lines)) from None


def _as_noncontiguous_array(array):
    """Copies of arrays on the host whose elements do not follow one another in memory."""
    if isinstance(array, (list, tuple)):
        return type(array)(map(_as_noncontiguous_array, array))
    if array is None or isinstance(array, _core.Array) or array.size <= 1:
        return array
    made = numpy.empty([2 * n for n in array.shape], array.dtype)
    made = made[(slice(None, None, -2),) * array.ndim]
    made[...] = array
    return made
