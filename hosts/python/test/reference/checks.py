"""Checks of what the blocks compute."""
import unittest

import numpy as np
import pytest

import catena

PRINTED = {"array": np.array, "float32": np.float32}
DTYPES = ["float16", "float32", "float64"]


def same_numbers(value, printed):
    expected = eval(printed, PRINTED)
    assert value.dtype == expected.dtype
    np.testing.assert_allclose(value, expected, rtol=1e-6)


def same_shape(value, printed):
    expected = eval(printed, PRINTED)
    assert value.shape == expected.shape
    assert value.dtype == np.float32  # the document leaves it out for y.data


def uniform(*shape, dtype="float32"):
    return np.random.uniform(-1, 1, shape).astype(dtype)


def images(n, labels=10):
    """Images of 784 pixels as bytes, and labels that a linear classifier can learn."""
    random = np.random.RandomState(0)
    means = random.randint(0, 200, (labels, 784))
    target = random.randint(0, labels, n)
    return (means[target] + random.randint(0, 56, (n, 784))).astype(np.uint8), target


class Mnist:
    data, target = images(1200)


def check_mul_add(apply, to_gpu=None, dtype="float32", gradients=True):
    """Compares a function that computes x * y + z, and its gradients."""
    arrays = [uniform(3, 2, dtype=dtype) for _ in range(4)]
    there = [to_gpu(a) if to_gpu else a for a in arrays]
    x, y, z = (catena.Variable(a) for a in there[:3])
    w = apply(x, y, z)
    to_cpu = catena.cuda.to_cpu
    assert w.device.is_gpu == bool(to_gpu)
    tolerance = {"float16": 5e-3, "float32": 1e-6, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(to_cpu(w.data), arrays[0] * arrays[1] + arrays[2], tolerance, tolerance)
    if gradients:
        w.grad = there[3]
        w.backward()
        for v, expected in [(x, arrays[1] * arrays[3]), (y, arrays[0] * arrays[3]), (z, arrays[3])]:
            np.testing.assert_allclose(to_cpu(v.grad), expected, tolerance, tolerance)
    return x, y, z, w


def passes(case):
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun == 1
    assert not result.errors + result.failures, (result.errors + result.failures)[0][1]


@pytest.fixture
def gpus():
    """Logical CPU devices as GPUs."""
    before = catena._core.current_device()
    catena.cuda.set_backend("cpu")
    yield
    before.use()
    catena.cuda.set_backend("")
