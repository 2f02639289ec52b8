"""The names and signatures of the manual of Chainer 1.0.1; see reference/README.md."""
import copy
import inspect
import pathlib
import pickle
import sys

import numpy as np
import pytest

import catena

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "reference"))
import names  # noqa: E402
from blocks import BLOCKS  # noqa: E402
from checks import gpus, uniform  # noqa: E402, F401


@pytest.mark.parametrize("owner", names.NAMES)
def test_names_of_the_manual(owner):
    for name in names.NAMES[owner].split():
        absent = f"{owner}.{name}" in names.ABSENT
        assert hasattr(getattr(catena, owner), name) != absent, name


def test_manual_2_2_1_random_numbers(gpus):
    cuda, F = catena.cuda, catena.functions
    x = catena.Variable(cuda.ones(100))

    def dropped(seed):
        cuda.seed(seed)
        return cuda.to_cpu(F.dropout(x).data)
    np.testing.assert_array_equal(dropped(1), dropped(1))
    for other in [2, None, None]:
        assert (dropped(1) != dropped(other)).any()


def test_manual_2_2_1_arrays(gpus):
    cuda = catena.cuda
    x = cuda.to_gpu_async(uniform(2, 3))
    assert isinstance(x, cuda.GPUArray) and x.device == cuda.get_device(x) == cuda.Device(0)
    there = cuda.copy_async(x, out_device=1)
    assert there.device == cuda.get_device(1)
    for array in [there, cuda.copy(x), cuda.copy(x, out=cuda.empty_like(x))]:
        np.testing.assert_array_equal(cuda.to_cpu_async(array), cuda.to_cpu(x))
    for name, value in [("zeros", 0), ("ones", 1)]:
        for array in [getattr(cuda, name)((2, 3)), getattr(cuda, name + "_like")(x)]:
            assert array.dtype == np.float32 and array.device == x.device
            np.testing.assert_array_equal(cuda.to_cpu(array), np.full((2, 3), value))
    np.testing.assert_array_equal(cuda.to_cpu(cuda.full_like(x, 3)), cuda.to_cpu(cuda.full((2, 3), 3)))
    for shape, dtype in [((0, 2), "int32"), ((), "float64")]:
        array = cuda.empty(shape, dtype)
        assert array.shape == shape and array.dtype == dtype


@pytest.mark.parametrize("number", [66, 67, 68, 69, 70])
def test_signatures(number):
    """The printed signatures accept the same calls; arguments that Chainer 7 removed are refused."""
    printed = BLOCKS["manual"][number].code.strip().removeprefix("class ")
    name, arguments = printed.rstrip(")").split("(", 1)
    if number == 70:
        name = "chainer.functions.BatchNormalization.forward"  # which __call__() calls
    found = catena
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    found = inspect.signature(found).parameters
    for argument in " ".join(arguments.split()).split(", "):
        argument, _, default = argument.partition("=")
        if argument == "use_cudnn":  # Chainer 7 has another option with this number
            continue
        assert argument in found
        if default:
            assert found[argument].default == eval(default)


# ---- functions with parameters


class Scale(catena.Function):
    parameter_names = "w",
    gradient_names = "gw",

    def __init__(self):
        self.w = uniform(3)
        self.gw = np.zeros(3, np.float32)

    def forward(self, inputs):
        return self.w * inputs[0],

    def backward(self, inputs, grad_outputs):
        self.gw += grad_outputs[0] * inputs[0]
        return self.w * grad_outputs[0],


def one_step(model):
    """Runs model.f twice and updates; returns the input."""
    optimizer = catena.optimizers.SGD(lr=1)
    optimizer.setup(model.collect_parameters())
    optimizer.zero_grads()
    x = catena.Variable(model.f.w.copy())
    catena.functions.sum(model.f(x) + model.f(x)).backward()
    optimizer.update()
    return x


def test_set_of_functions():
    model = catena.FunctionSet(f=Scale(), l=catena.functions.Linear(3, 2))
    f = model.f
    assert [p.shape for p in model.parameters] == [(3,), (2, 3), (2,)]
    w = f.w
    x = one_step(model)
    assert f.w is w  # updated in place
    np.testing.assert_allclose(w, x.data - 2 * x.data, rtol=1e-6)
    np.testing.assert_allclose(model.gradients[0], 2 * x.data, rtol=1e-6)
    model.copy_parameters_from([np.ones_like(p) for p in model.parameters])
    assert (f.w == 1).all() and (model.l.W == 1).all()
    with pytest.raises(AttributeError, match="cannot register a new function add_link"):
        model.__dict__["add_link"] = None
        model.add_link = Scale()


