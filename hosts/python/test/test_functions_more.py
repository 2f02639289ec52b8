"""Functions as objects, random functions, statistics, and functions that Chainer lacks."""
import copy
import inspect
import os
import pathlib
import pickle

import numpy as np
import pytest

import catena
import catena.functions as F
import catena.links as L
from catena import _core, gradient_check


def numbers(*shape, low=-1., high=1., dtype="float64"):
    return np.random.RandomState(sum(shape) + 1).uniform(low, high, shape).astype(dtype)


matrix = numbers(3, 4)


# Functions as objects

names = [name for name in dir(F) if callable(getattr(F, name)) and name[0].islower()]


def test_all_names_are_imported():
    scope = {}
    exec("from catena.functions import *", scope)
    assert {"relu", "convolution_2d", "concat", "sum", "plugin_function"} <= scope.keys()
    assert set(dir(F)) <= scope.keys()
    assert len(names) > 200
    assert not [name for name in dir(F) if name.startswith("_")]


@pytest.mark.parametrize("name", [n for n in names if n != "plugin_function_names"])
def test_signature_and_doc(name):
    function = getattr(F, name)
    assert inspect.signature(function).parameters
    assert len(function.__doc__) > 10
    assert function.__name__ == name


@pytest.mark.parametrize("name", [n for n in names if not n.startswith("plugin_")])
def test_pickle_and_copies(name):
    function = getattr(F, name)
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function
    assert copy.copy(function) is function


def test_pickle_of_plugin_functions_and_of_others():
    plain = catena.plugin_function("catena.embed_id")  # F.embed_id is another function
    assert plain is not F.embed_id
    for function in (plain, len, np.dot):
        assert pickle.loads(pickle.dumps(function)) is function
    assert pickle.loads(pickle.dumps([1].append))(2) is None



def test_unknown_names():
    with pytest.raises(AttributeError, match="no plugin has the function catena.nothing"):
        F.nothing
    for name, hint in [("rleu", "did you mean relu"), ("Relu", "did you mean relu"),
                       ("conv2d", "conv2d is called convolution_2d here"),
                       ("cross_entropy", "cross_entropy is called softmax_cross_entropy here"),
                       ("batchnorm", "batchnorm is called batch_normalization here"),
                       ("math", "functions of Chainer's functions.math are in catena.functions"),
                       ("xylophone", "plugin_report")]:
        with pytest.raises(AttributeError, match=hint) as error:
            getattr(F, name)
        assert "\n" not in str(error.value)
    with pytest.raises(catena.PluginError, match="conv2d is called catena.convolution_2d here"):
        F.plugin_function("catena.conv2d")
    with pytest.raises(catena.PluginError, match="did you mean catena.relu") as error:
        F.plugin_function("catena.rleu")
    assert "loaded" not in str(error.value)
    with pytest.raises(catena.PluginError, match="xylophone\n") as error:
        F.plugin_function("catena.xylophone")
    assert "org.catena.pooling" not in str(error.value)  # it does not list all plugins
    with pytest.raises(AttributeError):
        F._nothing
    with pytest.raises(catena.PluginError, match="org.example.nothing"):
        F.plugin_function("org.example.nothing")
    with pytest.raises(TypeError, match="takes a str"):
        F.plugin_function(1)
    assert not hasattr(F, "sgd_update_of_nothing")


@pytest.mark.parametrize("module,name,hint", [
    ("links", "Conv2d", "Conv2d is called Convolution2D here"),
    ("links", "Embedding", "Embedding is called EmbedID here"),
    ("links", "BatchNorm2d", "BatchNorm2d is called BatchNormalization here"),
    ("links", "Liner", "did you mean Linear?"), ("links", "linear", "did you mean Linear?"),
    ("links", "MaxPool2d", "it is a function, catena.functions.max_pooling_2d"),
    ("links", "LeakyReLU", "it is a function, catena.functions.leaky_relu"),
    ("links", "Xylophone", None), ("links", "_Linear", None),
    ("optimizers", "Adagrad", "did you mean AdaGrad?"), ("optimizers", "Xylophone", None)])
def test_unknown_classes(module, name, hint):
    with pytest.raises(AttributeError) as error:
        getattr(getattr(catena, module), name)
    text = f"module 'catena.{module}' has no attribute '{name}'"
    assert str(error.value) == (f"{text}; {hint}" if hint else text)


