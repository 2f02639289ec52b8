"""Arrays of NumPy in variables and back, and catena.Array."""
import gc
import operator
import sys

import catena
import numpy as np
import pytest
from catena import Array, Variable
from catena._core import as_array, as_python

DTYPES = ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"]
OTHERS = ["int8", "int16", "uint16", "uint32", "uint64", "complex64", "complex128", "longdouble",
          "O", "S3",
          "U3", "M8[s]", "m8[s]", "V2", "V4", "f4,f4", "(2,)f4,i2"]


def array(shape=(2, 3), dtype="float32"):
    return (np.arange(np.prod(shape, dtype=int)) % 99 + 1).reshape(shape).astype(dtype)


# ---- from NumPy

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (7,), (2, 3), (3, 0, 2), (1,) * 16, (2,) * 16])
def test_memory_is_shared(dtype, shape):
    a = array(shape, dtype)
    b = as_array(a)
    assert type(b) is Array and b.shape == shape and b.dtype == a.dtype and b.ndim == a.ndim
    assert b.size == a.size and b.nbytes == a.nbytes and b.device == catena.Device("cpu:0")
    c = as_python(b)
    assert type(c) is np.ndarray and c.flags.carray and c.shape == shape and c.dtype == a.dtype
    assert np.array_equal(c, a) and (a.size == 0 or np.shares_memory(c, a))
    assert c.base is not None and type(c.base) is Array
    a[...] = 0
    assert not c.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_other_arrays_are_copied(dtype):
    base = array((4, 6), dtype)
    read_only = base.copy()
    read_only.flags.writeable = False
    raw = np.zeros(base.nbytes + 1, "uint8")[1:].view(dtype).reshape(base.shape)
    raw[...] = base
    cases = [base.T, base[::2], base[:, 1:], base[::-1, ::-1], np.asfortranarray(base), read_only,
             np.broadcast_to(base[0], (3, 6)), base[:, 2], base.astype(base.dtype.newbyteorder()),
             base.astype(base.dtype.newbyteorder()).T]
    if base.itemsize > 1:
        cases.append(raw)
        assert not raw.flags.aligned
    for a in cases:
        x = Variable(a)
        assert x.dtype == dtype and x.shape == a.shape and np.array_equal(x.array, a)
        assert x.array.flags.carray and x.array.dtype.isnative
        assert a.size == 0 or not np.shares_memory(x.array, a) or a.dtype.itemsize == 1
    one = array((1, 5, 1), dtype).transpose(2, 1, 0)  # dense all the same
    assert np.shares_memory(Variable(one).array, one)


@pytest.mark.parametrize("dtype", OTHERS)
def test_other_dtypes(dtype):
    for a in [np.zeros(2, dtype), np.zeros((), dtype), np.zeros((0, 2), dtype)[:, ::2]]:
        for use in [Variable, as_array, lambda a: as_array(array((2,))) + a.reshape(-1)]:
            with pytest.raises(TypeError, match="expected"):
                use(a)
    with pytest.raises(TypeError,
                       match=r"\[catena.Variable\] array: expected an array of float16, .*, got "):
        Variable(np.zeros(2, dtype))


def test_many_axes():
    with pytest.raises(ValueError, match="expected at most 16, got 17"):
        Variable(np.zeros((1,) * 17, "float32"))
    with pytest.raises(ValueError, match="expected at most 16, got 17"):
        Variable(np.zeros((2,) + (1,) * 16, "float32")[::2])


def test_scalars():
    for value in [np.float16(1.5), np.float32(1.5), np.float64(1.5), np.int32(3), np.int64(3),
                  np.uint8(3),
                  np.bool_(True)]:
        x = Variable(value)
        assert x.shape == () and x.dtype == value.dtype and x.item() == value


