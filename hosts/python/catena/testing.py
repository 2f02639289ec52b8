"""What tests of functions and links need, with the names of chainer.testing."""
import contextlib
import functools
import itertools
import sys
import warnings

import numpy

from catena import _core
from catena.variable import as_array

__all__ = ["assert_allclose", "assert_warns", "attr", "condition", "fix_random", "generate_seed",
           "parameterize", "product", "product_dict", "run_module", "save_and_load",
           "save_and_load_hdf5", "save_and_load_npz"]


def assert_allclose(x, y, atol=1e-5, rtol=1e-4, verbose=True):
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


def product(parameter):
    """All combinations: of ``{"a": [1, 2], "b": [3, 4]}``, or of the dicts in several lists."""
    if isinstance(parameter, dict):
        keys = sorted(parameter)
        return [dict(zip(keys, values))
                for values in itertools.product(*(parameter[key] for key in keys))]
    return [{key: value for each in found for key, value in each.items()}
            for found in itertools.product(*parameter)]


def product_dict(*parameters):
    """All combinations of a dict from each list."""
    return product(parameters)


def _each_class(decorator):
    """Lets a decorator of classes take the result of parameterize()."""
    @functools.wraps(decorator)
    def decorate(target):
        if not isinstance(target, list):
            return decorator(target)
        for cls in target:
            setattr(sys.modules[cls.__module__], cls.__name__, decorator(cls))
        return target
    return decorate


def parameterize(*params):
    """A decorator that makes a test class for each dict of attributes."""
    def decorate(target):
        made = []
        for cls in target if isinstance(target, list) else [target]:
            module = sys.modules[cls.__module__]
            for i, values in enumerate(params):
                name = f"{cls.__name__}_param_{i}"
                attributes = {key: staticmethod(value) if type(value) is type(product) else value
                              for key, value in values.items()}
                made.append(type(name, (cls,), {**attributes, "__module__": cls.__module__,
                                                "__doc__": f"{values}"}))
                setattr(module, name, made[-1])
            vars(module).pop(cls.__name__, None)
        return made
    return decorate


_depth = 0


@contextlib.contextmanager
def _fixed_random():
    global _depth
    before = numpy.random.get_state()
    _depth += 1
    numpy.random.seed(100)
    _core.set_seed(100)
    try:
        yield
    finally:
        _depth -= 1
        numpy.random.set_state(before)


def generate_seed():
    """A pseudorandom seed, which is the same in each run of a test with fix_random()."""
    assert _depth > 0, "random is not set up"
    return numpy.random.randint(0x7fffffff)


def fix_random(*, setup_method="setUp", teardown_method="tearDown"):
    """A decorator of test functions and classes: each run has the same pseudorandom numbers."""
    def decorate(target):
        if not isinstance(target, type):
            @functools.wraps(target)
            def test(*args, **kwargs):
                with _fixed_random():
                    return target(*args, **kwargs)
            return test
        setup = getattr(target, setup_method, lambda self: None)
        teardown = getattr(target, teardown_method, lambda self: None)

        def start(self):
            self._random = _fixed_random()
            self._random.__enter__()
            setup(self)

        def end(self):
            try:
                teardown(self)
            finally:
                self._random.__exit__(None, None, None)

        setattr(target, setup_method, start)
        setattr(target, teardown_method, end)
        return target
    return _each_class(decorate)


class condition:
    """Decorators of tests that succeed only with some probability."""

    @staticmethod
    def repeat_with_success_at_least(times, min_success):
        """Runs a test several times. Raises the last error if it succeeds too rarely."""
        def decorate(test):
            @functools.wraps(test)
            def run(*args, **kwargs):
                successes = 0
                for run_number in range(times):
                    try:
                        test(*args, **kwargs)
                        successes += 1
                    except Exception:
                        if times - run_number - 1 + successes < min_success:
                            raise
                    if successes >= min_success:
                        return
            return run
        return decorate

    @staticmethod
    def repeat(times):
        return condition.repeat_with_success_at_least(times, times)

    @staticmethod
    def retry(times):
        return condition.repeat_with_success_at_least(times, 1)


class attr:
    """Decorators that tell what tests need: ``@attr.gpu`` skips a test without a GPU."""

    @staticmethod
    def multi_gpu(gpu_num):
        import unittest
        return _each_class(unittest.skipIf(_core.gpu_count() < gpu_num, f"{gpu_num} GPUs required"))

    @staticmethod
    def gpu(test):
        return attr.multi_gpu(1)(test)

    cudnn = gpu

    @staticmethod
    def slow(test):
        return test


@contextlib.contextmanager
def assert_warns(expected):
    """Raises AssertionError unless the scope warns with this class, and with no other."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    if not any(isinstance(each.message, expected) for each in seen):
        raise AssertionError(f"{expected.__name__} not triggered")
    for each in seen:
        if not isinstance(each.message, expected):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def save_and_load(src, dst, filename, saver, loader):
    """Saves an object with ``saver(path, src)`` in a temporary folder, and loads another."""
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, filename)
        saver(path, src)
        loader(path, dst)


def save_and_load_npz(src, dst):
    from catena import serializers
    save_and_load(src, dst, "tmp.npz", serializers.save_npz, serializers.load_npz)


def save_and_load_hdf5(src, dst):
    from catena import serializers
    save_and_load(src, dst, "tmp.h5", serializers.save_hdf5, serializers.load_hdf5)


def run_module(name, file):
    """Runs the tests of a file that is run as a program."""
    if name == "__main__":
        import pytest
        pytest.main([file, "-vvs", "-x"])