def test_set_of_functions_on_gpus(gpus):
    model = catena.FunctionSet(f=Scale()).to_gpu(1)
    assert model.f.w.device == model.f.gw.device == catena.cuda.get_device(1)
    x = one_step(model)
    to_cpu = catena.cuda.to_cpu
    np.testing.assert_allclose(to_cpu(model.f.w), -to_cpu(x.data), rtol=1e-6)
    assert isinstance(model.to_cpu().f.w, np.ndarray)
    one_step(model)


def test_numbers_of_gpus(gpus):
    assert [catena.Device(name).id for name in ["cpu:0", "cpu:1", "cpu:3"]] == [-1, 0, 2]
    seen = []

    class Old(catena.links.Linear):  # overrides the method that Chainer 1 to 5 call
        def to_gpu(self, device=None):
            seen.append(device)
            return super().to_gpu(device)
    model = catena.Chain(l=Old(2, 2)).to_gpu(1)
    assert seen == [1] and model.l.W.device == catena.cuda.get_device(1)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)),
                                    lambda m: m.copy("copy"), lambda m: m.copy("share")])
def test_copies_of_a_set(copied):
    model = catena.FunctionSet(f=Scale(), l=catena.functions.Linear(3, 2))
    made = copied(model)
    before = model.f.w.copy()
    np.testing.assert_array_equal(made.f.w, before)
    assert made.f is not model.f
    one_step(made)
    np.testing.assert_allclose(made.f.w, -before, rtol=1e-6)
    np.testing.assert_array_equal(made.parameters[0], made.f.w)
    shared = np.shares_memory(made.f.w, model.f.w)
    assert shared == np.shares_memory(made.l.W, model.l.W)
    np.testing.assert_array_equal(model.f.w, made.f.w if shared else before)


def test_saved_set(tmp_path):
    model, other = catena.FunctionSet(f=Scale()), catena.FunctionSet(f=Scale())
    catena.serializers.save_npz(tmp_path / "set.npz", model)
    with np.load(tmp_path / "set.npz") as file:
        assert list(file) == ["f/w"]
    catena.serializers.load_npz(tmp_path / "set.npz", other)
    np.testing.assert_array_equal(other.f.w, model.f.w)


def test_set_without_a_function():
    model = catena.FunctionSet(f=Scale())
    model.f = catena.functions.Linear(3, 2)
    assert [path for path, _ in model.namedparams()] == ["/f/W", "/f/b"]
    model.f = Scale()
    del model.f
    assert model.parameters == () and not hasattr(model, "f")


@pytest.mark.parametrize("make, shape, names", [
    (lambda F: F.Linear(3, 2), (5, 3), "W b"),
    (lambda F: F.Linear(3, 2, nobias=True), (5, 3), "W"),
    (lambda F: F.Convolution2D(3, 2, 3, pad=1), (2, 3, 4, 5), "W b"),
    (lambda F: F.BatchNormalization(3), (5, 3), "gamma beta"),
    (lambda F: F.PReLU((3,), init=0.5), (5, 3), "W"),
])
def test_arrays_of_functions(make, shape, names):
    f = make(catena.functions)
    for name in names.split():
        assert isinstance(getattr(f, name), np.ndarray)
        getattr(f, "g" + name).fill(0)
    assert len(f.parameters) == len(f.gradients) == len(names.split())
    x = catena.Variable(uniform(*shape))

    def gradients():
        y = f(x)
        y.grad = np.ones_like(y.data)
        y.backward()
        return [g.copy() for g in f.gradients]
    once = gradients()
    assert any(g.any() for g in once)
    for twice, g in zip(gradients(), once):
        np.testing.assert_allclose(twice, 2 * g, 1e-4, 1e-5)
    name = names.split()[0]
    setattr(f, name, np.zeros_like(getattr(f, name)))
    assert not dict(f.namedparams())["/" + name].array.any()


def test_other_functions_with_arrays():
    F = catena.functions
    f = F.EmbedID(4, 2)
    np.testing.assert_array_equal(f(catena.Variable(np.array([3, 0], np.int32))).data, f.W[[3, 0]])
    f = F.BinaryHierarchicalSoftmax(3, ((0, 1), 2))
    assert f.W.shape == (2, 3) and f.gW.shape == (2, 3)
    f = F.Parameter(np.ones(2, np.float32))
    assert np.shares_memory(f().data, f.W)
    f = F.Inception(3, 1, 2, 2, 2, 1, 2)
    assert f(catena.Variable(uniform(1, 3, 4, 4))).shape == (1, 6, 4, 4)
    f = F.BatchNormalization(2)
    x = catena.Variable(uniform(8, 2))
    np.testing.assert_allclose(f(x, test=True).data, x.data, 1e-4, 1e-5)
    np.testing.assert_allclose(f(x).data.mean(0), [0, 0], atol=1e-6)
