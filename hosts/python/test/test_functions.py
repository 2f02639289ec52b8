"""The functions against Chainer's: values, gradients and second derivatives in all dtypes."""
import inspect
import warnings

import numpy as np
import pytest

import catena
import catena.functions as F
from function_cases import Constant, Input, cases, elsewhere

chainer = pytest.importorskip("chainer")
pytestmark = pytest.mark.filterwarnings("ignore")

tolerances = {np.float16: 5e-3, np.float32: 2e-5, np.float64: 1e-9}


def functions_of(module):
    """The names of the functions of a module."""
    return {name for name in dir(module) if not name.startswith("_")
            and callable(getattr(module, name)) and not inspect.isclass(getattr(module, name))}


both = functions_of(chainer.functions) & functions_of(F)


def made(value, dtype, seed):
    """The argument with arrays for inputs."""
    if isinstance(value, Input):
        return value.make(dtype, seed)
    if isinstance(value, (list, tuple)):
        return type(value)(made(each, dtype, f"{seed}.{i}") for i, each in enumerate(value))
    return value


def with_variables(value, given, package, variables):
    """The argument with variables for inputs with a gradient, which are collected."""
    if isinstance(value, Input) and not isinstance(value, Constant):
        variables.append(package.Variable(given.copy()))
        return variables[-1]
    if isinstance(value, (list, tuple)):
        return type(value)(with_variables(*pair, package, variables) for pair in zip(value, given))
    return given.copy() if isinstance(given, np.ndarray) else given


def flat(results):
    if isinstance(results, (list, tuple)):
        return [each for result in results for each in flat(result)]
    return [results]


def array(x):
    return None if x is None else np.asarray(getattr(x, "array", x))


def run(package, case, args, kwargs, double):
    """The results, the gradients, and the gradients of these."""
    variables = []
    filled = [with_variables(*pair, package, variables) for pair in zip(case.args, args)]
    named = {key: with_variables(value, kwargs[key], package, variables)
             if key not in ("class_weight", "running_mean", "running_var") else kwargs[key].copy()
             for key, value in case.kwargs.items()}
    result = getattr(package.functions, case.name)(*filled, **named)
    outputs = [y for y in flat(result) if isinstance(y, package.Variable) and y.dtype.kind == "f"]
    total = weighted_sum(package, outputs)
    nothing = [None] * len(variables)
    if not variables or total is None:
        return result, nothing, nothing
    firsts = package.grad([total], variables, enable_double_backprop=double)
    total = weighted_sum(package, [g for g in firsts if g is not None]) if double else None
    seconds = [] if total is None else package.grad([total], variables)
    return result, firsts, seconds or nothing


def weighted_sum(package, variables):
    """A number with second derivatives; None if there is nothing to differentiate."""
    random, total = np.random.RandomState(len(variables)), None
    for y in variables:
        weights = random.uniform(0.5, 1.5, y.shape).astype(y.dtype)
        y = package.functions.sum(y * y * weights) if y.ndim else y * y * weights
        total = y if total is None else total + y
    return total if total is not None and total.creator is not None else None


def assert_close(got, expected, dtype, tolerance):
    got, expected = array(got), array(expected)
    if expected is None or got is None:
        nothing = np.zeros(1) if expected is None else expected
        assert got is None or expected is None and not got.any() or not nothing.any()
        return
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    bound = tolerances[dtype] * tolerance
    largest = np.abs(expected, where=np.isfinite(expected),
                     out=np.zeros_like(expected)).max(initial=1)
    np.testing.assert_allclose(got, expected, rtol=bound, atol=bound * largest)


@pytest.mark.parametrize("case", cases, ids=repr)
def test_function(case):
    for dtype in case.dtypes:
        args = [made(value, dtype, f"{case.name}{i}") for i, value in enumerate(case.args)]
        kwargs = {key: made(value, dtype, case.name + key) for key, value in case.kwargs.items()}
        double = case.double and dtype is np.float64
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = run(chainer, case, args, kwargs, double)
        got = run(catena, case, args, kwargs, double)
        assert isinstance(got[0], tuple) == isinstance(expected[0], (tuple, list))
        tolerance = case.tolerance if dtype is np.float16 else 1
        for what, y, z in zip(("values", "gradients", "second derivatives"), got, expected):
            y, z = flat(y), flat(z)
            assert len(y) == len(z), what
            for i, pair in enumerate(zip(y, z)):
                try:
                    assert_close(*pair, dtype, tolerance)
                except AssertionError as error:
                    raise AssertionError(f"{dtype.__name__} {what}[{i}]: {error}") from None


def test_every_function_that_both_have_is_called():
    assert both - {case.name for case in cases} - elsewhere == set()


@pytest.mark.parametrize("name", sorted(both))
def test_signature(name):
    """Chainer's parameters come first, with its names and defaults."""
    expected = inspect.signature(getattr(chainer.functions, name)).parameters.values()
    got = inspect.signature(getattr(F, name)).parameters
    assert getattr(F, name).__doc__
    for given, parameter in zip(got.values(), expected):
        if parameter.kind is parameter.VAR_KEYWORD:
            break
        assert given.name == parameter.name
        assert given.kind == parameter.kind
        if parameter.default is not parameter.empty:
            assert given.default == parameter.default
    assert len(got) >= len(expected) - 1