@pytest.mark.skipif("cuda.catena" in catena.plugin_report(), reason="this package has them")
def test_gpus_need_another_package():
    for use in (lambda: catena.get_device("cuda:0"), lambda: catena.cuda.to_gpu(1),
                catena.cuda.check_cuda_available, lambda: catena.links.Linear(2, 2).to_gpu()):
        with pytest.raises(catena.DeviceError, match="pip install catena-cuda"):
            use()


def test_names_of_other_libraries_are_names_of_functions_here():
    others = "conv2d cat cross_entropy embedding layer_norm max_pool2d mse_loss permute unsqueeze view"
    assert all(hasattr(F, catena._core.name_here(name)) for name in others.split())
    assert catena._core.name_here("relu") == ""


def test_function_of_another_plugin():
    folders = os.environ.get("CATENA_TEST_PLUGINS", "").split(os.pathsep)
    folders = [pathlib.Path(folder) for folder in folders if folder] or [
        pathlib.Path(catena.__file__).parents[3] / "examples"]
    file = next((folder / "swish.catena"
                 for folder in folders if (folder / "swish.catena").exists()),
                None)
    if file is None:
        pytest.skip(f"swish.catena is in none of {folders}: set CATENA_TEST_PLUGINS")
    catena.load_plugin(str(file))
    swish = F.plugin_function("org.example.swish")
    assert swish is catena.plugin_function("org.example.swish")
    assert "org.example.swish" in F.plugin_function_names()
    assert "org.example.swish" in swish.__doc__
    np.testing.assert_allclose(swish(matrix).array, matrix / (1 + np.exp(-matrix)), rtol=1e-6)
    assert F.swish is not swish


def test_arguments_by_name_and_wrong_ones():
    x = catena.Variable(matrix)
    np.testing.assert_array_equal(F.softmax(axis=0, x=x).array, F.softmax(x, 0).array)
    np.testing.assert_array_equal(F.concat(axis=0, xs=[x, x]).array, np.concatenate([matrix] * 2))
    for call, message in [
            (lambda: F.relu(), r"relu\(\) lacks the argument 'x'"),
            (lambda: F.relu(x, x), r"relu\(\) takes at most 1 arguments, got 2"),
            (lambda: F.relu(x=x, y=x), "unexpected argument 'y'"),
            (lambda: F.concat([x], xs=[x]), "'xs' twice"),
            (lambda: F.concat([x], axis="text"), "axis: expected an integer, got str"),
            (lambda: F.concat([x, None]), "xs: expected variables or arrays, got None"),
            (lambda: F.where(matrix > 0, 1, 2),
             "expected a variable or an array as one of the operands"),
            (lambda: F.add(), "at least 1 argument")]:
        with pytest.raises(TypeError, match=message):
            call()


def test_results_and_arrays():
    """NumPy's arrays, catena's arrays and variables are the same to functions."""
    expected = np.maximum(matrix, 0)
    for x in (matrix, catena.Array(matrix), catena.Variable(matrix), np.asfortranarray(matrix)):
        y = F.relu(x)
        assert isinstance(y, catena.Variable)
        np.testing.assert_array_equal(y.array, expected)
    assert F.relu(matrix).creator is None
    assert isinstance(F.split_axis(matrix, 2, 1), tuple)
    assert isinstance(F.lstm(numbers(2, 3), numbers(2, 12)), tuple)
    assert isinstance(F.topk(matrix, 2), tuple)


# Random functions

def test_dropout():
    ones = np.ones((100, 100), "float32")
    with catena.using_config("train", True):
        y, mask = F.dropout(ones, 0.25, return_mask=True)
        assert set(np.unique(y.array)) == {0, np.float32(1 / 0.75)}
        assert abs((y.array == 0).mean() - 0.25) < 0.03
        np.testing.assert_array_equal(mask, y.array)
        again, same = F.dropout(ones, mask=mask, return_mask=True)
        np.testing.assert_array_equal(again.array, y.array)
        assert same is mask
        x = catena.Variable(ones)
        y = F.dropout(x)
        F.sum(y).backward()
        np.testing.assert_array_equal(x.grad, y.array)
        assert not np.array_equal(F.dropout(x).array, y.array)
    with catena.using_config("train", False):
        np.testing.assert_array_equal(F.dropout(ones).array, ones)
        y, mask = F.dropout(ones, return_mask=True)
        assert mask is None
        np.testing.assert_array_equal(y.array, ones)


