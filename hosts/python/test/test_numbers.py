"""Integers that stay exact, numbers that are rounded once, and the ends of half precision."""
import catena
import catena.functions as F
import numpy as np
import pytest


def variable(values, dtype):
    return catena.Variable(np.array(values, dtype))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_floor_division_of_integers(dtype):
    x = np.array([7, 100, 3, 255], dtype) * (1 if dtype == "uint8" else 1000003)
    y = np.array([2, 7, 255, 1], dtype)
    for got, expected in [
            (variable(x, dtype) // variable(y, dtype), x // y),
            (variable(x, dtype) // 3, x // np.array(3, dtype)),
            (200 // variable(y, dtype), np.array(200, dtype) // y)]:
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got.array, expected)


def test_floor_division_is_exact():
    assert (variable([16777217], "int32") // 1).array.tolist() == [16777217]
    big = 2**60 + 1
    assert (variable([big], "int64") // 1).array.tolist() == [big]
    assert (variable([-7, 7], "int64") // -2).array.tolist() == [3, -4]
    x, y = np.array([1, 6, -7, 5], "float64"), np.array([0.1, 0.1, 2, np.inf])
    np.testing.assert_array_equal((catena.Variable(x) // catena.Variable(y)).array, x // y)
    np.testing.assert_array_equal((catena.Variable(x) // 0.1).array, x // 0.1)


def test_fmod():
    assert F.fmod(variable(1e8, "float32"), 3).array == 1
    assert F.fmod(variable(5, "float32"), np.inf).array == 5
    assert F.fmod(variable(6, "float64"), 0.1).array == np.fmod(6, 0.1)
    assert F.fmod(variable([7, -7], "int32"), 4).array.tolist() == [3, -3]
    assert F.fmod(variable([7, -7], "int32"), 2.5).array.tolist() == [2, -2]
    x, d = variable([7, -7, 5], "float32"), variable([2, 2, np.inf], "float32")
    y = F.fmod(x, d)
    y.grad = np.ones(3, "float32")
    y.backward()
    assert x.grad.tolist() == [1, 1, 1] and d.grad.tolist() == [-3, 3, 0]


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_sums_and_products_of_integers_are_int64(dtype, axis, name):
    x = np.array([[100000, 3, 70000], [90000, 200, 2]]).astype(dtype)
    got = getattr(F, name)(catena.Variable(x), axis)
    expected = getattr(x, name)(axis)
    assert got.dtype == "int64"
    np.testing.assert_array_equal(got.array, expected.astype("int64"))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_running_sums_and_sum_to_of_integers_are_int64(dtype):
    x = np.array([[2**31 - 1, 200], [2**31 - 1, 100]]).astype(dtype)
    for axis in (None, 0, 1):
        for name in ("cumsum", "cumprod"):
            got = getattr(F, name)(catena.Variable(x), axis)
            assert got.dtype == "int64"
            np.testing.assert_array_equal(got.array, getattr(x, name)(axis).astype("int64"))
    for shape in [(1,), (2,), (2, 1), (1, 2), (2, 2), ()]:
        got = F.sum_to(catena.Variable(x), shape)
        assert got.dtype == "int64"
        kept = (1,) * (2 - len(shape)) + shape
        axes = tuple(axis for axis in range(2) if kept[axis] == 1)
        np.testing.assert_array_equal(got.array, x.sum(axes, "int64").reshape(shape))


def test_sum_to_is_the_gradient_of_broadcasts():
    for dtype in ("float16", "float32", "float64"):
        x = variable([1, 2], dtype)
        F.sum(F.broadcast_to(x, (3, 2)) * variable([[1, 2], [3, 4], [5, 6]], dtype)).backward()
        assert x.grad.dtype == dtype and x.grad.tolist() == [9, 12]
        y = F.sum_to(F.broadcast_to(x, (3, 2)), (2,))
        assert y.dtype == dtype and y.array.tolist() == [3, 6]


scores, table = np.arange(6, dtype="float32").reshape(2, 3), np.eye(3, dtype="float32")
label_functions = {  # of labels (2,) of 3 classes
    "hinge": lambda t: F.hinge(scores, t),
    "softmax_cross_entropy": lambda t: F.softmax_cross_entropy(scores, t),
    "nll_loss": lambda t: F.nll_loss(scores, t),
    "negative_sampling": lambda t: F.negative_sampling(
        scores, t, table, lambda shape: np.zeros(shape, "int32"), 2),
    "select_item": lambda t: F.select_item(scores, t),
    "embed_id": lambda t: F.embed_id(t, table),
    "black_out": lambda t: F.black_out(scores, t, table, np.zeros((2, 1), "int32")),
    "crf1d": lambda t: F.crf1d(table * 2 + scores[0], [scores, scores], [t, t]),
    "connectionist_temporal_classification": lambda t: F.connectionist_temporal_classification(
        [scores, scores], t.reshape(2, 1), 0),
}


@pytest.mark.parametrize("name", label_functions)
@pytest.mark.parametrize("label", [3, -4, 2**32, -2**32])
def test_labels_out_of_range_are_refused(name, label):
    for dtype in ("int32", "int64") if abs(label) < 2**31 else ("int64",):
        with pytest.raises(ValueError, match=f"got {label}"):
            label_functions[name](np.array([0, label], dtype))


@pytest.mark.parametrize("name", label_functions)
def test_the_label_minus_one(name):
    function, t = label_functions[name], np.array([0, -1])
    if name == "hinge":
        with pytest.raises(ValueError, match=r"t\[1\]: expected a label from 0 to 2, got -1"):
            function(t)
    elif name in ("softmax_cross_entropy", "nll_loss", "negative_sampling"):  # ignored
        assert np.isfinite(function(t).array)
    else:  # the last one, as in NumPy
        np.testing.assert_array_equal(function(t).array, function(np.array([0, 2])).array)


def test_integers_of_python_are_exact_or_refused():
    odd = 2**53 + 1
    x = variable([1, -1], "int64")
    assert (x + odd).array.tolist() == [odd + 1, odd - 1]
    assert (odd - x).array.tolist() == [odd - 1, odd + 1]
    assert (x * odd).array.tolist() == [odd, -odd]
    assert F.full((2,), odd, "int64").array.tolist() == [odd, odd]
    array = catena.Array(np.zeros(2, "int64"))
    array[0] = odd
    assert np.asarray(array).tolist() == [odd, 0]
    array.fill(-odd)
    assert np.asarray(array).tolist() == [-odd, -odd]
    for wrong in [lambda: x + 2**63, lambda: 2**63 * x, lambda: F.maximum(x, 2**63),
                  lambda: x // 2**63]:
        with pytest.raises(catena.DtypeError, match="an integer from -2.63 to 2.63 - 1 next to "
                                                    "int64, got 9223372036854775808$"):
            wrong()
    for dtype in ("int32", "uint8", "bool"):
        y = variable([1, 0], dtype)
        for big in (2**31, 2**40, 2**60):
            for wrong in [lambda: y + big, lambda: y * big, lambda: big - y, lambda: y // big,
                          lambda: F.minimum(y, big), lambda: F.where(y > 0, y, big)]:
                with pytest.raises(catena.DtypeError, match="an integer from -2.31 to 2.31 - 1 "
                                                            f"next to {dtype}, got {big}$"):
                    wrong()
            assert (big / (y + 1)).array[1] == big
            assert (y / big).dtype == "float32"
    for dtype, number in [("int64", 2**63), ("int32", 2**31), ("uint8", 256), ("uint8", -1)]:
        array = catena.Array(np.zeros(2, dtype))
        for wrong in [lambda: F.full((2,), number, dtype), lambda: F.full_like(array, number),
                      lambda: array.__setitem__(0, number), lambda: array.fill(number)]:
            with pytest.raises(ValueError, match=f"in the range of {dtype}, got {number}"):
                wrong()
    assert (x < 2**63).array.all()
    assert (variable([1], "float32") * 2**64).array.tolist() == [2.0**64]


def test_casts_to_half_precision_round_once():
    x = 1 + 2.0**-11 * np.array([1, 3, 5, 7, 9, 11])  # between two neighbours in float16
    x = np.concatenate([x + 2.0**-40, x - 2.0**-40, x, -x * 2.0**-16 - 2.0**-60])
    got = F.cast(catena.Variable(x), "float16").array
    np.testing.assert_array_equal(got, x.astype("float16"))
    np.testing.assert_array_equal(catena.Array(x, dtype="float16"), x.astype("float16"))
    for number in x.tolist():
        assert F.full((), number, "float16").array == np.float16(number)


def test_weighted_loss_of_many_labels_in_half_precision():
    n = 300000
    t = np.arange(n, dtype="int32") % 3
    weights = np.array([1, 0.5, 2], "float16")
    x = np.zeros((n, 3), "float16")
    for normalize in (True, False):
        variables = [catena.Variable(each) for each in (x, x.astype("float32"))]
        losses = [F.softmax_cross_entropy(each, t, normalize, class_weight=weights.astype(each.dtype))
                  for each in variables]
        assert losses[0].dtype == "float16"
        np.testing.assert_allclose(losses[0].array, losses[1].array, rtol=1e-3)
        losses[0].backward()
        assert np.isfinite(variables[0].grad).all()


def test_sigmoid_cross_entropy_of_an_empty_batch():
    for shape in [(0, 3), (2, 0)]:
        x = variable(np.zeros(shape), "float32")
        loss = F.sigmoid_cross_entropy(x, np.zeros(shape, "int32"), normalize=False)
        assert loss.array == 0
        loss.backward()
        assert x.grad.shape == shape


def test_gradients_at_ties():
    """Equal extremes share the gradient; of two operands, the first gets it, as in Chainer."""
    for function, values, expected in [
            (F.max, [1, 2, 2, 0], [0, 0.5, 0.5, 0]), (F.min, [1, 4, 1, 2], [0.5, 0, 0.5, 0])]:
        x = variable(values, "float32")
        function(x).backward()
        assert x.grad.tolist() == expected
    for function in (F.maximum, F.minimum):
        x, y = variable([1], "float32"), variable([1], "float32")
        function(x, y).backward()
        assert (x.grad, y.grad) == (1, 0)
    for norm in ("L1", "L2"):  # at the margin, the gradient is 0
        x = variable([[1, -1, -1]], "float32")
        F.hinge(x, np.array([0]), norm).backward()
        assert x.grad.tolist() == [[0, 0, 0]]
