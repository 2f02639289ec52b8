"""x[key] with every kind of key of NumPy, with gradients; keys that do not fit."""
import catena
import numpy as np
import pytest
from catena import Variable
from catena._core import as_array

FLOATS = ["float16", "float32", "float64"]
MASK2 = np.array([[True, False, True], [False, True, False], [True, True, False],
                  [False, False, True]])
NESTED = [[0, 1], [2, 3]]
KEYS = [
    0, 3, -1, -4, np.int64(1), np.uint8(2), np.array(1), np.array(2, "uint8"),
    (1, 2), (1, -1, 0), (np.int32(1), np.array(2)), (), (0, ...), (..., 0), ..., None, (None, 1),
    (1, None, 2),
    slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1), slice(-1, 0, -2),
    slice(5, 1),
    slice(0, 0), slice(-100, 100), slice(-2 ** 70, 2 ** 70), slice(np.int64(1), np.int64(3)),
    (slice(1, 3), slice(None, 2)), (slice(None), 1), (0, slice(None, None, -1)),
    (slice(1, None), ..., slice(0, 1)),
    [0, 2], [0, 2, 2, -1], [], NESTED, np.array([3, 0]), np.array([3, 0], "uint8"),
    np.array([], "int32"),
    np.array([[0, 1], [2, 3]], "int32"), (slice(None), [0, 2]), ([0, 2], [1, 1]),
    ([0, 2], [1, 1], 0),
    ([[0], [2]], [1, 2]), (0, [1, 2]), ([1, 2], slice(None), [0, 1]), ([1, 2], 0, slice(None, 1)),
    (..., [1, 0]), ([0, 1], None, [1, 2]), (slice(None, None, 2), [0, 1], 1),
    [True, False, True, False], np.array([True, False, True, True]), MASK2,
    MASK2[:, :, None] & [[[True, False]]],
    (MASK2, 0), (slice(None), [True, False, True]), (..., [False, True]), (0, [True, True, False]),
    np.zeros(4, bool), np.zeros(0, bool), np.zeros((4, 3), bool), ([True, False, True, False], [0, 2]),
    (slice(None), np.array([2, 0]), np.array([True, False])),
    True, np.array(True), np.array(False), np.bool_(False), (0, True), (slice(None), np.array(True)),
    (np.array(True), [0, 2]), ([0], None, np.array(False)), (MASK2, np.array(True)),
]


def name_of(key):
    return " ".join(repr(key).replace("slice(None, None, None)", ":").split())


@pytest.mark.parametrize("key", KEYS, ids=name_of)
def test_keys(key):
    for dtype in FLOATS:
        a = np.arange(24).reshape(4, 3, 2).astype(dtype)
        x = Variable(a)
        expected = a[key if key is not NESTED else np.array(key)]  # a tuple before NumPy 1.23
        y = x[key]
        assert type(y) is Variable and y.dtype == dtype and y.shape == expected.shape
        assert np.array_equal(y.array, expected)
        y.grad = g = np.arange(1, expected.size + 1).reshape(expected.shape).astype(dtype)
        y.backward(enable_double_backprop=True)
        gradient = np.zeros(a.shape)
        np.add.at(gradient, np.array(key) if key is NESTED else key, g.astype("float64"))
        assert x.grad.dtype == dtype and np.array_equal(x.grad, gradient.astype(dtype))
    assert np.array_equal(as_array(a)[key], expected)


@pytest.mark.parametrize("key", [[0, 2], np.array([3, 0], "int32"), MASK2], ids=name_of)
def test_keys_of_catena(key):
    a = np.arange(12, dtype="float32").reshape(4, 3)
    x = Variable(a)
    for ours in [Variable(np.asarray(key)), as_array(np.asarray(key))]:
        assert np.array_equal(x[ours].array, a[key])
        assert np.array_equal(x[(ours,) if key is MASK2 else (ours, 1)].array,
                              a[key if key is MASK2 else (key, 1)])
    assert np.array_equal(x[x > 5].array, a[a > 5])
    with pytest.raises(TypeError):
        x[x]
    with pytest.raises(RuntimeError):
        x[Variable()]


@pytest.mark.parametrize("key", [4, -5, np.int64(4), np.array(-5), (0, 3), (0, 0, 2), (0, 0, 0, 0),
                                 (..., 2),
                                 [4], [0, -5], np.array([4]), (0, [3]), ([0, 1], [0, 5]), 2 ** 70,
                                 (slice(None), slice(None), slice(None), slice(None)), (..., ...),
                                 [True, False], np.zeros((4, 2), bool), ([0, 1], [0, 1, 2]),
                                 "a", 1.5, np.float32(1),
                                 [1.5], np.array([1.0]), ("a",), object(), 1j,
                                 [slice(0, 1)], [None], {0: 1}, np.zeros(0)], ids=name_of)
def test_wrong_keys(key):
    x = Variable(np.arange(24, dtype="float32").reshape(4, 3, 2))
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x._array[key]


def test_messages():
    x = Variable(np.arange(6, dtype="float32").reshape(2, 3))
    with pytest.raises(IndexError, match=r"index\[0\]: expected an index from -2 to 1, got 2"):
        x[2]
    with pytest.raises(catena.InvalidError, match=r"\[get_item\]"):
        x[0, 0, 0]
    with pytest.raises(IndexError,
                       match="expected integers, slices, None, ... or arrays of integers or bool"):
        x["a"]
    with pytest.raises(IndexError):
        Variable(np.array(1.0))[0]
    with pytest.raises((ValueError, IndexError), match="step"):
        x[::0]
    with pytest.raises(TypeError):
        x[0.5:]
    with pytest.raises(TypeError, match="assignment"):
        x[0] = 1
    with pytest.raises(TypeError, match="deletion"):
        del x[0]


def test_scalars_and_empty():
    x = Variable(np.array(3.0))
    assert x[()].item() == 3 and x[...].shape == () and x[None].shape == (1,)
    empty = Variable(np.zeros((0, 3), "float32"))
    assert empty[:, 1].shape == (0,) and empty[[]].shape == (0, 3)
    assert empty[np.zeros(0, bool)].shape == (0, 3)
    with pytest.raises(IndexError):
        empty[0]


@pytest.mark.parametrize("dtype", FLOATS)
def test_chainer(dtype):
    chainer = pytest.importorskip("chainer")
    a = np.arange(24).reshape(4, 3, 2).astype(dtype)
    compared = 0
    for key in KEYS:
        results = []
        for module in [catena, chainer]:
            x = module.Variable(a)
            try:
                y = x[key]
                y.grad = np.arange(1, y.size + 1).reshape(y.shape).astype(dtype)
                y.backward()
            except Exception:  # noqa: BLE001  Chainer does not support every key
                assert module is chainer
                break
            results.append((y.array, x.grad))
        if len(results) == 2:
            for ours, theirs in zip(*results):
                assert np.array_equal(ours, theirs), name_of(key)
            compared += 1
    assert compared > 40
