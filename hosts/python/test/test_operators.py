"""Operators on variables: values and gradients against NumPy and Chainer, dtypes, errors."""
import operator

import catena
import numpy as np
import pytest
from catena import Variable

FLOATS = ["float16", "float32", "float64"]
TOLERANCE = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-7}  # of differences in float64
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow]
COMPARE = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def array(shape, dtype="float32", seed=0):
    return np.random.RandomState(seed).uniform(0.5, 2, shape).astype(dtype)


def near(a, b, dtype):
    return np.allclose(np.asarray(a, "float64"), np.asarray(b, "float64"), TOLERANCE[dtype],
                       TOLERANCE[dtype])


def numeric(function, *arrays):
    """The gradients of the sum of a function in float64, by central differences."""
    arrays = [a.astype("float64") for a in arrays]
    gradients = [np.zeros_like(a) for a in arrays]
    for a, g in zip(arrays, gradients):
        for i in np.ndindex(*a.shape):
            before = a[i]
            values = []
            for step in [1e-6, -1e-6]:
                a[i] = before + step
                values.append(function(*arrays).sum())
            a[i] = before
            g[i] = (values[0] - values[1]) / 2e-6
    return gradients


SHAPES = [((), ()), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (2, 1)), ((1, 3), (2, 1)),
          ((0, 3), (1, 3)),
          ((2, 1, 3), (4, 1)), ((5,), ()), ((), (2, 2)), ((1,), (1, 1))]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", BINARY)
