"""Runs the code blocks of Chainer's documents, see reference/README.md, under the name chainer."""
import inspect
import os
import pathlib
import sys
import unittest

import numpy as np
import pytest

import catena
from catena import _core

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "reference"))
import blocks  # noqa: E402
from blocks import BLOCKS, Session  # noqa: E402
from checks import (  # noqa: E402, F401
    DTYPES, Mnist, check_mul_add, gpus, images, passes, same_numbers, same_shape, uniform)


@pytest.fixture(autouse=True, scope="module")
def chainer_is_catena():
    """The name chainer, also where Chainer is installed and imported."""
    def ours(name):
        return name.split(".")[0] in ("chainer", "chainerx")
    finders = list(sys.meta_path)
    other = {name: sys.modules.pop(name) for name in list(sys.modules) if ours(name)}
    catena.install_as_chainer()
    yield
    sys.meta_path[:] = finders
    for name in list(filter(ours, sys.modules)):
        del sys.modules[name]
    sys.modules.update(other)


@pytest.fixture(autouse=True)
def seed():
    np.random.seed(0)  # numerical gradients are wrong next to the kink of relu()


# ---- the manual of Chainer 1.0.1


def test_manual_1_1_2():
    s = Session("manual")
    for numbers in [(2,), (3,), (4,), (5,), (6,), (7,), (8, 9)]:
        s.run(*numbers, compare=same_numbers)
    np.testing.assert_array_equal(s["x"].grad, [[0, 2, 4], [6, 8, 10]])


def test_manual_1_1_3():
    s = Session("manual")
    s.run(10)
    s.run(11, compare=same_shape)
    s.run(12, compare=same_shape)
    s.run(13)
    assert not s["f"].gW.any() and not s["f"].gb.any()
    np.testing.assert_allclose(s["y"].data, s["x"].data @ s["f"].W.T + s["f"].b, rtol=1e-5)
    s.run(14, compare=same_numbers)
    s.run(15, compare=same_numbers)


def optimized_set():
    s = Session("manual")
    s.run(16, compare=lambda value, printed: type(value).__name__ == "Linear" or pytest.fail(printed))
    s.run(17)
    s.run(18)
    return s


def test_manual_1_1_4():
    s = optimized_set()
    assert s["h3"].shape == (2, 2)
    model = s["model"]
    shapes = [(3, 4), (3,), (2, 3), (2,), (2, 2), (2,)]
    assert sorted(p.shape for p in model.parameters) == sorted(shapes)
    assert [g.shape for g in model.gradients] == [p.shape for p in model.parameters]


def test_manual_1_1_5():
    s = optimized_set()
    s.run(19)
    s.run(20)
    assert all(not g.any() for g in s["model"].gradients)
    before = s["model"].l3.W.copy()
    s.run(21)
    gradient = s["model"].l3.gW
    assert gradient.any()
    np.testing.assert_allclose(s["model"].l3.W, before - 0.01 * gradient, rtol=1e-5)


def mnist(s):
    s.names["fetch_mldata"] = lambda name: Mnist()
    s.run(22)
    s.run(23)
    assert s["x_train"].shape == (1000, 784) and s["y_test"].shape == (200,)


def test_manual_1_1_6(capsys):
    s = Session("manual")
    mnist(s)
    for number in [24, 25, 26, 27]:
        s.run(number)
    assert capsys.readouterr().out.split("\n")[19] == "epoch 19"
    assert 0.9 < s["mean_accuracy"] <= 1
    assert 0 < s["mean_loss"] < 1


def words(n):
    return [np.array([i * i % 7], np.int32) for i in range(n)]


def recurrent(n):
    s = Session("manual", x_list=words(n))
    s.run(28)
    s.run(29)
    return s


def test_manual_1_2_1():
    s = recurrent(20)
    s.run(30)
    first = float(s["loss"].data)
    np.testing.assert_allclose(first, 19 * np.log(1000), rtol=0.2)
    for _ in range(3):
        s.run(30)
    assert float(s["loss"].data) < first
    assert s["model"].h_to_h.gW.any()


