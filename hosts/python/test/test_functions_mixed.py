"""Inputs of different floating dtypes, against Chainer."""
import catena
import catena.functions as F
import numpy as np
import pytest

FLOATS = ["float16", "float32", "float64"]
CALLS = {
    "linear": ((4, 3), (2, 3)),
    "convolution_2d": ((2, 3, 5, 5), (2, 3, 3, 3)),
    "deconvolution_2d": ((2, 3, 5, 5), (3, 2, 3, 3)),
    "convolution_nd": ((2, 3, 5), (2, 3, 3)),
    "deconvolution_nd": ((2, 3, 5), (3, 2, 3)),
    "local_convolution_2d": ((2, 1, 3, 3), (2, 2, 2, 1, 2, 2)),
    "matmul": ((4, 3), (3, 2)),
    "tensordot": ((4, 3), (3, 2)),
}


def run(package, name, x_dtype, w_dtype):
    random = np.random.RandomState(0)
    x_shape, w_shape = CALLS[name]
    x = package.Variable(random.uniform(-1, 1, x_shape).astype(x_dtype))
    W = package.Variable(random.uniform(-1, 1, w_shape).astype(w_dtype))
    inputs = [x, W]
    if name == "tensordot":
        y = package.functions.tensordot(x, W, 1)
    elif name == "matmul":
        y = package.functions.matmul(x, W)
    else:
        shape = (2,) if name != "local_convolution_2d" else (2, 2, 2)
        inputs.append(package.Variable(random.uniform(-1, 1, shape).astype(x_dtype)))
        y = getattr(package.functions, name)(*inputs)
    y.grad = random.uniform(-1, 1, y.shape).astype(y.dtype)
    y.backward()
    return [y.array] + [each.grad for each in inputs]


@pytest.mark.parametrize("w_dtype", FLOATS)
@pytest.mark.parametrize("x_dtype", FLOATS)
@pytest.mark.parametrize("name", CALLS)
def test_against_chainer(name, x_dtype, w_dtype):
    chainer = pytest.importorskip("chainer")
    bound = 2e-2 if "float16" in (x_dtype, w_dtype) else 1e-5
    for ours, theirs in zip(run(catena, name, x_dtype, w_dtype),
                            run(chainer, name, x_dtype, w_dtype)):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=bound, atol=bound)


def test_results_have_the_dtype_of_x():
    for arrays in (run(catena, "linear", "float16", "float32"),
                   run(catena, "convolution_2d", "float16", "float32")):
        assert [str(each.dtype) for each in arrays] == ["float16", "float16", "float32", "float16"]
    x, W = np.ones((1, 2), "float16"), np.ones((3, 2), "float32")
    assert F.linear(x, W).dtype == F.linear(x, W, None, 1).dtype == np.float16
    assert F.linear(x, W, W[:, 0]).dtype == np.float16


@pytest.mark.parametrize("dtypes,expected", [
    (("float16", "float32"), "float32"), (("float64", "float16"), "float64"),
    (("float32", "float32"), "float32")])
def test_products_have_the_widest_dtype(dtypes, expected):
    a, b = (catena.Variable(np.array([[1, 2], [3, 4]], dtype)) for dtype in dtypes)
    vector = catena.Variable(np.array([1, 2], dtypes[1]))
    for y in [a @ b, a @ b.array, a.array @ b, F.matmul(a, b), F.matmul(a, b, True, True), F.matmul(a, vector),
              F.tensordot(a, b, 1), F.einsum("ij,jk->ik", a, b),
              F.batch_matmul(F.expand_dims(a, 0), F.expand_dims(b, 0))]:
        assert y.dtype == expected
        catena.grad([y], [a], [catena.Variable(np.ones(y.shape, expected))])
    y = F.matmul(a, b)
    y.grad = np.ones((2, 2), expected)
    y.backward(enable_double_backprop=True)
    assert [a.grad.dtype, b.grad.dtype] == list(dtypes)
    assert a.grad.tolist() == [[3, 7], [3, 7]] and b.grad.tolist() == [[4, 4], [6, 6]]
    F.sum(a.grad_var).backward()
    assert b.grad.dtype == dtypes[1]


