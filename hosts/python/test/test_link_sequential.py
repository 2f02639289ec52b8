"""Sequential and FunctionSet."""
import copy
import functools
import pickle

import numpy
import pytest

import catena
from catena import functions as F
from catena import links as L


def build(module, sizes="L3 relu L4 L5 relu L6"):
    layers = []
    n_in = 2
    for name in sizes.split():
        if name[0] == "L":
            layers.append(module.links.Linear(n_in, int(name[1:])))
            n_in = int(name[1:])
        else:
            layers.append(getattr(module.functions, name))
    return module.Sequential(*layers)


def names(model):
    return [(path, parameter.shape) for path, parameter in model.namedparams()]


def operate(module):
    """The names of parameters after all operations."""
    model = build(module)
    found = [names(model)]
    relu, linear = module.functions.relu, module.links.Linear
    for operation in [
            lambda: model.insert(2, linear(1, 9)), lambda: model.insert(0, relu),
            lambda: model.insert(-1, linear(1, 8)), lambda: model.append(linear(1, 7)),
            lambda: model.pop(), lambda: model.pop(2), lambda: model.__delitem__(0),
            lambda: model.__setitem__(1, linear(1, 11)), lambda: model.__setitem__(0, relu),
            lambda: model.extend([relu, linear(1, 12)]), lambda: model.remove(model[-1]),
            lambda: model.remove_by_layer_type("relu"), lambda: model.__iadd__(build(module))]:
        operation()
        found.append((names(model), [getattr(layer, "name", None) for layer in model]))
    found.append(names(model + build(module, "L3 relu")))
    found.append(names(model.flatten()))
    found.append(names(model.copy()))
    found.append(model.count_by_layer_type("relu"))
    found.append(model.count_by_layer_type("Linear"))
    return found


def test_operations_are_chainers():
    chainer = pytest.importorskip("chainer")
    for ours, theirs in zip(operate(catena), operate(chainer), strict=True):
        assert ours == theirs


def test_list():
    model = build(catena, "L3 relu L4")
    assert len(model) == 3 and model[1] is F.relu and F.relu in model and F.tanh not in model
    assert list(reversed(model))[0] is model[2] and model.index(F.relu) == 1
    assert model.count(F.relu) == 1 and model[0:2] == [model[0], F.relu]
    nested = catena.Sequential(model, catena.Sequential(model[0], F.tanh), F.relu)
    assert list(nested.flatten()) == [*model, model[0], F.tanh, F.relu]
    model.clear()
    assert len(model) == 0 and not list(model.children()) and not list(model.params())
    with pytest.raises(RuntimeError, match="Sequential does not have any layer"):
        model(3)


def test_forward():
    model = catena.Sequential(lambda x, y: (x + y, x), lambda x, y: x * y, L.Linear(2, 3))
    x = numpy.ones((1, 2), "float32")
    y = model(catena.Variable(x), x)
    numpy.testing.assert_allclose(y.array, model[2](2 * x).array)
    model = build(catena)
    x = numpy.random.randn(3, 2).astype("float32")
    y = F.relu(model[3](model[2](F.relu(model[0](x)))))
    numpy.testing.assert_array_equal(model(x).array, model[5](y).array)


def test_copies():
    model = build(catena)
    shared, copied = model.copy(), model.copy("copy")
    assert shared[0].W.array is model[0].W.array and copied[0].W.array is not model[0].W.array
    assert shared[1] is F.relu
    with model.init_scope():
        model.p = catena.Parameter(1, (2,))
    for other in [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]:
        assert names(other) == names(model) and other[1] is F.relu
        assert list(other.children())[0] is other[0]
        numpy.testing.assert_array_equal(other[2].W.array, model[2].W.array)
    target = build(catena)
    target.copyparams(build(catena).copy("copy"))
    source = build(catena)
    target.copyparams(source)
    for a, b in zip(target.params(), source.params()):
        numpy.testing.assert_array_equal(a.array, b.array)
    with pytest.raises(ValueError, match="Objects other than Sequential object cannot be copied"):
        target.copyparams(catena.ChainList())
    assert len(model.repeat(2)) == 2


