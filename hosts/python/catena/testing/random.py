"""Tests with the same pseudorandom numbers in each run."""
import contextlib
import functools
from typing import Any

import numpy

from catena import _core
from catena.testing.parameterized import each_class

_depth = 0


@contextlib.contextmanager
def _fixed_random():
    global _depth
    before = numpy.random.get_state()
    if _depth == 0:
        numpy.random.seed(100)
        _core.set_seed(100)
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            numpy.random.set_state(before)


def generate_seed() -> Any:
    """A pseudorandom seed, which is the same in each run of a test with fix_random()."""
    assert _depth > 0, "random is not set up"
    return numpy.random.randint(0x7fffffff)


def fix_random(*, setup_method="setUp", teardown_method="tearDown") -> Any:
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
    return each_class(decorate)