def test_zoneout():
    old, new = np.zeros((100, 100), "float32"), np.ones((100, 100), "float32")
    with catena.using_config("train", True):
        y = F.zoneout(old, new, 0.25).array
        assert set(np.unique(y)) == {0, 1}
        assert abs(y.mean() - 0.75) < 0.03
    with catena.using_config("train", False):
        np.testing.assert_array_equal(F.zoneout(old, new).array, new)


def test_gaussian():
    mean, ln_var = np.full((100, 100), 2.), np.full((100, 100), np.log(9.))
    y, eps = F.gaussian(mean, ln_var, return_eps=True)
    assert abs(y.array.mean() - 2) < 0.15
    assert abs(y.array.std() - 3) < 0.15
    np.testing.assert_allclose(y.array, mean + 3 * eps)
    np.testing.assert_allclose(F.gaussian(mean, ln_var, eps=eps).array, y.array)


def test_rrelu():
    x = np.full((100, 100), -1.)
    with catena.using_config("train", True):
        y, r = F.rrelu(x, return_r=True)
        assert 1 / 8 <= r.min() < r.max() <= 1 / 3
        np.testing.assert_allclose(y.array, -r)
    with catena.using_config("train", False):
        np.testing.assert_allclose(F.rrelu(x).array, -(1 / 8 + 1 / 3) / 2)


def test_simplified_dropconnect():
    W = np.ones((3, 1000))
    y = F.simplified_dropconnect(np.ones((20, 1000)), W, None, 0.25).array
    assert abs(y.mean() / 1000 - 1) < 0.01
    assert y.std() > 0
    one = F.simplified_dropconnect(np.ones((20, 1000)), W, None, 0.25, use_batchwise_mask=False)
    assert (one.array == one.array[:1]).all()


def test_other_random_functions():
    p = F.gumbel_softmax(np.zeros((1000, 3), "float32"), 0.1)
    np.testing.assert_allclose(p.array.sum(1), 1, rtol=1e-5)
    assert abs(p.array.mean(0) - 1 / 3).max() < 0.05
    assert p.dtype == np.float32
    assert abs(F.bernoulli(np.full(10000, 0.3)).array.mean() - 0.3) < 0.03
    assert F.uniform((1000,), 2, 3, "float16").dtype == np.float16
    assert abs(F.normal((10000,), 1, 2).array.std() - 2) < 0.1
    _core.set_seed(0)
    first = F.uniform((5,)).array
    _core.set_seed(0)
    np.testing.assert_array_equal(F.uniform((5,)).array, first)


# Against Chainer

@pytest.mark.parametrize("dtype, running", [
    ("float32", "float32"), ("float16", "float32"), ("float64", "float64"), ("float16", "float16")])
@pytest.mark.parametrize("name, more", [
    ("batch_normalization", []), ("batch_renormalization", [2., 0.5])])
def test_running_statistics(name, more, dtype, running):
    chainer = pytest.importorskip("chainer")
    keyword = {"update_statistics": True} if more else {}
    x, gamma = numbers(5, 3, 2, dtype=dtype), numbers(3, dtype=running)
    results = []
    for package in (chainer, catena):
        mean, var = numbers(3, dtype=running), numbers(3, low=0.5, dtype=running)
        y = getattr(package.functions, name)(
            x, gamma, gamma, *more, running_mean=mean, running_var=var, decay=0.7, **keyword)
        results.append((y.array, mean, var))
    tolerance = 5e-3 if "float16" in (dtype, running) else 1e-5
    for expected, got in zip(*results):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("reduce", ["sum", "no"])
def test_negative_sampling(reduce):
    chainer = pytest.importorskip("chainer")
    x, W, t = numbers(3, 4, dtype="float32"), numbers(5, 4, dtype="float32"), np.array([1, -1, 0],
                                                                                       "i")
    samples = np.array([[0, 1, 2], [3, 4, 0], [1, 1, 4]], "i")
    results = []
    for package in (chainer, catena):
        inputs = package.Variable(x), package.Variable(W)
        y, drawn = package.functions.negative_sampling(
            inputs[0], t, inputs[1], lambda shape: samples[:, :shape[1]].copy(), 2, reduce,
            return_samples=True)
        package.functions.sum(y).backward()
        results.append([y.array, drawn, inputs[0].grad, inputs[1].grad])
    for expected, got in zip(*results):
        np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_forget():
    W = catena.Parameter(numbers(4, 4))

    def function(x, y):
        return F.tanh(F.linear(x, W)), F.sigmoid(y)

    def gradients(call):
        x, y = catena.Variable(matrix), catena.Variable(matrix)
        W.cleargrad()
        a, b = call(x, y)
        F.sum(a * b).backward()
        return a.array, b.array, x.grad, y.grad, W.grad

    for got, expected in zip(gradients(lambda x, y: F.forget(function, x, y)), gradients(function)):
        np.testing.assert_allclose(got, expected)
    x = catena.Variable(matrix)
    y = F.forget(F.exp, x)
    np.testing.assert_allclose(y.array, np.exp(matrix))
    with pytest.raises(RuntimeError, match="expected gradients of first order"):
        F.sum(y).backward(enable_double_backprop=True)
    with pytest.raises(RuntimeError, match="expected a variable as the 1st result, got int"):
        F.forget(lambda x: 1, matrix)
    with pytest.raises(RuntimeError, match="as the 2nd result, got list"):
        F.forget(lambda x: (x, [x]), matrix)