def test_subclasses():
    with pytest.warns(PendingDeprecationWarning):
        m = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    x = Variable(m)
    assert type(x.array) is np.ndarray and np.shares_memory(x.array, m)
    assert np.array_equal((x * x).array, [[1, 4], [9, 16]])
    assert np.array_equal(Variable(m.T).array, [[1, 3], [2, 4]])

    class Sub(np.ndarray):
        pass
    s = array().view(Sub)
    assert type(Variable(s).array) is np.ndarray and np.shares_memory(Variable(s).array, s)
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    for use in [Variable, as_array, lambda a: Variable(array((2,), "float64")) * a]:
        with pytest.raises(TypeError, match="expected an array without a mask, got a numpy.ma"):
            use(masked)
    record = np.rec.array([(1.0, 2)], dtype=[("a", "f4"), ("b", "i4")])
    with pytest.raises(TypeError):
        Variable(record)
    assert np.array_equal(Variable(record.a.copy()).array, [1.0])


def test_memory_maps(tmp_path):
    np.arange(4, dtype="float32").tofile(tmp_path / "data")
    writable = np.memmap(tmp_path / "data", "float32", "r+")
    x = Variable(writable)
    x.array[0] = 9
    assert writable[0] == 9
    del writable
    assert (x * 1).array.tolist() == [9, 1, 2, 3]
    assert Variable(np.memmap(tmp_path / "data", "float32", "r")).array.tolist() == [9, 1, 2, 3]


def test_errors_of_objects_are_kept():
    class Broken:
        @property
        def __array_struct__(self):
            raise KeyboardInterrupt

    class Wrong:
        __array_struct__ = 3
    with pytest.raises(KeyboardInterrupt):
        Variable(Broken())
    with pytest.raises(TypeError, match=r"expected a numpy.ndarray or another array, got .*Wrong"):
        Variable(Wrong())


def test_bfloat16():
    try:
        import ml_dtypes
        bfloat16 = np.dtype(ml_dtypes.bfloat16)
    except ImportError:
        bfloat16 = "bfloat16"
    a = as_array(array()).astype("bfloat16")
    x = Variable(a)
    assert x.dtype == bfloat16 and a.dtype == bfloat16 and catena.get_dtype("bfloat16") == bfloat16
    assert repr(x) == repr(Variable(array())) and x.requires_grad
    y = (x * 2).sum()
    y.backward()
    assert as_array(x.grad).astype("float32").copy().shape == (2, 3)
    if isinstance(bfloat16, str):
        assert type(x.array) is Array and type(x.grad) is Array and x.array is x.array
        with pytest.raises(TypeError, match="install ml_dtypes"):
            np.asarray(x)
    else:
        assert x.array.dtype == bfloat16 and np.array_equal(x.array.astype("float32"), array())
        b = array().astype(bfloat16)
        assert Variable(b).array is b or np.shares_memory(Variable(b).array, b)
        assert np.array_equal((Variable(b) * 2).array, b * 2)
        assert np.array_equal(Variable(b.T).array, b.T)


# ---- lifetimes of memory

def test_views_outlive_variables_and_variables_outlive_arrays():
    view = (Variable(array()) * 2).array
    gc.collect()
    other = [np.full((2, 3), 7, "float32") for _ in range(50)]
    assert np.array_equal(view, array() * 2) and len(other) == 50
    x = Variable(array((1000,)))
    gc.collect()
    assert np.array_equal(x.array, array((1000,)))


def test_references_are_counted():
    a = array((5,))
    before = sys.getrefcount(a)
    for _ in range(3):
        x = Variable(a)
        y = x + a
        x.array = a
        x.grad = a
        as_array(a), x.array, x.grad, np.asarray(x)
        del x, y
    assert sys.getrefcount(a) == before
    for wrong in [np.zeros(2, "int8"), [1], a[:0]]:
        count = sys.getrefcount(wrong)
        for _ in range(3):
            x = Variable(a)
            try:
                x.grad = wrong
            except (TypeError, ValueError):
                pass
        del x
        assert sys.getrefcount(wrong) == count
    del wrong
    assert sys.getrefcount(a) == before


# ---- catena.Array

