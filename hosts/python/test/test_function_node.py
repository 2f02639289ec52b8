"""Functions that Python defines: FunctionNode."""
import gc
import traceback

import catena
import catena.functions as F
import numpy as np
import pytest
from catena import FunctionNode, Variable
from catena._core import as_array

FLOATS = ["float16", "float32", "float64"]


def array(shape=(2, 3), dtype="float32"):
    return (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)


class MulAdd(FunctionNode):
    def forward(self, inputs):
        x, y, z = inputs
        self.retain_inputs((0, 1))
        return np.asarray(x * y + z, x.dtype),

    def backward(self, target_input_indexes, grad_outputs):
        x, y = self.get_retained_inputs()
        gw, = grad_outputs
        return y * gw, x * gw, gw


class Exp(FunctionNode):
    def forward_cpu(self, inputs):
        self.retain_outputs((0,))
        return np.exp(inputs[0]),

    def backward(self, target_input_indexes, grad_outputs):
        y, = self.get_retained_outputs()
        return y * grad_outputs[0],


class Split(FunctionNode):
    """Two outputs: x * 2, x * 3."""

    def forward(self, inputs):
        return inputs[0] * 2, inputs[0] * 3

    def backward(self, indexes, grad_outputs):
        self.seen = grad_outputs
        a, b = grad_outputs
        gx = None if a is None else a * 2
        return (gx if b is None else b * 3 if gx is None else gx + b * 3),


def calling(forward, backward=None):
    """A node with these methods."""
    members = {"forward": lambda self, inputs: forward(*inputs)}
    if backward is not None:
        members["backward"] = lambda self, indexes, grads: backward(*grads)
    return type("Node", (FunctionNode,), members)()


def backward_of(node, *inputs):
    """Runs backward() with gradients of ones, and returns the gradients of the inputs."""
    variables = [Variable(x) for x in inputs]
    for y in node.apply(variables):
        y.grad = np.ones_like(y.array)
        y.backward()
    return [x.grad for x in variables]


# ---- forward and backward

@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3)])
def test_mul_add(shape, dtype):
    x, y, z = (Variable(np.asarray(array(shape, dtype) + i, dtype)) for i in range(3))
    w, = MulAdd().apply((x, y, z))
    assert type(w) is Variable and w.dtype == dtype and w.shape == shape
    assert np.array_equal(w.array, x.array * y.array + z.array)
    w.grad = g = array(shape, dtype)
    w.backward()
    assert np.array_equal(x.grad, y.array * g) and np.array_equal(y.grad, x.array * g)
    assert np.array_equal(z.grad, g) and not np.shares_memory(z.grad, g)


@pytest.mark.parametrize("dtype", FLOATS)
def test_higher_order(dtype):
    x = Variable(np.array([0.5, 1.0], dtype))
    y = F.sum(Exp().apply((x,))[0] * x)
    gx, = catena.grad([y], [x], enable_double_backprop=True)
    ggx, = catena.grad([F.sum(gx)], [x], enable_double_backprop=True)
    tolerance = {"float16": 1e-2}.get(dtype, 1e-5)
    e = np.exp(x.array.astype("float64"))
    assert np.allclose(gx.array, e * (1 + x.array), tolerance) and gx.dtype == dtype
    assert np.allclose(ggx.array, e * (2 + x.array), tolerance)


def test_chainer():
    chainer = pytest.importorskip("chainer")
    results = []
    for module, functions in [(catena, F), (chainer, chainer.functions)]:
        members = {name: vars(MulAdd)[name] for name in ["forward", "backward"]}
        node = type("MulAdd", (module.FunctionNode,), members)
        exp = type("Exp", (module.FunctionNode,),
                   {name: vars(Exp)[name] for name in ["forward_cpu", "backward"]})
        x, y = module.Variable(array()), module.Variable(array() / 7)
        z = node().apply((exp().apply((y,))[0], y, x))[0]
        z = functions.sum(node().apply((z, z, y))[0])
        z.backward(enable_double_backprop=True)
        first = [x.grad_var, y.grad_var]
        x.cleargrad()
        y.cleargrad()
        functions.sum(first[0] * first[1]).backward()
        results.append([z.array, *(g.array for g in first), x.grad, y.grad])
    for ours, theirs in zip(*results):
        assert ours.dtype == theirs.dtype and np.allclose(ours, theirs, 1e-5)