def test_manual_1_2_2():
    s = recurrent(65)
    s.run(31)
    assert s["count"] == 64
    assert s["loss"].creator is None
    assert s["model"].embed.gW.any()


def test_manual_1_2_3():
    s = recurrent(10)
    s.run(32)
    assert s["loss"].volatile and s["loss"].creator is None
    F = s["F"]
    fixed, predictor = F.Linear(3, 2), F.Linear(2, 2)
    predictor.gW.fill(0)
    predictor.gb.fill(0)
    fixed.gW.fill(0)
    fixed.gb.fill(0)
    s.names.update(fixed_func=fixed, predictor_func=lambda x: F.sum(predictor(x)),
                   x_data=uniform(4, 3))
    s.run(33)
    assert not fixed.gW.any()
    np.testing.assert_allclose(predictor.gW, np.tile(s["feat"].data.sum(0), (2, 1)), rtol=1e-5)


def test_manual_1_3_2(gpus):
    s = Session("manual")
    s.run(34)
    s.run(35)
    assert isinstance(s["x_gpu"], catena.Array) and s["x_gpu"].device.is_gpu
    for number in [36, 37]:
        s.run(number)
    assert isinstance(s["x_cpu"], np.ndarray)
    np.testing.assert_array_equal(s["x_cpu"], np.ones((5, 4, 3), np.float32))
    for number in [38, 39]:
        s.run(number)
        assert s["x_gpu1"].device == s["cuda"].get_device(1)
        assert s["x_gpu1"].shape == (4, 3)
    s["x_gpu1"].fill(1)
    s.run(40)
    assert s["y_gpu1"].device == s["cuda"].get_device(1)
    np.testing.assert_array_equal(s["cuda"].to_cpu(s["y_gpu1"]), np.full((4, 3), 2, np.float32))
    s.run(41)
    assert s["x0"].device == s["cuda"].get_device(0)
    assert s["x1"].device == s["cuda"].get_device(1)
    np.testing.assert_array_equal(s["cuda"].to_cpu(s["x1"]), np.ones((4, 3), np.float32))


def test_manual_1_3_3(gpus, capsys):
    s = Session("manual")
    mnist(s)
    s.run(42)
    assert s["model"].l1.W.device.is_gpu
    s.run(25)
    s.run(43)
    assert "epoch 19" in capsys.readouterr().out
    assert float(s["accuracy"].item()) > 0.9


def test_manual_1_3_4(gpus):
    s = Session("manual")
    s.run(44)
    assert s["model"].gpu1.l1.W.device == s["cuda"].get_device(1)
    s.run(45, 46)
    s["model"].cleargrads()
    x, t = images(5)
    loss, accuracy = s["forward"](x.astype(np.float32) / 255, t.astype(np.int32))
    assert loss.device == s["cuda"].get_device(0)
    loss.backward()
    assert all(s["cuda"].to_cpu(g).any() for g in s["model"].gradients)


def test_manual_1_3_5(gpus, capsys):
    s = Session("manual")
    mnist(s)
    for number in [47, 48, 49, 50, 51]:
        s.run(number)
    assert "epoch 19" in capsys.readouterr().out
    to_cpu = s["cuda"].to_cpu
    for a, b in zip(s["model_0"].parameters, s["model_1"].parameters):
        assert a.device != b.device
        np.testing.assert_array_equal(to_cpu(a), to_cpu(b))
    loss, accuracy = s["forward"](s["cuda"].to_gpu(s["x_test"], 0), s["cuda"].to_gpu(s["y_test"], 0),
                                  s["model_0"])
    assert float(accuracy.item()) > 0.9


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [53, 55])
def test_manual_1_4_1(number, dtype):
    s = Session("manual")
    s.run(number)
    check_mul_add(s["MulAdd"](), dtype=dtype)


