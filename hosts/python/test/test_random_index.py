"""8,000 random index expressions against NumPy: get, gradients, set, scatter_add, and errors."""
import warnings

import catena
import catena.functions as F
import numpy as np
import pytest
from catena._core import as_array
from differential import random_of, times

BLOCKS, CALLS = 20, 400


def random_int(random, n):
    """An index of an axis of n; 1 of 30 is out of range."""
    low, high = (-n, n - 1) if n and random.randint(30) else (-n - 2, n + 1)
    return int(random.randint(low, high + 1))


def random_slice(random, n):
    def bound():
        return None if random.randint(3) == 0 else int(random.randint(-n - 3, n + 4))
    return slice(bound(), bound(), random.choice([None, None, 1, 2, 3, -1, -1, -2, -5]))


def random_array(random, n, shape):
    dtype = random.choice(["int32", "int64", "int64", "uint8"])
    numbers = np.array([random_int(random, n) for _ in range(int(np.prod(shape)))]).reshape(shape)
    if dtype == "uint8":
        numbers = abs(numbers) % max(n, 1)
    numbers = numbers.astype(dtype)
    return numbers.tolist() if random.randint(4) == 0 and numbers.size else numbers


def random_mask(random, shape):
    if random.randint(30) == 0:  # one that does not fit
        shape = tuple(n + 1 for n in shape)
    return np.asarray(random.rand(*shape) < random.choice([0, 0.3, 0.7, 1]))


def random_key(random, shape):
    """A tuple, or one index."""
    key, axis, dots = [], 0, False
    # the shape that arrays broadcast to
    arrays = tuple(random.choice([1, 2, 3], random.randint(3)))
    while random.randint(6) and (axis < len(shape) or random.randint(3) == 0):
        n, kind = shape[axis] if axis < len(shape) else 2, random.randint(14)
        if kind < 4:
            key.append(random_slice(random, n))
        elif kind < 7:
            key.append(random_int(random, n))
            if kind == 4 and key[-1] >= 0:
                key[-1] = random.choice([np.int64, np.array, np.uint8])(key[-1])
        elif kind < 8:
            key.append(None)
            axis -= 1
        elif kind < 9 and not dots:
            key.append(...)
            dots = True
            axis += random.randint(2)
        elif kind < 12:
            sizes = tuple(random.choice([n, 1]) for n in arrays)
            if random.randint(20) == 0:
                sizes = (random.randint(4),)  # may not broadcast
            key.append(random_array(random, n, sizes))
        else:
            axes = random.randint(3)
            key.append(random_mask(random, shape[axis:axis + axes]))
            axis += axes - 1
        axis += 1
    if random.randint(100) == 0:
        key.append(random.choice([1.5, "a", None]))
    return key[0] if len(key) == 1 and random.randint(2) else tuple(key)


def has_empty_mask(key):
    return any(isinstance(each, np.ndarray) and each.dtype == bool and each.size == 0
               for each in (key if isinstance(key, tuple) else (key,)))


def outcome(call):
    """The array, or the class of the error.

    NumPy only warns of an index out of range if the result is empty: this counts as an error.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.asarray(call())
    except Exception as error:
        return type(error)


def agree(ours, theirs):
    if isinstance(theirs, type):
        return isinstance(ours, type) and issubclass(ours, (IndexError, ValueError))
    return (not isinstance(ours, type) and ours.dtype == theirs.dtype
            and ours.shape == theirs.shape and np.array_equal(ours, theirs))


def added(a, key, values):
    a = a.astype("float64")
    np.add.at(a, key, values)
    return a


def changed(a, key, values):
    a = a.copy()
    a[key] = values
    return a


def gradient(x, key, g):
    y = x[key]
    y.grad = g
    y.backward()
    return x.grad


@pytest.mark.parametrize("block", range(times(BLOCKS)))
def test_random_keys(block):
    random, refused = random_of(f"index {block}"), 0
    for i in range(CALLS):
        shape = tuple(random.choice(6, random.randint(5), p=[.04, .16, .2, .2, .2, .2]).tolist())
        dtype = random.choice(["float16", "float32", "float64", "int32", "bool"])
        a = (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)
        key = random_key(random, shape)
        text = f"call {i}: {dtype}{shape}[{key!r}]"
        theirs = outcome(lambda: a[key])
        if not isinstance(theirs, type) and theirs.size == 0 and has_empty_mask(key):
            continue  # NumPy does not check the shape of an empty mask then
        for x in (catena.Variable(a), as_array(a)):
            ours = outcome(lambda: getattr(x[key], "array", x[key]))
            assert agree(ours, theirs), f"{text}: expected {theirs}, got {ours}"
        if isinstance(theirs, type):
            refused += 1
            continue
        times_read = added(np.zeros(shape), key, 1)
        values = random.randint(1, 9, theirs.shape[random.randint(2) * theirs.ndim:]).astype(dtype)
        if times_read.max(initial=0) <= 1:  # else the order of the writes decides
            ours = outcome(lambda: F.set_item(a, key, values).array)
            theirs_set = changed(a, key, values)
            assert agree(ours, theirs_set), (
                f"set_item, {text} = {values!r}: expected {theirs_set}, got {ours}")
        if dtype.startswith("float"):
            g = random.randint(1, 9, theirs.shape).astype(dtype)
            expected = added(np.zeros(shape), key, g).astype(dtype)
            ours = outcome(lambda: gradient(catena.Variable(a.copy()), key, g))
            assert agree(ours, expected), f"gradient of {text}: expected {expected}, got {ours}"
            ours = outcome(lambda: F.scatter_add(a, key, g).array)
            expected = added(a, key, g).astype(dtype)
            assert agree(ours, expected), f"scatter_add, {text}: expected {expected}, got {ours}"
    assert refused < CALLS / 4