def test_array_is_a_copy():
    a = array()
    b = Array(a)
    assert not np.shares_memory(np.asarray(b), a) and np.array_equal(b, a)
    assert np.array_equal(Array(a, dtype="float64"), a) and Array(a, "float16").dtype == "float16"
    assert Array(a, device="cpu:0").device.name == "cpu:0" and Array(Variable(a)).shape == (2, 3)
    with pytest.raises(TypeError):
        Array([1.0])
    with pytest.raises(TypeError, match="dtype: expected float16"):
        Array(a, "int8")


def test_array_methods():
    b = Array(array())
    assert len(b) == 2
    assert b.reshape(3, 2).shape == b.reshape((3, 2)).shape == b.reshape([-1, 2]).shape == (3, 2)
    assert np.shares_memory(np.asarray(b.reshape(6)), np.asarray(b))
    assert b.copy() is not b and not np.shares_memory(np.asarray(b.copy()), np.asarray(b))
    assert b.astype("int64").dtype == "int64" and b.to_device(-1).device == b.device
    assert np.asarray(b, dtype="float64").dtype == "float64"
    assert not np.shares_memory(np.array(b), np.asarray(b))
    b.fill(3)
    assert (np.asarray(b) == 3).all() and b[0, 0].item() == 3
    b.copy_from(array())
    assert np.array_equal(b, array()) and "2" in repr(b)
    b.synchronize()
    assert b in [b] and len({b, Array(array())}) == 2
    for call in [lambda: b.astype(), lambda: b.to_device(), lambda: b.fill(),
                 lambda: b.copy_from()]:
        with pytest.raises(TypeError, match="takes exactly one argument"):
            call()
    with pytest.raises(ValueError):
        b.copy_from(array((3,)))
    with pytest.raises(TypeError):
        b.fill("x")
    with pytest.raises(TypeError):
        len(b[0, 0])


@pytest.mark.parametrize("dtype", DTYPES[:5])
def test_array_operators(dtype):
    a, n = array((2, 3), dtype), 3
    b = as_array(a)
    operators = [operator.add, operator.sub, operator.mul]
    for op in operators:
        for left, right in [(b, b), (b, n), (n, b), (b, a), (a, b)]:
            expected = op(*(a if x is b else x for x in (left, right)))
            result = op(left, right)
            assert type(result) is Array and result.dtype == dtype
            assert np.array_equal(result, expected.astype(dtype))
        assert isinstance(op(b, Variable(a)), Variable) and isinstance(op(Variable(a), b), Variable)
    for op in [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]:
        for other in [b, a, 3]:
            assert np.array_equal(op(b, other), op(a, np.asarray(other)))
    assert np.array_equal(-b, -a) and +b is b and np.array_equal(abs(-b), a)
    assert float(b[0, 1]) == 2 and int(b[0, 1]) == 2 and bool(b[0, 1])
    with pytest.raises(ValueError):
        bool(b)


def test_array_in_place():
    a = array()
    b = as_array(a)
    same = b
    b += 1
    b *= as_array(array())
    b -= array()
    b /= 2
    assert b is same and np.allclose(a, ((array() + 1) * array() - array()) / 2)
    mask = as_array(a) > 3
    assert np.array_equal(~mask, ~(a > 3)) and np.array_equal(mask & mask | mask, a > 3)
    with pytest.raises(TypeError):
        ~b
    with pytest.raises(TypeError, match="unsupported operand"):
        b + "x"


@pytest.mark.parametrize("key", [0, -1, (1, 2), slice(None), slice(None, None, -1), ..., (..., 1),
                                 [1, 0],
                                 (slice(None), [0, 2]), np.array([True, False]), ([0, 1], [1, 2])])
def test_set_item(key):
    for value in [7, 2.5, np.float32(1.5), array((1,)), as_array(array((1,))), np.int64(3)]:
        a = array()
        b = Array(a)
        b[key] = value
        a[key] = np.asarray(value).item()
        assert np.array_equal(b, a)
        assert np.array_equal(b[key], a[key])
    with pytest.raises(IndexError):
        b[5] = 1
    with pytest.raises(TypeError):
        del b[0]
    with pytest.raises(TypeError):
        b[key] = "x"
