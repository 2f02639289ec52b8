"""Functions that Python defines with gradients on arrays: Function."""
import copy
import gc
import pickle
import weakref

import catena
import catena.functions as F
import numpy as np
import pytest
from catena import Function, Variable

FLOATS = ["float16", "float32", "float64"]


def array(shape=(2, 3), dtype="float32"):
    return (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)


class MulAdd(Function):
    def forward(self, inputs):
        x, y, z = inputs
        return x * y + z,

    def backward(self, inputs, grad_outputs):
        x, y, z = inputs
        gw, = grad_outputs
        return y * gw, x * gw, gw


class Scale(Function):
    """Has arguments and state, as functions of Chainer 1 have."""

    def __init__(self, factor):
        self.factor = factor

    def forward_cpu(self, inputs):
        self.mask = inputs[0] > 2
        return inputs[0] * self.factor * self.mask,

    def backward_cpu(self, inputs, grad_outputs):
        return grad_outputs[0] * self.factor * self.mask,


@pytest.mark.parametrize("dtype", FLOATS)
def test_mul_add(dtype):
    x, y, z = (Variable(array(dtype=dtype) + np.asarray(i, dtype)) for i in range(3))
    w = MulAdd()(x, y, z)
    assert type(w) is Variable and w.dtype == dtype
    assert np.array_equal(w.array, x.array * y.array + z.array)
    w.grad = g = array(dtype=dtype)
    w.backward()
    assert np.array_equal(x.grad, y.array * g) and np.array_equal(y.grad, x.array * g)
    assert np.array_equal(z.grad, g)


def test_chainer():
    chainer = pytest.importorskip("chainer")
    results = []
    for module, functions in [(catena, F), (chainer, chainer.functions)]:
        def of(example, *args):
            members = {k: v for k, v in vars(example).items() if callable(v)}
            return type(example.__name__, (module.Function,), members)(*args)
        x, y = module.Variable(array()), module.Variable(array() / 7)
        scale = of(Scale, 3)
        z = of(MulAdd)(scale(x), y, of(MulAdd)(x, x, y))
        functions.sum(z).backward()
        results.append([z.array, x.grad, y.grad, scale.mask, scale.label, scale.rank,
                        scale.inputs[0].data, type(z.creator).__name__, scale.output_data
                        if module is None else None])
    for ours, theirs in zip(*results):
        assert np.array_equal(ours, theirs)


def test_state_of_several_calls():
    """The object has the attributes of the last call; earlier calls keep theirs."""
    scale = Scale(3)
    x, y = Variable(np.array([1, 5], "float32")), Variable(np.array([5, 1], "float32"))
    first = scale(x)
    assert scale.mask.tolist() == [False, True] and first.creator is scale
    second = scale(y)
    assert scale.mask.tolist() == [True, False] and second.creator is scale
    assert first.creator is not scale and type(first.creator) is Scale
    F.sum(first + second).backward()
    assert x.grad.tolist() == [0, 3] and y.grad.tolist() == [3, 0]
    assert scale.node is second.creator_node
    del first, second
    assert scale.node is None
    third = scale(x)
    assert third.creator is scale


def test_forms_of_results():
    x = array()

    def of(forward, backward):
        return type("Node", (Function,), {"forward": lambda self, inputs: forward(*inputs),
                                          "backward": lambda self, xs, gs: backward(*gs)})()
    for result in [x * 2, (x * 2,), [x * 2]]:
        for gradient in [lambda g: g * 2, lambda g: (g * 2,), lambda g: [g * 2]]:
            v = Variable(x)
            F.sum(of(lambda a: result, gradient)(v)).backward()
            assert (v.grad == 2).all()
    for nothing in [lambda g: None, lambda g: (None,)]:
        v = Variable(x)
        F.sum(of(lambda a: a * 2, nothing)(v)).backward()
        assert v.grad is None
    for wrong, error, message in [
            (lambda g: (g, g), ValueError, r"\[Node\] backward: expected 1 gradients, got 2"),
            (lambda g: g[0], ValueError, r"expected shape \(2, 3\), got \(3,\)"),
            (lambda g: g.astype("float64"), TypeError, "expected float32, got float64"),
            (lambda g: ["x"], TypeError, "gradient: expected")]:
        with pytest.raises(error, match=message):
            v = Variable(x)
            F.sum(of(lambda a: a * 2, wrong)(v)).backward()
    with pytest.raises(NotImplementedError,
                       match="forward_cpu: expected a class that overrides it"):
        Function()(x)
    y = type("Plain", (Function,), {"forward": lambda self, xs: xs})()(Variable(x))
    F.sum(y).backward()  # without backward() there are no gradients


