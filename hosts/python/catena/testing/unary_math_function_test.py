"""Tests of functions of one array that work on each element."""
from typing import Any

import numpy

from catena.testing import attr
from catena.testing.array import assert_allclose
from catena.testing.parameterized import parameterize, product


def _uniform(shape, dtype):
    return tuple(numpy.random.uniform(-1, 1, shape).astype(dtype) for _ in range(3))


def unary_math_function_unittest(func, func_expected=None, label_expected=None, make_data=None,
                                 is_linear=None, forward_options=None, backward_options=None,
                                 double_backward_options=None) -> Any:
    """A decorator that adds tests of a function to a class derived from unittest.TestCase.

    Args:
        func: the function, or a catena.Function without second derivatives.
        func_expected: computes the results with NumPy; by default, NumPy's function of this name.
        label_expected: the label of a catena.Function.
        make_data: makes the input, and the gradients of first and second order, from a shape and
            a dtype; by default, between -1 and 1.
        is_linear: has no effect.
        forward_options, backward_options, double_backward_options: arguments of assert_allclose(),
            check_backward() and check_double_backward().
    """
    import catena
    from catena import cuda, gradient_check
    old_style = isinstance(func, catena.Function)
    name = type(func).__name__.lower() if old_style else func.__name__
    if func_expected is None:
        func_expected = getattr(numpy, name, None)
        if func_expected is None:
            raise ValueError("[unary_math_function_unittest] func_expected: expected a function, "
                             f"because NumPy has no {name!r}, got None")
    if label_expected is not None and not old_style:
        raise ValueError("[unary_math_function_unittest] label_expected: expected None for a "
                         f"function that is no catena.Function, got {label_expected!r}")

    def options(self, given, forward=False):
        half = self.dtype == numpy.float16
        if forward:
            tolerance = numpy.finfo("float16").eps if half else 1e-4
            return {"atol": tolerance, "rtol": tolerance, **(given or {})}
        found = {"eps": 2 ** -4, "atol": 2 ** -4, "rtol": 2 ** -4} if half else {
            "atol": 1e-4, "rtol": 1e-4}
        return {**found, "dtype": numpy.float64, **(given or {})}

    class Tests:
        def setUp(self):
            data = (make_data or _uniform)(self.shape, self.dtype)
            self.x, self.gy, self.ggx = data if len(data) == 3 else (*data, None)

        def check_forward(self, x):
            y = func(catena.Variable(x))
            assert y.dtype == x.dtype
            expected = func_expected(cuda.to_cpu(x), dtype=x.dtype)
            assert_allclose(expected, y.array, **options(self, forward_options, True))

        def check_backward(self, x, gy):
            gradient_check.check_backward(func, x, gy, **options(self, backward_options))

        def check_double_backward(self, x, gy, ggx):
            gradient_check.check_double_backward(
                func, x, gy, ggx, **options(self, double_backward_options))

        def test_label(self):
            assert func.label == (label_expected or name)

    for check, n in [("forward", 1), ("backward", 2), ("double_backward", 3)]:
        def test(self, check=f"check_{check}", n=n, move=cuda.to_cpu):
            getattr(self, check)(*map(move, (self.x, self.gy, self.ggx)[:n]))

        def test_on_gpu(self, test=test):
            test(self, move=cuda.to_gpu)

        setattr(Tests, f"test_{check}_cpu", test)
        setattr(Tests, f"test_{check}_gpu", attr.gpu(test_on_gpu))

    def decorate(cls):
        for key, value in vars(Tests).items():
            if key.startswith("__") or ("double" in key and old_style) or (
                    key == "test_label" and not old_style):
                continue
            setattr(cls, key, value)
        return parameterize(*product({
            "shape": [(3, 2), ()],
            "dtype": [numpy.float16, numpy.float32, numpy.float64]}))(cls)
    return decorate