@pytest.mark.parametrize("link", [
    lambda: L.BatchNormalization(4), lambda: L.BatchRenormalization(4, rmax=3, dmax=2),
    lambda: L.Linear(4, 4).add_hook(catena.link_hooks.SpectralNormalization())])
def test_forget_of_links_with_statistics(link):
    """The second call of the function does not change them again."""
    results = []
    for forget in (None, F.forget, lambda f, x: F.forget(lambda x: F.forget(f, x) * 1, x)):
        np.random.seed(1)
        net = link()
        x = catena.Variable(matrix)
        y, z = (forget(net, each) if forget else net(each) for each in (x, x * 2))
        F.sum(y * z * weights_of(y)).backward()
        persistent = {name: net.__dict__[name] for name in sorted(net._persistent)}
        assert persistent
        results.append([x.grad, *(p.grad for _, p in sorted(net.namedparams())),
                        *persistent.values()])
        assert not catena.config.in_recomputing
    for expected, got, nested in zip(*results):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(nested, expected, rtol=1e-5, atol=1e-6)


def test_forget_draws_the_same_random_numbers():
    x = catena.Variable(np.ones((20, 30), "float32"))
    with catena.using_config("train", True):
        y = F.forget(lambda x: F.dropout(x, 0.5) * x, x)
        F.sum(y).backward()
    np.testing.assert_array_equal(x.grad, 2 * y.array)


def test_compositions_instead_of_kernels():
    assert not catena.config.compositions
    with catena.using_config("compositions", True):
        assert catena.config.compositions
        np.testing.assert_allclose(F.relu(matrix).array, np.maximum(matrix, 0))
    assert not catena.config.compositions


def test_forget_with_fine_tuning():
    net = L.BatchNormalization(4)
    y = F.forget(lambda x: net(x, finetune=True), catena.Variable(matrix))
    F.sum(y).backward()
    assert net.N == 1
    np.testing.assert_allclose(net.avg_mean, matrix.mean(0), rtol=1e-5)


def weights_of(y):
    return np.arange(y.size, dtype="float32").reshape(y.shape)


# Functions that Chainer lacks

def sigmoid(x):
    return 1 / (1 + np.exp(-x))