def test_arguments_of_forward_and_backward():
    x, y = array(), array((3,))
    seen = {}

    class Node(FunctionNode):
        def forward(self, inputs):
            seen["inputs"] = inputs
            return inputs[0] + inputs[1],

        def backward(self, target_input_indexes, grad_outputs):
            seen["indexes"], seen["grads"] = target_input_indexes, grad_outputs
            return tuple(F.sum_to(grad_outputs[0], (3,)) for _ in target_input_indexes)
    b = Variable(y)
    z, = Node().apply((x, b))
    assert type(seen["inputs"]) is tuple and seen["inputs"][1] is not None
    assert all(type(a) is np.ndarray and np.shares_memory(a, e)
               for a, e in zip(seen["inputs"], (x, y)))
    z.grad = np.ones_like(x)
    z.backward()
    assert seen["indexes"] == (1,) and type(seen["grads"]) is tuple
    assert type(seen["grads"][0]) is Variable and np.array_equal(b.grad, [2, 2, 2])


def test_forms_of_results():
    x = array()
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.matrix(x * 2)
    for result in [x * 2, (x * 2,), [x * 2], as_array(x * 2), (as_array(x * 2),), matrix]:
        y, = calling(lambda a: result).apply((x,))
        assert np.array_equal(y.array, x * 2)
    y, = calling(lambda a: a.sum()).apply((x,))  # a scalar of NumPy
    assert y.shape == () and y.dtype == "float32" and y.item() == 21
    for gradient in [lambda g: g * 2, lambda g: (g * 2,), lambda g: [g * 2], lambda g: g.array * 2,
                     lambda g: (g.array * 2,), lambda g: as_array(g.array * 2)]:
        assert np.array_equal(backward_of(calling(lambda a: a * 2, gradient), x)[0], x * 0 + 2)
    for nothing in [lambda g: None, lambda g: (None,), lambda g: [None]]:
        assert backward_of(calling(lambda a: a * 2, nothing), x) == [None]
    assert backward_of(calling(lambda a: a * 2), x) == [None]  # no backward()


def test_several_outputs():
    for use in [(0,), (1,), (0, 1), (1, 0)]:
        x = Variable(array())
        node = Split()
        ys = node.apply((x,))
        assert type(ys) is tuple and len(ys) == 2 and ys[0].creator is ys[1].creator is node
        F.sum(sum((ys[i] for i in use[1:]), ys[use[0]])).backward()
        assert [g is None for g in node.seen] == [i not in use for i in range(2)]
        assert (x.grad == sum({0: 2, 1: 3}[i] for i in use)).all()
        assert len(node.outputs) == 2
        del ys
        assert node.outputs is None


def test_an_input_twice():
    x = Variable(array())
    y, = MulAdd().apply((x, x, x))
    y.grad = np.ones_like(x.array)
    y.backward()
    assert np.array_equal(x.grad, 2 * x.array + 1)


def test_gradients_may_share_memory():
    """NumPy's memory is not written into, also if several gradients are the same array."""
    kept = []

    def gradient(g):
        kept.append(g.array * 2)
        return kept[-1], kept[-1]
    for _ in range(2):
        x, y = Variable(array()), Variable(array())
        total = 0
        for _ in range(3):
            z, = calling(lambda a, b: a + b, gradient).apply((x, y))
            total = total + z
        total.grad = np.ones_like(x.array)
        total.backward()
        assert (x.grad == 6).all() and (y.grad == 6).all() and all((k == 2).all() for k in kept)
        x.grad[...] = 0
        assert (y.grad == 6).all()


def test_outputs_that_are_inputs():
    x = Variable(array())
    y, = calling(lambda a: a, lambda g: g).apply((x,))
    assert np.shares_memory(y.array, x.array) and y.creator is not None
    F.sum(y * x).backward()
    assert np.array_equal(x.grad, 2 * x.array)


# ---- what is kept

