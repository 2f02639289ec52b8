"""Functions whose weights have another floating dtype than x, against Chainer."""
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
}


def run(package, name, x_dtype, w_dtype):
    random = np.random.RandomState(0)
    x_shape, w_shape = CALLS[name]
    x = package.Variable(random.uniform(-1, 1, x_shape).astype(x_dtype))
    W = package.Variable(random.uniform(-1, 1, w_shape).astype(w_dtype))
    b = package.Variable(random.uniform(-1, 1, 2).astype(x_dtype))
    y = getattr(package.functions, name)(x, W, b)
    y.grad = random.uniform(-1, 1, y.shape).astype(y.dtype)
    y.backward()
    return [y.array, x.grad, W.grad, b.grad]


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