indices = np.array([[2, 0, 1, 1]])
weights = numbers(3, 4, low=0.5, high=2)
values = [  # a call, its expected values, and whether it has a gradient
    (lambda x: F.celu(x, 0.5), np.where(matrix > 0, matrix, 0.5 * np.expm1(matrix / 0.5)), True),
    (lambda x: F.glu(x), matrix[:, :2] * sigmoid(matrix[:, 2:]), True),
    (lambda x: F.swiglu(x), matrix[:, :2] * sigmoid(matrix[:, :2]) * matrix[:, 2:], True),
    (lambda x: F.swiglu(x, x), matrix * sigmoid(matrix) * matrix, True),
    (lambda x: F.geglu(x), None, True), (lambda x: F.gelu(x), None, True),
    (lambda x: F.silu(x), matrix * sigmoid(matrix), True), (lambda x: F.mish(x), None, True),
    (lambda x: F.hard_swish(x), matrix * np.clip(matrix + 3, 0, 6) / 6, True),
    (lambda x: F.sort(x), np.sort(matrix), True),
    (lambda x: F.argsort(x, 0), np.argsort(matrix, 0), False),
    (lambda x: F.sort(x, 0, True), np.sort(matrix, 0)[::-1], True),
    (lambda x: F.topk(x, 2)[0], np.sort(matrix)[:, :1:-1], True),
    (lambda x: F.std(x, 1, ddof=1), matrix.std(1, ddof=1), True),
    (lambda x: F.var(x), matrix.var(), True),
    (lambda x: F.norm(x), np.linalg.norm(matrix), True),
    (lambda x: F.norm(x, 1, 0), np.abs(matrix).sum(0), True),
    (lambda x: F.norm(x, np.inf, -1, True), np.abs(matrix).max(-1, keepdims=True), True),
    (lambda x: F.pow(x, 2), matrix**2, True), (lambda x: F.pow(2, x), 2**matrix, True),
    (lambda x: F.pow(x + 2, x), (matrix + 2)**matrix, True),
    (lambda x: F.roll(x, 1), np.roll(matrix, 1), True),
    (lambda x: F.roll(x, (1, 2), (0, 1)), np.roll(matrix, (1, 2), (0, 1)), True),
    (lambda x: F.flip(x), np.flip(matrix), True), (lambda x: F.tril(x), np.tril(matrix), True),
    (lambda x: F.triu(x, 1), np.triu(matrix, 1), True),
    (lambda x: F.pad(x, 1, "reflect"), np.pad(matrix, 1, "reflect"), True),
    (lambda x: F.pad(x, ((0, 2), (1, 0)), "wrap"), np.pad(matrix, ((0, 2), (1, 0)), "wrap"), True),
    (lambda x: F.gather(x, 0, indices), np.take_along_axis(matrix, indices, 0), True),
    (lambda x: F.take(x, np.array([1, 1]), 1), matrix[:, [1, 1]], True),
    (lambda x: F.take_along_axis(x, indices, 0), np.take_along_axis(matrix, indices, 0), True),
    (lambda x: F.scatter(x, 0, indices, x),
     np.where(np.arange(3)[:, None] == indices, matrix[:1], matrix), True),
    (lambda x: F.index_add(x, 0, np.array([1]), x[:1]), matrix + [[0], [1], [0]] * matrix[:1],
     True),
    (lambda x: F.put(x, np.array([0]), np.array([5.])),
     np.concatenate([[5], matrix.ravel()[1:]]).reshape(3, 4), True),
    (lambda x: F.set_item(x, (0, slice(2)), np.array(1.)),
     np.where([[True] * 2 + [False] * 2] + [[False] * 4] * 2, 1, matrix), True),
    (lambda x: F.nonzero(x > 0), np.argwhere(matrix > 0), False),
    (lambda x: F.isnan(x), np.isnan(matrix), False),
    (lambda x: F.isinf(x / 0), np.isinf(matrix * np.inf), False),
    (lambda x: F.isfinite(x), np.isfinite(matrix), False),
    (lambda x: F.isclose(x, x + 1e-9), np.full((3, 4), True), False),
    (lambda x: F.greater(x, 0), matrix > 0, False),
    (lambda x: F.less_equal(0, x), 0 <= matrix, False),
    (lambda x: F.equal(x, x), matrix == matrix, False),
    (lambda x: F.not_equal(x, x), matrix != matrix, False),
    (lambda x: F.greater_equal(x, matrix[0]), matrix >= matrix[0], False),
    (lambda x: F.less(x, 0), matrix < 0, False),
    (lambda x: F.logical_and(x > 0, x < 0.5), (matrix > 0) & (matrix < 0.5), False),
    (lambda x: F.logical_or(x > 0, x > 1), matrix > 0, False),
    (lambda x: F.logical_xor(x > 0, x > 0), matrix != matrix, False),
    (lambda x: F.logical_not(x > 0), ~(matrix > 0), False),
    (lambda x: F.any(x > 0, 1), (matrix > 0).any(1), False),
    (lambda x: F.all(x > 0), (matrix > 0).all(), False),
    (lambda x: F.maximum(x, 0.2), np.maximum(matrix, 0.2), True),
    (lambda x: F.where(x.array > 0, x, 0), np.maximum(matrix, 0), True),
    (lambda x: F.average(x, (1, 0), weights.T.copy()), np.average(matrix, weights=weights), True),
    (lambda x: F.mean(x, weights=weights), np.average(matrix, weights=weights), True),
    (lambda x: F.instance_normalization(x.reshape(1, 3, 4)), None, True),
    (lambda x: F.weight_standardization(x), None, True),
    (lambda x: F.rms_normalization(x), None, True),
    (lambda x: F.kl_div(x, weights), (weights * (np.log(weights) - matrix)).mean(), True),
    (lambda x: F.l1_loss(x, weights), np.abs(matrix - weights).mean(), True),
    (lambda x: F.smooth_l1_loss(x, weights, 9, "sum"), ((matrix - weights)**2).sum() / 18, True),
    (lambda x: F.full_like(x, 2, "int32"), np.full((3, 4), 2, "int32"), False),
    (lambda x: F.copy(x, "cpu"), matrix, True),
    (lambda x: F.get_item(x, [0, 2]), matrix[[0, 2]], True),
    (lambda x: F.clip(x, None, 0.1), np.minimum(matrix, 0.1), True),
]