def test_retained():
    class Node(FunctionNode):
        def forward(self, inputs):
            self.retain_inputs([1])
            self.retain_outputs([1, 0])
            return inputs[0] * 2, inputs[1] * 3

        def backward(self, indexes, grads):
            assert np.array_equal(self.get_retained_inputs()[0].array, self.inputs[1].data)
            y, x = self.get_retained_outputs()
            assert (x.array / 2 == y.array / 3).all() and type(x) is Variable
            self.data = self.output_data
            return None, y
    x, z = Variable(array()), Variable(array())
    node = Node()
    y = node.apply((x, z))[1]
    kept = y.array
    y.grad = kept
    y.backward()
    assert np.array_equal(z.grad, kept) and len(node.data) == 2
    assert np.array_equal(node.output_data[0], array() * 2)

    class Nothing(FunctionNode):
        def forward(self, inputs):
            return inputs

        def backward(self, indexes, grads):
            assert self.get_retained_inputs() == () and self.get_retained_outputs() == ()
            return grads
    assert backward_of(Nothing(), array())[0] is not None
    assert Nothing().get_retained_inputs() == () and Nothing().get_retained_outputs() == ()


def test_retained_before_apply():
    class Square(FunctionNode):
        def __init__(self):
            self.retain_inputs((0,))
            self.retain_outputs((0,))

        def forward(self, inputs):
            return inputs[0] ** 2,

        def backward(self, indexes, grads):
            (x,), (y,) = self.get_retained_inputs(), self.get_retained_outputs()
            assert np.array_equal(y.array, x.array ** 2)
            return grads[0] * 2 * x,
    x, = backward_of(Square(), array())
    assert np.array_equal(x, 2 * array())

    class Other(Square):
        def forward(self, inputs):
            self.retain_outputs(())
            return inputs[0] ** 2,

        def backward(self, indexes, grads):
            assert self.get_retained_outputs() == ()
            return grads[0],
    backward_of(Other(), array())


def test_none_as_an_output():
    class Node(FunctionNode):
        def forward(self, inputs):
            return None, inputs[0] * 2, None

        def backward(self, indexes, grads):
            assert grads[0] is None and grads[2] is None
            return grads[1] * 2,
    x = Variable(array())
    node = Node()
    none, y, other = node.apply((x,))
    assert none.array is None and none.creator is None and other.array is None
    assert y.creator is node and y.rank == 1
    assert node.outputs[0]() is None and node.outputs[1]() == y.node
    y.grad = array()
    y.backward()
    assert np.array_equal(x.grad, 2 * array())
    with catena.no_backprop_mode():
        assert Node().apply((x,))[0].array is None

    class Old(catena.Function):
        def forward(self, inputs):
            return None,
    assert Old()(x).array is None


def test_outputs_that_are_gone():
    """They are weak references to nothing, as in Chainer."""
    class Node(FunctionNode):
        def forward(self, inputs):
            return inputs[0], inputs[0]
    node = Node()
    y, z = node.apply((Variable(array()),))
    del y
    gone, there = node.outputs
    assert gone() is None and there() == z.node
    c, h = F.lstm(Variable(np.ones((2, 3), "float32")), Variable(np.ones((2, 12), "float32")))
    del c
    gone, there, *hidden = h.creator_node.outputs
    assert gone() is None and there() == h.node


def test_retained_errors():
    x = array()
    for method in ["retain_inputs", "retain_outputs"]:
        class Node(FunctionNode):
            def forward(self, inputs):
                getattr(self, method)(self.indexes)
                return inputs[0] * 2
        for indexes, error, message in [((1,), ValueError, "expected indexes below 1, got 1"),
                                        ((-1,), ValueError, "got -1"),
                                        (("a",), TypeError, "integer")]:
            node = Node()
            node.indexes = indexes
            with pytest.raises(error, match=message):
                node.apply((x,))
        for wrong in [(), (0, 1, 2)]:
            with pytest.raises(TypeError):
                getattr(Node(), method)(*wrong)


def test_retained_inputs_that_changed():
    x = Variable(array())
    y, = MulAdd().apply((x, x, x))
    x._array.copy_from(array() * 2)  # catena sees this write, but none through NumPy
    with pytest.raises(catena.GraphError,
                       match=r"\[MulAdd\] backward: expected input 0 unmodified"):
        F.sum(y).backward()


# ---- the graph