def test_several_outputs_and_missing_gradients():
    class Two(Function):
        def forward(self, inputs):
            return inputs[0] * 2, inputs[0] * 3

        def backward(self, inputs, grad_outputs):
            self.seen = grad_outputs
            return sum(g * f for g, f in zip(grad_outputs, (2, 3)) if g is not None),
    two, x = Two(), Variable(array())
    ys = two(x)
    assert type(ys) is tuple and len(ys) == 2
    F.sum(ys[1]).backward()
    assert (x.grad == 3).all() and two.seen[0] is None and type(two.seen[1]) is np.ndarray


def test_gradients_may_be_the_same_array():
    class Add(Function):
        def forward(self, inputs):
            return inputs[0] + inputs[1]

        def backward(self, inputs, grad_outputs):
            return grad_outputs[0], grad_outputs[0]
    x, y = Variable(array()), Variable(array())
    F.sum(Add()(Add()(x, y), Add()(x, y))).backward()
    assert (x.grad == 2).all() and (y.grad == 2).all() and not np.shares_memory(x.grad, y.grad)


def test_retain():
    class Node(Function):
        def forward(self, inputs):
            self.retain_inputs((1,))
            self.retain_outputs((0,))
            return inputs[0] * inputs[1], inputs[1]

        def backward(self, inputs, grad_outputs):
            self.seen = inputs, self.output_data
            return inputs[1] * grad_outputs[0], None
    node, x, y = Node(), Variable(array()), Variable(array() + 1)
    z, _ = node(x, y)
    F.sum(z).backward()
    (first, second), (output, nothing) = node.seen
    assert first is None and np.array_equal(second, y.array) and nothing is None
    assert np.array_equal(output, z.array) and np.array_equal(x.grad, y.array) and y.grad is None
    assert node.inputs[1] == y.node and node.outputs[0]() == z.node and node.rank == 0


def test_second_order_is_refused():
    x = Variable(array())
    y = F.sum(MulAdd()(x, x, x))
    gx, = catena.grad([y], [x], enable_double_backprop=True)
    assert np.array_equal(gx.array, 2 * array() + 1)
    with pytest.raises(catena.NotDifferentiableError,
                       match=r"\[MulAdd\] backward: .* higher order"):
        F.sum(gx).backward()


def test_is_freed_without_the_collector():
    gc.collect()
    gc.disable()
    try:
        function = Scale(2)
        alive = weakref.ref(function)
        y = function(Variable(array()))
        F.sum(y).backward()
        node = weakref.ref(y.creator_node)
        del function
        assert alive() is y.creator
        del y
        assert alive() is None and node() is None
    finally:
        gc.enable()


def test_copies():
    scale = Scale(2)
    y = scale(Variable(array()))
    for made in [copy.copy(scale), copy.deepcopy(scale), pickle.loads(pickle.dumps(scale))]:
        assert made.factor == 2 and np.array_equal(made.mask, scale.mask)
        assert made(Variable(array())).creator is made
    assert y.creator is scale


def test_unchain():
    scale, x = Scale(2), Variable(array())
    y = scale(x)
    scale.unchain()
    assert y.creator is None


def test_subclass_without_super_init():
    class Node(Function):
        def __init__(self):
            pass

        def forward(self, inputs):
            return inputs

        def backward(self, inputs, grad_outputs):
            raise KeyError("mine")
    x = Variable(array())
    with pytest.raises(KeyError, match="mine"):
        F.sum(Node()(x)).backward()