def test_a_product_keeps_the_digits_of_the_wider_dtype():
    x, W = np.ones((1, 1), "float32"), np.array([[1 + 2.**-40]])
    assert F.matmul(x, W).array == 1 + 2.**-40
    assert F.linear(x.astype("float64"), W.astype("float32")).dtype == "float64"
    half = np.full((1, 2), 2048, "float16")  # 2048 + 1 is no float16: the sum is rounded once
    assert F.linear(half, np.array([[1, 2.**-12]], "float32"), np.array([1.5], "float32")).array == 2050


@pytest.mark.parametrize("call", [
    F.prelu, lambda x, W: F.layer_normalization(x, W, W), lambda x, W: F.batch_normalization(x, W, W),
    lambda x, W: F.group_normalization(x, 1, W, W)])
@pytest.mark.parametrize("dtypes", [("float16", "float32"), ("float32", "float64"), ("float64", "float32")])
def test_layers_have_the_dtype_of_x(call, dtypes):
    x, W = (catena.Variable(np.array(values, dtype)) for values, dtype in zip(
        ([[1, 2, -4], [3, 0, 8]], [1, 2, 0.5]), dtypes))
    y = call(x, W)
    y.grad = np.ones(y.shape, y.dtype)
    y.backward()
    assert [each.dtype for each in (y, x.grad, W.grad)] == [dtypes[0], *dtypes]
    expected = call(x.array.astype("float64"), W.array.astype("float64")).array
    np.testing.assert_allclose(y.array, expected, rtol=1e-3 if dtypes[0] == "float16" else 1e-6, atol=1e-6)


@pytest.mark.parametrize("call", [
    lambda x, y: x + y, lambda x, y: x * y, F.maximum, F.squared_error, F.mean_squared_error,
    lambda x, y: F.concat([x, y], 0), lambda x, y: F.where(np.array(True), x, y)])
def test_other_functions_refuse_them(call):
    x, y = (catena.Variable(np.ones(2, dtype)) for dtype in ("float32", "float64"))
    with pytest.raises(catena.DtypeError, match="float64"):
        call(x, y)
    with pytest.raises(catena.utils.type_check.InvalidType):
        call(x, y)


@pytest.mark.parametrize("package", ["catena", "chainer"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_arrays_take_the_dtype_of_bias_and_scale(package, dtype):
    package = pytest.importorskip(package)
    x = np.array([[1, 2], [3, 4]], dtype)
    for link in (package.links.Bias(1, (2,)), package.links.Scale(1, (2,)),
                 package.links.Scale(1, (2,), bias_term=True)):
        y = link(x)
        package.functions.sum(y).backward()
        assert y.dtype == np.float32 and np.array_equal(y.array, x)
        assert all(p.grad.dtype == np.float32 for p in link.params())


@pytest.mark.parametrize("link", [catena.links.Bias(1, (2,)), catena.links.Scale(1, (2,))])
def test_bias_and_scale_refuse_variables_of_another_dtype(link):
    with pytest.raises(catena.DtypeError, match="got float32$"):  # without a hint about masks
        link(catena.Variable(np.array([[1.0, 2]])))


def test_integers_are_refused():
    with pytest.raises(catena.DtypeError, match="W: expected float32 as x, got int32"):
        F.linear(np.ones((1, 2), "float32"), np.ones((3, 2), "int32"))


@pytest.mark.parametrize("w_dtype", FLOATS)
def test_class_weight(w_dtype):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    t = np.array([0, 2], "int32")
    weight = np.array([1, 2, 4], w_dtype)
    loss = F.softmax_cross_entropy(x, t, class_weight=weight)
    assert loss.dtype == np.float32
    expected = F.softmax_cross_entropy(x, t, class_weight=weight.astype("float32"))
    assert loss.array == expected.array