def test_attributes():
    x, y = Variable(array(), name="x"), Variable(array())
    node = MulAdd()
    assert node.inputs is None and node.outputs is None and node.rank == 0
    assert node.label == "MulAdd"
    z, = node.apply((x * 2, y, array()))
    assert z.creator is node and z.creator_node is node and node.rank == 1 and z.rank == 2
    assert len(node.inputs) == 3 and node.inputs[1] == y.node and node.inputs[1] != x.node
    first, second, third = node.inputs
    assert first.creator.label == "catena.mul_constant" and first.creator.inputs == (x.node,)
    assert first.get_variable_or_none() is None and first.shape == (2, 3) and first.rank == 1
    assert second.data is not None and second.requires_grad and not third.requires_grad
    assert x.node.name == "x" and second.name is None
    assert second.grad is None and second.creator is None
    assert second.dtype == np.dtype("float32") and len({second, y.node, first}) == 2
    output, = node.outputs
    assert output() == z.node and output.get_variable().array is not None
    node.unchain()
    assert node.inputs is None and z.creator is None
    node.unchain()


def test_without_a_graph():
    for scope in [catena.no_backprop_mode(), catena.using_config("enable_backprop", False)]:
        node = MulAdd()
        with scope:
            y, = node.apply((Variable(array()),) * 3)
        assert y.creator is None and node.inputs is None and not y.requires_grad
        node.unchain()
    y, = MulAdd().apply((array(), array(), array()))
    assert y.creator is None and not y.requires_grad
    i = Variable(np.arange(3))
    assert calling(lambda a: a * 2).apply((i,))[0].array.tolist() == [0, 2, 4]


def test_unchain_and_creator():
    x = Variable(array())
    y, = MulAdd().apply((x, x, x))
    y.creator_node = y.creator_node
    with pytest.raises(ValueError, match="creator_node: expected None"):
        y.creator = MulAdd()
    y.creator = None
    assert y.creator is None and y.creator_node is None
    y, = MulAdd().apply((x, x, x))
    z = y * 2
    y.unchain()
    F.sum(z).backward()
    assert x.grad is None and (y.grad == 2).all()
    y, = MulAdd().apply((x, x, x))
    y.unchain_backward()
    with pytest.raises(catena.GraphError, match="unchain_backward"):
        F.sum(y * 0).creator and y.backward()


def test_applied_once():
    node = MulAdd()
    x = Variable(array())
    y, = node.apply((x, x, x))
    with pytest.raises(catena.GraphError, match=r"\[.*MulAdd\] apply: expected a new node"):
        node.apply((x, x, x))
    assert y.creator is node


def test_arguments_of_apply():
    class Strange(FunctionNode):
        def forward(self, inputs):
            return inputs[0] * 2
    x = Variable(array())
    for inputs in [x, (x,), [x], (a for a in [x]), array(), (array(),)]:
        assert Strange().apply(inputs)[0].shape == (2, 3)
    for wrong in [3, None, (3,), ([1.0],), "x"]:
        with pytest.raises(TypeError, match="apply: input"):
            Strange().apply(wrong)
    with pytest.raises(TypeError, match="apply"):
        Strange().apply()
    with pytest.raises(RuntimeError, match="expected an array, got none"):
        Strange().apply((catena.Parameter(),))
    assert calling(lambda: array()).apply(())[0].shape == (2, 3)
    x, = calling(lambda a, b: a if b is None else b).apply((x, None))
    assert x.shape == (2, 3)


def test_graph_of_calls_within_forward():
    """Calls on variables within forward() have a graph of their own."""
    x = Variable(array())

    def forward(a):
        y = Variable(a) * 3
        assert y.creator is not None and catena.config.enable_backprop
        return y.array
    y, = calling(forward, lambda g: g * 3).apply((x,))
    F.sum(y).backward()
    assert (x.grad == 3).all() and catena.config.enable_backprop


# ---- errors

