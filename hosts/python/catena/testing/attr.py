"""Decorators that tell what tests need: ``@attr.gpu`` skips a test without a GPU."""
import unittest
from typing import Any

from catena import _core
from catena.testing.parameterized import each_class


def multi_gpu(gpu_num) -> Any:
    """Skips a test unless there are so many GPUs."""
    return each_class(unittest.skipIf(_core.gpu_count() < gpu_num, f"{gpu_num} GPUs required"))


def gpu(test) -> Any:
    """Skips a test unless there is a GPU."""
    return multi_gpu(1)(test)


cudnn = gpu


def _absent(name):
    return each_class(unittest.skip(f"{name} required, which catena does not use"))


chainerx = _absent("ChainerX")
ideep = _absent("iDeep")


def slow(test) -> Any:
    """Marks a test that takes long."""
    import pytest
    return pytest.mark.slow(test)