@pytest.mark.parametrize("call, expected, has_gradient", values,
                         ids=[str(i) for i in range(len(values))])
def test_values(call, expected, has_gradient):
    y = call(catena.Variable(matrix))
    if expected is not None:
        np.testing.assert_allclose(y.array, expected, atol=1e-12)
        assert y.dtype == np.asarray(expected).dtype
    if has_gradient:
        gy = numbers(*y.shape)
        gradient_check.check_backward(call, matrix, gy, dtype="float64", atol=1e-4, rtol=1e-4)


def test_new_arrays():
    for got, expected in [
            (F.arange(5), np.arange(5)), (F.arange(1, 6, 2), np.arange(1, 6, 2)),
            (F.arange(3, dtype="float16"), np.arange(3, dtype="float16")),
            (F.arange(0, 1, 0.25), np.arange(0, 1, 0.25, "float32")),
            (F.linspace(0, 1, 5, dtype="float64"), np.linspace(0, 1, 5)),
            (F.eye(3, dtype="int32"), np.eye(3, dtype="int32")),
            (F.eye(2, 3, 1), np.eye(2, 3, 1, "float32")),
            (F.tri(3, k=-1), np.tri(3, k=-1, dtype="float32")),
            (F.full((2, 3), 7, "uint8"), np.full((2, 3), 7, "uint8")),
            (F.one_hot(np.array([1, -1, 0]), 2), np.array([[0, 1], [0, 0], [1, 0]], "float32"))]:
        np.testing.assert_array_equal(got.array, expected)
        assert got.dtype == expected.dtype


def test_attention():
    cos, sin = F.rotary_tables(5, 4)
    assert cos.shape == sin.shape == (5, 2)
    np.testing.assert_allclose(cos.array**2 + sin.array**2, 1, rtol=1e-6)
    bias = F.alibi(2, 3, 3)
    np.testing.assert_allclose(bias.array[0, :, 2, 0], [-2 * 2**-4, -2 * 2**-8])
    q, k, v = (numbers(5, 2, 4) * i for i in (1, 2, 3))
    y = F.packed_attention(q, k, v, [0, 2, 5], causal=True).array
    for begin, end in ((0, 2), (2, 5)):
        one = F.scaled_dot_product_attention(
            *(each[begin:end].transpose(1, 0, 2)[None] for each in (q, k, v)), causal=True)
        np.testing.assert_allclose(y[begin:end], one.array[0].transpose(1, 0, 2))


@pytest.mark.parametrize("name", ["expm1", "log1p", "sinh", "arctanh"])
def test_small_numbers_keep_their_digits(name):
    for dtype, tolerance in (("float32", 3e-7), ("float64", 1e-15)):
        x = np.array([1e-30, -1e-12, 1e-8, 1e-4, -0.01, 0.3, 0.], dtype)
        np.testing.assert_allclose(getattr(F, name)(x).array, getattr(np, name)(x), rtol=tolerance)


def test_half_precision():
    """Sums of halves do not overflow or lose digits on the way, and results are halves."""
    x = np.full((5000,), 8, "float16")
    assert F.mean(x).array == np.float16(8)
    assert F.sum(np.full((5000,), 0.1, "float16")).array == np.float16(0.1 * 5000)
    for name in ("exp", "relu", "softmax", "sum", "mean", "logsumexp"):
        assert getattr(F, name)(matrix.astype("float16")).dtype == np.float16
    assert F.norm(np.full(4, 300, "float16")).array == 600


def test_empty_and_single():
    empty = np.zeros((0, 3), "float32")
    assert F.sum(empty).array == 0
    assert F.concat([empty, empty], 0).shape == (0, 3)
    assert F.linear(empty, numbers(2, 3, dtype="float32")).shape == (0, 2)
    assert F.relu(np.array(-1.)).shape == ()
    assert F.sum(np.array(2.)).array == 2
    assert F.softmax(numbers(1, 1)).array == 1
    with pytest.raises(ValueError):
        F.max(empty)