def test_wrong_results():
    x = array()
    for result, error, message in [
            ((), ValueError, r"\[Node\] forward: expected at least one output, got none"),
            (None, TypeError, r"\[Node\] forward: output 0: expected"),
            (3.5, TypeError, "output 0: expected a numpy.ndarray or another array, got float"),
            ("ab", TypeError, "output 0"), ([[1.0]], TypeError, "output 0: expected .*, got list"),
            (Variable(x), TypeError, "expected an array, got a catena.Variable"),
            (x.astype("int8"), TypeError, "output 0: expected .*, got int8")]:
        with pytest.raises(error, match=message):
            calling(lambda a: result).apply((x,))
    for gradient, error, message in [
            (lambda g: (g, g), ValueError, r"\[Node\] backward: expected 1 gradients, got 2"),
            (lambda g: (), ValueError, "expected 1 gradients, got 0"),
            (lambda g: g[0], ValueError,
             r"backward: gradient of .*: expected shape \(2, 3\), got \(3,\)"),
            (lambda g: F.cast(g, "float64"), TypeError,
             "gradient of .*: expected float32, got float64"),
            (lambda g: 3.0, TypeError, r"\[Node\] backward: gradient: expected"),
            (lambda g: ([1.0],), TypeError, r"\[Node\] backward: gradient: expected")]:
        with pytest.raises(error, match=message):
            backward_of(calling(lambda a: a * 2, gradient), x)
    with pytest.raises(NotImplementedError,
                       match=r"\[FunctionNode\] forward_cpu: expected a class that"):
        FunctionNode().apply((x,))
    with pytest.raises(TypeError):
        MulAdd()(x, x, x)


class Special(Exception):
    pass


@pytest.mark.parametrize("error", [Special("here"), KeyboardInterrupt(), SystemExit(3),
                                   StopIteration(),
                                   RecursionError("deep"), MemoryError()])
def test_exceptions_keep_type_and_traceback(error):
    def fail_in_here(*grads):
        raise error
    x = Variable(array())
    with pytest.raises(type(error)) as caught:
        calling(fail_in_here).apply((x,))
    assert caught.value is error and "fail_in_here" in str(traceback.format_tb(caught.tb))
    y = F.sum(F.exp(calling(lambda a: a * 2, fail_in_here).apply((x * 2,))[0]))
    for _ in range(2):
        with pytest.raises(type(error)) as caught:
            y.backward()
        assert caught.value is error and "fail_in_here" in str(traceback.format_tb(caught.tb))
        with pytest.raises(type(error)):
            catena.grad([y], [x])
    assert x.grad is None and catena.config.enable_backprop


def test_errors_of_catena_pass_through():
    def fail(g):
        return g + Variable(array((4,)))
    with pytest.raises(catena.ShapeError, match="broadcast") as caught:
        backward_of(calling(lambda a: a * 2, fail), array())
    assert "in fail" in "".join(traceback.format_tb(caught.tb))

    def chained(g):
        try:
            raise Special("first")
        except Special as first:
            raise ValueError("second") from first
    with pytest.raises(ValueError, match="second") as caught:
        backward_of(calling(lambda a: a * 2, chained), array())
    assert isinstance(caught.value.__cause__, Special)


def test_label():
    class Named(FunctionNode):
        label = "my name"

        def forward(self, inputs):
            return ()

    class Broken(Named):
        @property
        def label(self):
            raise Special("no label")
    with pytest.raises(ValueError, match=r"\[my name\] forward"):
        Named().apply((array(),))
    with pytest.raises((Special, ValueError)):
        Broken().apply((array(),))


def test_nodes_within_nodes():
    class Outer(FunctionNode):
        def forward(self, inputs):
            return Exp().apply(inputs)[0].array

        def backward(self, indexes, grads):
            x = Variable(array() / 9)
            y = F.sum(Exp().apply((x,))[0])
            with catena.force_backprop_mode():
                y = F.sum(Exp().apply((x,))[0])
            y.backward()
            return grads[0] * x.grad
    assert np.allclose(backward_of(Outer(), array() / 9)[0], np.exp(array() / 9), 1e-5)


def test_backward_accumulate():
    class Accumulates(FunctionNode):
        def forward(self, inputs):
            return inputs[0] * 2

        def backward_accumulate(self, indexes, grad_outputs, grad_inputs):
            assert indexes == (0,) and grad_inputs == (None,)
            return grad_outputs[0] * 2,
    assert (backward_of(Accumulates(), array())[0] == 2).all()
    node = Split()
    x = Variable(array())
    kept = node.apply((x,))
    ones = Variable(np.ones_like(x.array))
    total, = node.backward_accumulate((0,), (ones, None), (ones,))
    assert (total.array == 3).all() and len(kept) == 2
    assert node.backward_accumulate((0,), (None, ones), (None,))[0].array.max() == 3


def test_reference_to_results_is_collected():
    node = MulAdd()
    node.result, = node.apply((Variable(array()),) * 3)
    del node
    assert gc.collect() > 0