def test_manual_1_4_1_skeleton():
    result = uniform(2), uniform(2)
    s = Session("manual", some_tuple=result)
    s.run(52)
    x, y = (catena.Variable(uniform(2)) for _ in range(2))
    z, _ = s["MulAdd"]()(x, y)
    np.testing.assert_array_equal(z.data, result[0])
    z.grad = np.ones(2, np.float32)
    z.backward()
    np.testing.assert_array_equal(x.grad, result[0])
    np.testing.assert_array_equal(y.grad, result[1])


@pytest.mark.parametrize("number", [54, 55])
def test_manual_1_4_1_on_gpus(gpus, number):
    s = Session("manual")
    s.run(number)
    check_mul_add(s["MulAdd"](), s["cuda"].to_gpu)


def test_manual_1_4_2(gpus):
    s = Session("manual")
    s.run(56)
    x, y, z, w = check_mul_add(s["MulAdd"](), s["cuda"].to_gpu, gradients=False)
    w.grad = s["cuda"].ones((3, 2))
    w.backward()
    assert x.grad.shape == y.grad.shape == (3, 2)
    np.testing.assert_array_equal(s["cuda"].to_cpu(z.grad), np.ones((3, 2), np.float32))


def test_manual_1_4_3():
    s = Session("manual")
    s.run(57)
    np.testing.assert_array_equal(s["y"].data, s["p"].W)
    s.run(58)
    f = s["EltwiseParamProduct"](3)
    f.gw.fill(0)
    assert f.parameters[0] is f.w and f.gradients[0] is f.gw
    x = catena.Variable(uniform(3))
    for n in [1, 2]:  # gradients are accumulated
        y = f(x)
        y.grad = np.ones(3, np.float32)
        y.backward()
        np.testing.assert_allclose(f.gw, n * x.data, rtol=1e-6)
    np.testing.assert_allclose(x.grad, 2 * f.w, rtol=1e-6)


def test_manual_1_4_3_in_a_set():
    s = Session("manual")
    s.run(58)
    f = s["EltwiseParamProduct"](3)
    model = s["FunctionSet"](f=f)
    optimizer = s["optimizers"].SGD(lr=0.5)
    optimizer.setup(model.collect_parameters())
    optimizer.zero_grads()
    x = catena.Variable(uniform(3))
    s["F"].sum(f(x)).backward()
    before = f.w.copy()
    optimizer.update()
    np.testing.assert_allclose(f.w, before - 0.5 * x.data, rtol=1e-6)


def test_manual_1_4_4():
    s = Session("manual", TestCase=unittest.TestCase)
    s.run(59)
    np.testing.assert_allclose(s["gx"][0], 2 * s["x"], atol=2e-3)
    s.run(60)
    passes(s["TestReLU"])


def test_manual_2_1_2():
    s = Session("manual", x=catena.Variable(uniform(2)))
    s.run(52)
    s.run(55)
    mul_add = s["MulAdd"]()
    s.names["f"] = lambda x: mul_add(x, x, x)
    s.run(61)
    s.run(63)
    assert s["y"].creator is not s["z"].creator
    s["F"].sum(s["y"] + s["z"]).backward()
    np.testing.assert_allclose(s["x"].grad, 4 * s["x"].data + 2, rtol=1e-5)


def test_manual_2_2_1(gpus):
    seen = []
    s = Session("manual")
    s.names.update(using_device=s["cuda"].using_device,
                   arrays=[uniform(2), s["cuda"].to_gpu(uniform(2), 1)],
                   do_something_on=lambda arrays: seen.append(_core.current_device()))
    s.run(65)
    assert seen == [s["cuda"].get_device(1)]


# ---- "Define your own function" of Chainer 7


def test_define_skeletons():
    array = uniform(2)
    for number, call in [(2, lambda f, x: f.apply((x,))[0]), (22, lambda f, x: f(x))]:
        s = Session("define", some_tuple=(array,))
        s.run(number)
        x = catena.Variable(uniform(2))
        y = call(s["MulAdd"](), x)
        np.testing.assert_array_equal(y.data, array)
        if number == 2:
            s.names["some_tuple"] = catena.Variable(array),
        y.grad = np.ones(2, np.float32)
        y.backward()
        np.testing.assert_array_equal(x.grad, array)