def test_binary(op, dtype):
    for n, (left, right) in enumerate(SHAPES):
        a, b = array(left, dtype, n), array(right, dtype, n + 100)
        x, y = Variable(a), Variable(b)
        z = op(x, y)
        assert type(z) is Variable and z.dtype == dtype and z.shape == op(a, b).shape
        assert near(z.array, op(a.astype("float64"), b.astype("float64")), dtype)
        z.grad = np.ones_like(z.array)
        z.backward()
        for variable, expected in zip([x, y], numeric(op, a, b)):
            assert variable.grad.dtype == dtype and near(variable.grad, expected, dtype)
        # A numpy array on either side is a constant.
        for z in [op(x, b), op(a, y)]:
            assert type(z) is Variable and near(z.array,
                                                op(a.astype("float64"), b.astype("float64")), dtype)
        with pytest.raises(ValueError):
            op(Variable(array((2, 3), dtype)), Variable(array((4,), dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", BINARY)
def test_numbers(op, dtype):
    a = array((2, 3), dtype)
    for c in [2, 1.5, True, np.float16(1.5), np.float32(1.5), np.float64(1.5), np.int64(2),
              np.uint8(3),
              np.int8(2), np.bool_(True), np.longdouble(1.5), np.array(1.5), np.array(2, "int16"),
              0.1, 10 ** 30]:
        if dtype == "float16" and abs(float(c)) > 100:
            continue
        for left in ("x", c):
            x = Variable(a)
            if op is operator.pow and abs(float(c)) > 100:
                continue
            first = isinstance(left, str)
            function = (lambda v: op(v, float(c))) if first else (lambda v: op(float(c), v))
            y = op(x, c) if isinstance(left, str) else op(c, x)
            assert type(y) is Variable and y.dtype == dtype and y.shape == a.shape
            with np.errstate(all="ignore"):
                assert near(y.array / max(1, abs(float(c))), function(a.astype("float64"))
                            / max(1, abs(float(c))), dtype)
            y.grad = np.ones_like(a)
            y.backward()
            if abs(float(c)) < 100:
                assert near(x.grad, numeric(function, a)[0], dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_floor_division(dtype):
    a = np.array([7, -7, 49, 0.5, -0.5], dtype)
    x = Variable(a)
    for c in [2, 49, 0.5, -3, np.array([2, 3, 4, 5, 6], dtype), np.float32(7)]:
        assert np.array_equal((x // c).array, a // np.asarray(c, dtype)) and (x // c).dtype == dtype
        assert np.array_equal((c // (x + 100)).array, np.asarray(c, dtype) // (a + 100))
    assert np.array_equal((x // Variable(a)).array[:3], [1, 1, 1])


@pytest.mark.parametrize("dtype", FLOATS)
def test_unary(dtype):
    a = array((2, 3), dtype) * np.array([1, -1, 1], dtype)
    x = Variable(a)
    assert +x is x
    for op in [operator.neg, abs]:
        y = op(x)
        assert np.array_equal(y.array, op(a)) and y.dtype == dtype
        x.cleargrad()
        y.grad = np.ones_like(a)
        y.backward()
        assert np.array_equal(x.grad, -np.ones_like(a) if op is operator.neg else np.sign(a))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)),
                                    ((5, 2, 3), (5, 3, 4)), ((5, 1, 2, 3), (4, 3, 2)),
                                    ((2, 0), (0, 3))])
def test_matmul(shapes, dtype):
    a, b = array(shapes[0], dtype), array(shapes[1], dtype, 1)
    x, y = Variable(a), Variable(b)
    z = x @ y
    assert near(z.array, a.astype("float64") @ b.astype("float64"), dtype) and z.dtype == dtype
    z.grad = np.ones_like(z.array)
    z.backward()
    for variable, expected in zip([x, y], numeric(operator.matmul, a, b)):
        assert near(variable.grad, expected, dtype)
    for z in [x @ b, a @ y]:
        assert type(z) is Variable and z.dtype == dtype
    for z in [x @ b.astype("float64"), a.astype("float64") @ y]:
        assert type(z) is Variable and z.dtype == "float64"
    assert (x @ b.astype("int16")).dtype == dtype
    for wrong in [2, np.float32(2), "x", None, np.array(2.0)]:
        with pytest.raises(TypeError):
            x @ wrong
        with pytest.raises(TypeError):
            wrong @ x


def test_comparison():
    a, b = array((2, 3)), array((3,), seed=1)
    x = Variable(a)
    for op in COMPARE:
        for other in [b, Variable(b), 1.2, 1, np.float32(1.2), b.astype("float64")]:
            plain = other.array if isinstance(other, Variable) else other
            plain = plain.astype("float32") if isinstance(plain, np.ndarray) else plain
            mask = op(x, other)
            assert type(mask) is Variable and mask.dtype == "bool" and not mask.requires_grad
            assert np.array_equal(mask.array, op(a, np.float32(plain)))
            assert np.array_equal(op(other, x).array, op(np.float32(plain), a))
    mask = (x > 1) & (x < 1.5) | ~(x != x)
    assert np.array_equal(mask.array, (a > 1) & (a < 1.5) | ~(a != a))
    with pytest.raises(TypeError):
        x < "text"
    with pytest.raises(TypeError):
        x & x


# ---- dtypes

def test_variables_of_different_dtypes():
    for op in BINARY:
        for left, right in [("float32", "float64"), ("float16", "float32"), ("float64", "float16")]:
            with pytest.raises(catena.DtypeError,
                               match=f"expected {left} as .*, got {right}") as error:
                op(Variable(array((2, 2), left)), Variable(array((2, 2), right)))
            assert isinstance(error.value, (TypeError, catena.InvalidType))
    x = Variable(array((2,)))
    for dtype in ["int32", "int64", "uint8", "bool"]:
        assert (x * Variable(np.ones(2, dtype))).dtype == "float32"
    i = Variable(np.array([7, -7], "int32"))
    assert (i + 2).dtype == (i * i).dtype == (-i).dtype == "int32" and (i / 2).dtype == "float32"
    assert (i + 2).array.tolist() == [9, -5] and (i + 2.5).array.tolist() == [9.5, -4.5]
    assert (i + Variable(np.array([2 ** 40] * 2))).dtype == "int64"


@pytest.mark.parametrize("dtype", FLOATS)
def test_arrays_take_the_dtype_of_the_variable(dtype):
    x = Variable(array((2, 3), dtype))
    for other in [*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                  "bool",
                  "longdouble", ">f4"]:
        a = np.ones((2, 3), other)
        for y in [x + a, a + x, x * a, a * x, x - a, a - x, x / a, a / x, x ** a, a ** x, x + a.T.T,
                  x + a[:, ::-1]]:
            assert type(y) is Variable and y.dtype == dtype
    for other in ["complex64", "O", "U1", "M8[s]"]:
        with pytest.raises(TypeError):
            x + np.zeros((2, 3), other)
        with pytest.raises(TypeError):
            np.zeros((2, 3), other) * x


def test_other_operands():
    x = Variable(array((2,)))
    for other in [None, "text", [1, 2], (1, 2), {}, object(), 1j, np.complex64(1j), np.array(1j),
                  np.str_("1"),
                  np.datetime64("2020-01-01")]:
        for op in [*BINARY, operator.floordiv]:
            with pytest.raises(TypeError):
                op(x, other)
            with pytest.raises(TypeError):
                op(other, x)
    for op in [divmod, operator.mod, operator.lshift, operator.xor]:
        with pytest.raises(TypeError):
            op(x, x)
    with pytest.raises(TypeError):
        pow(x, 2, 5)
    with pytest.raises(TypeError):
        round(x)

    class Other:
        __array_ufunc__ = None
        __radd__ = __rmul__ = lambda self, x: "other"
    assert x + Other() == "other" and x * Other() == "other"


def test_in_place_operators_make_new_variables():
    x = first = Variable(array((2, 3)))
    before = x.array.copy()
    x += 1
    x *= x
    x -= array((3,))
    x /= 2
    x **= 2
    assert x is not first and np.array_equal(first.array, before)
    x.grad = np.ones((2, 3), "float32")
    x.backward()
    expected = numeric(lambda a: (((a + 1) ** 2 - array((3,))) / 2) ** 2, before)[0]
    assert near(first.grad, expected, "float32")
    a = np.ones(3, "float32")
    with pytest.raises(TypeError):
        a += Variable(a)


def test_large_operands_release_the_lock():
    a = array((100, 100))
    x = Variable(a)
    y = (x + x) * x - a
    assert np.allclose(y.array, 2 * a * a - a, 1e-5)
    with pytest.raises(ValueError):
        x + Variable(array((100, 99)))


# ---- Chainer

@pytest.mark.parametrize("dtype", FLOATS)
def test_chainer(dtype):
    chainer = pytest.importorskip("chainer")
    a, b = array((2, 3), dtype), array((3,), dtype, 1)
    calls = [
        lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y,
        lambda x, y: x ** y, lambda x, y: x // y, lambda x, y: 2 - x, lambda x, y: x / 3,
        lambda x, y: 3 / x, lambda x, y: 2 ** x, lambda x, y: x ** 3, lambda x, y: -x * abs(x),
        lambda x, y: x @ y, lambda x, y: a @ x.T, lambda x, y: x * a.astype("float64"),
        lambda x, y: np.float64(2) * x + np.float32(3), lambda x, y: x.reshape(3, 2) @ x,
        lambda x, y: x.mean(axis=0) * y, lambda x, y: x.T.mean()]
    for i, call in enumerate(calls):
        results = []
        for module in [catena, chainer]:
            x, y = module.Variable(a), module.Variable(b)
            broadcast = module is chainer and i < 6
            z = call(x, chainer.functions.broadcast_to(y, (2, 3)) if broadcast else y)
            z.grad = np.ones_like(z.array)
            z.backward(enable_double_backprop=True)
            results.append([z, x.grad_var, y.grad_var])
            if x.grad is not None and x.grad_var.creator is not None:
                x.cleargrad()
                y.cleargrad()
                gradient = results[-1][1]
                gradient.grad = np.ones_like(gradient.array)
                gradient.backward()
                results[-1].append(x.grad_var)
        for ours, theirs in zip(*results):
            empty = [None if v is None else v.array for v in (ours, theirs)]
            if theirs is None or ours is None:
                assert all(e is None or not e.any() for e in empty), i
                continue
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape, i
            assert near(ours.array, theirs.array, dtype), i