def test_pickle_of_functions():
    partial = catena.Sequential(L.Linear(2, 3), functools.partial(F.softmax, axis=0))
    x = numpy.ones((2, 2), "float32")
    numpy.testing.assert_array_equal(pickle.loads(pickle.dumps(partial))(x).array,
                                     partial(x).array)
    with pytest.raises(ValueError, match="at least one lambda function"):
        pickle.dumps(catena.Sequential(lambda x: x))


def test_text():
    model = catena.Sequential(L.Linear(2, 3), F.relu, catena.Sequential(L.Linear(1)),
                              lambda x: x + 1)
    assert str(model) == f"""Sequential(
  (0): Linear(in_size=2, out_size=3, nobias=False),
  (1): {F.relu},
  (2): Sequential(
    (0): Linear(in_size=None, out_size=1, nobias=False),
  ),
  (3): lambda x: x + 1),
)"""
    assert str(catena.Sequential()) == "Sequential()"


def test_errors():
    model = build(catena)
    with pytest.raises(ValueError, match="should be callable. But given 3 is not callable"):
        model.append(3)
    with pytest.raises(ValueError, match="is not callable"):
        model[0] = 3
    with pytest.raises(IndexError, match="Index out of range: 9"):
        model.insert(9, F.relu)
    with pytest.raises(ValueError, match="9 should be less than 6"):
        model[9] = F.relu
    with pytest.raises(ValueError, match="no layer object that is same as"):
        model.remove(F.tanh)
    for operation in [lambda: model + [F.relu], lambda: model.__iadd__([F.relu])]:
        with pytest.raises(ValueError, match="supports only objects of Sequential class"):
            operation()


class TestFunctionSet:
    def make(self):
        model = catena.FunctionSet(l1=L.Linear(4, 3), l2=L.Linear(3, 2))
        model.embed = L.EmbedID(5, 4)
        return model

    def test_children(self):
        model = self.make()
        assert [name for name, _ in model.namedparams()] == [
            "/embed/W", "/l1/W", "/l1/b", "/l2/W", "/l2/b"]
        model.l2 = L.Linear(3, 1)
        assert [p.shape for p in model.parameters] == [(5, 4), (3, 4), (3,), (1, 3), (1,)]
        nested = catena.FunctionSet(gpu0=model, gpu1=self.make())
        assert len(nested.parameters) == 10
        model.number = 3
        assert model.number == 3

    def test_training(self):
        model = self.make()
        y = F.sum(model.l2(F.relu(model.l1(model.embed(numpy.array([1, 4], "int32"))))))
        for link in model.children():
            link.cleargrads()
        y.backward()
        parameters, gradients = model.collect_parameters()
        assert [p.shape for p in parameters] == [g.shape for g in gradients]
        assert gradients[4].tolist() == [2, 2]
        numpy.testing.assert_array_equal(model.l2.W.grad, gradients[3])
        for p, g in zip(parameters, gradients):
            p -= 0.1 * g
        numpy.testing.assert_array_equal(model.l1.W.array, parameters[1])

    def test_copies(self):
        model, other = self.make(), self.make()
        twin = copy.deepcopy(model)
        model.copy_parameters_from(other.parameters)
        assert (model.l1.W.array == other.l1.W.array).all()
        assert (model.l1.W.array != twin.l1.W.array).any()
        kept = model.l1.W
        model.parameters = twin.parameters
        assert model.l1.W is kept and kept.array is twin.l1.W.array
        model.gradients = [numpy.full(p.shape, 2, "float32") for p in model.parameters]
        assert model.l1.b.grad.tolist() == [2, 2, 2]
        with pytest.raises(ValueError):
            model.copy_parameters_from(other.parameters[:2])
        assert model.to_cpu() is model