def new_style(s):
    return lambda *inputs: s["MulAdd"]().apply(inputs)[0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_define_new_style(dtype):
    s = Session("define")
    s.run(3)
    check_mul_add(new_style(s), dtype=dtype)
    s.run(6)
    np.testing.assert_allclose(s["w"].array, s["x"].array * s["y"].array + s["z"].array, rtol=1e-6)
    s.run(7)
    assert isinstance(s["w"], tuple)  # apply() returns a tuple


def test_define_new_style_on_gpus(gpus):
    s = Session("define")
    s.run(4)
    check_mul_add(new_style(s), s["cuda"].to_gpu, gradients=False)
    s.run(5)
    check_mul_add(new_style(s), s["cuda"].to_gpu, gradients=False)
    s.run(10)
    check_mul_add(new_style(s), s["cuda"].to_gpu)


def test_define_5_as_in_chainer():
    """The block takes the indexes 0, 1, 2 of the inputs for the inputs."""
    s = Session("define")
    s.run(5)
    x, y, z, w = check_mul_add(new_style(s), gradients=False)
    w.grad = np.ones((3, 2), np.float32)
    w.backward()
    assert (x.grad == 1).all() and (y.grad == 0).all() and (z.grad == 1).all()


def test_define_10():
    s = Session("define")
    s.run(10)
    x, *_ = check_mul_add(new_style(s))
    x, y, z = (catena.Variable(uniform(2)) for _ in range(3))
    w = s["F"].sum(new_style(s)(x, y, z))
    gradient, = catena.grad([w], [x], enable_double_backprop=True)
    with pytest.raises(NotImplementedError):
        s["F"].sum(gradient).backward()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [8, 9, 28, 29])
def test_define_exp_add(number, dtype, to_gpu=None):
    s = Session("define")
    s.run(number)
    x, y, gz = (uniform(3, 2, dtype=dtype) for _ in range(3))
    a, b, g = (to_gpu(v) if to_gpu else v for v in (x, y, gz))
    a, b = catena.Variable(a), catena.Variable(b)
    z = s["expadd"](a, b)
    z.grad = g
    z.backward()
    tolerance = 5e-3 if dtype == "float16" else 1e-5
    to_cpu = catena.cuda.to_cpu
    assert z.device.is_gpu == bool(to_gpu)
    np.testing.assert_allclose(to_cpu(z.data), np.exp(x) + np.exp(y), tolerance)
    np.testing.assert_allclose(to_cpu(a.grad), gz * np.exp(x), tolerance)
    np.testing.assert_allclose(to_cpu(b.grad), gz * np.exp(y), tolerance)


@pytest.mark.parametrize("number", [8, 9, 28, 29])
def test_define_exp_add_on_gpus(gpus, number):
    test_define_exp_add(number, "float32", catena.cuda.to_gpu)


@pytest.mark.parametrize("number", [12, 13])
def test_define_dropout(number):
    s = Session("define")
    s.run(number)
    x = catena.Variable(np.ones(1000, np.float32))
    y = s["dropout"](x).array
    assert set(y) == {0, 2} and 800 < y.sum() < 1200
    with catena.using_config("train", False):
        assert (s["dropout"](x) is x) == (number == 13)


def test_define_testing():
    s = Session("define")
    s.run(14)
    np.testing.assert_allclose(s["gx"][0], 2 * s["x"], atol=2e-3)
    for number in [15, 16]:
        s.run(number)
        passes(s["TestReLU"])


def test_define_links():
    s = Session("define")
    s.run(17)
    link = s["EltwiseParamProduct"]((2, 3))
    x = catena.Variable(uniform(2, 3))
    y = s["F"].sum(link(x))
    link.cleargrads()
    y.backward()
    np.testing.assert_allclose(link.W.grad, x.array)
    s.run(18)
    s.run(19)
    link = s["Linear"](3, 4)
    assert [name for name, _ in link.namedparams()] == ["/W", "/b"]
    y, = link(x)
    np.testing.assert_allclose(y.array, x.array @ link.W.array.T + link.b.array, rtol=1e-5)
    y.grad = np.ones((2, 4), np.float32)
    with pytest.raises(AttributeError, match="dot"):  # of a variable, as in Chainer
        y.backward()


def test_define_migrating():
    s = Session("define")
    s.run(20)
    s.run(21)
    for apply in [s["MyOldFunc"](), lambda x: s["MyFunc"]().apply((x,))[0]]:
        x = catena.Variable(uniform(3))
        y = apply(x)
        y.grad = np.ones(3, np.float32)
        y.backward()
        np.testing.assert_allclose(x.grad, 2 * x.array, rtol=1e-6)
    y = s["F"].sum(s["MyFunc"]().apply((x,))[0])
    gradient, = catena.grad([y], [x], enable_double_backprop=True)
    with pytest.raises(NotImplementedError):
        s["F"].sum(gradient).backward()


@pytest.mark.parametrize("dtype", DTYPES)
def test_define_old_style(dtype):
    s = Session("define")
    for number in [23, 25]:
        s.run(number)
        check_mul_add(s["MulAdd"](), dtype=dtype)
    s.run(26)
    first = s["w"].array
    s.run(27)
    np.testing.assert_array_equal(s["w"].array, first)


@pytest.mark.parametrize("number", [11, 24, 25, 30, 31])
def test_define_old_style_on_gpus(gpus, number):
    s = Session("define")
    s.run(number)
    for dtype in DTYPES if number in (11, 31) else ["float32"]:
        check_mul_add(s["MulAdd"](), s["cuda"].to_gpu, dtype=dtype)


# ---- the reference of the class Function


def test_function_class():
    methods = {"forward": ["inputs"], "backward": ["inputs", "grad_outputs"], "to_cpu": [],
               "to_gpu": ["device"], "unchain": []}
    for suffix in ["_cpu", "_gpu"]:
        methods["forward" + suffix] = methods["forward"]
        methods["backward" + suffix] = methods["backward"]
    for name, arguments in methods.items():
        assert list(inspect.signature(getattr(catena.Function, name)).parameters) == ["self", *arguments]
    assert list(catena.Function.parameter_names) == list(catena.Function.gradient_names) == []
    f = catena.Function()
    assert f.parameters == f.gradients == ()
    assert f.to_cpu() is f


def test_function_class_in_the_graph():
    s = Session("manual")
    s.run(55)
    x, y, z, w = check_mul_add(s["MulAdd"](), gradients=False)
    f = w.creator
    assert isinstance(f, s["MulAdd"])
    assert [v.shape for v in f.inputs] == [(3, 2)] * 3 and len(f.outputs) == 1
    f.unchain()
    assert w.creator is None


def test_function_class_moves(gpus):
    s = Session("manual")
    s.run(58)
    f = s["EltwiseParamProduct"](3)
    w = f.w
    assert f.to_gpu(1) is f
    assert [p.device for p in f.parameters + f.gradients] == [s["cuda"].get_device(1)] * 2
    assert f.to_cpu() is f
    np.testing.assert_array_equal(f.w, w)


# ---- the files


def test_blocks_are_as_printed():
    assert {name: len(found) for name, found in BLOCKS.items()} == {"manual": 70, "define": 31}
    for found in BLOCKS.values():
        for block in found.values():
            assert blocks.hash_of(block.code) == block.digest, block.key


def test_blocks_are_those_of_the_documents():
    """Set CATENA_REFERENCE to the folder with the documents to run it."""
    folder = os.environ.get("CATENA_REFERENCE")
    if not folder:
        pytest.skip("there are no documents")
    assert not blocks.different(folder)


def test_readme():
    assert (blocks.HERE / "README.md").read_text() == blocks.readme()


def test_every_block_ran(request):
    chosen = {item.function for item in request.session.items if item.module is sys.modules[__name__]}
    if any(inspect.isfunction(f) and name.startswith("test_") and f not in chosen
           for name, f in globals().items()):
        pytest.skip("some tests of this file were not chosen")
    assert blocks.RAN == {block.key for found in BLOCKS.values() for block in found.values()
                          if block.runs}
