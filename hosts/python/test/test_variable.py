"""Variables: construction, attributes, text, copies. Some tests compare with Chainer."""
import copy
import gc
import pickle
import weakref

import catena
import catena.functions as F
import numpy as np
import pytest
from catena import Parameter, Variable

FLOATS = ["float16", "float32", "float64"]
DTYPES = FLOATS + ["int32", "int64", "uint8", "bool"]


def array(shape=(2, 3), dtype="float32"):
    return np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


# ---- construction

@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3), (3, 0, 2), (1,) * 16])
def test_data(dtype, shape):
    a = array(shape, dtype)
    x = Variable(a)
    assert x.data is a and x.array is a and x.data is x.data
    assert x.shape == shape and x.ndim == len(shape) and x.size == a.size
    assert x.dtype == a.dtype and isinstance(x.dtype, np.dtype)
    assert x.requires_grad == (a.dtype.kind == "f")
    assert x.grad is None and x.grad_var is None and x.creator is None and x.rank == 0
    assert x.name is None and x.xp is np and x.device == catena.Device("cpu:0")


def test_arguments():
    a = array()
    x = Variable(a, name="x", grad=a + 1, requires_grad=True)
    assert x.name == "x" and np.array_equal(x.grad, a + 1)
    assert Variable(data=a).data is a
    assert not Variable(a, requires_grad=False).requires_grad
    with pytest.raises(TypeError, match="'foo'"):
        Variable(a, foo=1)
    with pytest.raises(ValueError, match=r"grad: expected shape \(2, 3\), got \(3,\)"):
        Variable(a, grad=a[0])
    with pytest.raises(TypeError, match="name: expected a str or None, got a int"):
        Variable(a, name=3)


@pytest.mark.parametrize("wrong", [[1.0, 2.0], (1, 2), 1.0, 3, "text", b"x", {}, object(),
                                   Variable(array()),
                                   Parameter(array())])
def test_wrong_data(wrong):
    with pytest.raises(TypeError, match=r"\[catena.Variable\] array: expected a"):
        Variable(wrong)
    x = Variable(array())
    with pytest.raises(TypeError, match=r"\[catena.Variable\] array: expected a"):
        x.array = wrong
    with pytest.raises(TypeError, match=r"\[catena.Variable\] grad: expected a"):
        x.grad = wrong
    assert np.array_equal(x.array, array()) and x.grad is None


def test_volatile():
    a = array()
    for value, expected in [(True, True), (False, False), ("on", True), ("off", False),
                            ("auto", False)]:
        assert Variable(a, value).volatile is expected
        assert Variable(a, volatile=value).volatile is expected
    for wrong in ["yes", a, 1.5]:
        with pytest.raises(TypeError, match="volatile: expected a bool, 'on', 'off' or 'auto'"):
            Variable(a, volatile=wrong)
    x = Variable(a, volatile=True)
    y = x * 2
    assert y.volatile and y.creator is None
    y.volatile = False
    z = (y * y).sum()
    z.backward()
    assert np.array_equal(y.grad, 4 * a) and x.grad is None
    with pytest.raises(catena.GraphError, match="volatile"):
        x + Variable(a)


def test_without_array():
    x = Variable()
    assert x.data is None and x.grad is None and x.grad_var is None and x.creator is None
    assert x.rank == 0 and x.requires_grad and not x.volatile and x.xp is np
    assert repr(x) == str(x) == "variable(None)"
    for name in ["shape", "ndim", "size", "dtype", "label", "node"]:
        assert not hasattr(x, name)
        with pytest.raises(AttributeError, match="expected an array, got none"):
            getattr(x, name)
    for method in ["backward", "unchain", "unchain_backward", "item", "__len__"]:
        with pytest.raises(RuntimeError, match="expected an array, got none"):
            getattr(x, method)()
    for use in [lambda: x + 1, lambda: 1 + x, lambda: -x, lambda: x == x, lambda: x[0],
                lambda: abs(x),
                lambda: catena.functions.relu(x), lambda: Variable(array()) + x, lambda: list(x)]:
        with pytest.raises(RuntimeError, match="expected an array, got none"):
            use()
    x.cleargrad()
    x.zerograd()
    x.name = "n"
    x.requires_grad = False
    x.array = array()
    assert x.name == "n" and not x.requires_grad and x.shape == (2, 3)
    x.array = None
    assert x.name == "n" and not x.requires_grad and x.data is None
    assert str(Variable(None, name="q")) == "variable q(None)"
    assert Variable(requires_grad=False).requires_grad is False
    with pytest.raises(RuntimeError, match="expected an array, got none"):
        x.grad = array()


# ---- setters

def test_set_array():
    a, b = array(), array() * 2
    x = Variable(a, grad=a)
    x.array = b
    assert x.array is b and np.array_equal(x.grad, a)
    x.data = a.astype("float64")
    assert x.dtype == "float64" and x.grad is None
    x.array = array((5,))
    assert x.shape == (5,)
    y = x * 2
    with pytest.raises(catena.GraphError, match="while a graph refers to it"):
        x.array = array((6,))
    del y
    with pytest.raises(AttributeError):
        x.shape = (6,)


def test_set_grad():
    a = array()
    x = Variable(a)
    x.grad = g = a + 1
    assert x.grad is g and np.array_equal(x.grad_var.array, g)
    x.grad = None
    assert x.grad is None and x.grad_var is None
    x.grad_var = Variable(g)
    assert np.array_equal(x.grad, g)
    x.grad_var = None
    assert x.grad is None
    x.grad = g
    x.cleargrad()
    assert x.grad is None
    x.zerograd()
    assert np.array_equal(x.grad, 0 * a) and x.grad.dtype == a.dtype
    for wrong, error in [(a.T, ValueError), (a[:1], ValueError), (a.astype("float64"), TypeError)]:
        with pytest.raises(error, match=r"\[variable\] grad: expected"):
            x.grad = wrong
        with pytest.raises(error, match=r"\[variable\] grad: expected"):
            x.grad_var = Variable(wrong)
    with pytest.raises(TypeError,
                       match="grad_var: expected a catena.Variable, got a numpy.ndarray"):
        x.grad_var = g


def test_grad_is_not_changed_by_backward():
    x = Variable(np.array(2.0, "float32"))
    x.grad = g = np.array(1.0, "float32")
    for _ in range(2):
        (x * 3).backward()
    assert x.grad == 7 and g == 1
    before = x.grad
    (x * 3).backward()
    assert x.grad == 10 and before == 7


def test_attributes_of_the_program():
    x = Variable(array())
    x.mine = [1]
    x.self = x
    assert x.mine == [1] and vars(x)["mine"] == [1]
    dead = weakref.ref(x)
    del x
    gc.collect()
    assert dead() is None

    class Sub(Variable):
        def __init__(self, data, extra):
            super().__init__(data)
            self.extra = extra
    y = Sub(array(), 5)
    assert y.extra == 5 and isinstance(y * 2, Variable) and type(y * 2) is Variable


# ---- numbers, sequences, comparisons

def test_item_and_numbers():
    for dtype, value in [("float16", 1.5), ("float32", 1.5), ("int64", 2 ** 60), ("uint8", 7)]:
        for shape in [(), (1,), (1, 1)]:
            x = Variable(np.full(shape, value, dtype))
            assert x.item() == value and type(x.item()) is type(value)
            assert float(x) == value and int(x) == int(value) and bool(x)
    assert Variable(np.array(True)).item() is True
    assert not Variable(np.zeros(1))
    for convert in [float, int, Variable.item]:
        with pytest.raises(ValueError, match="expected one element, got shape"):
            convert(Variable(array()))
    with pytest.raises(ValueError, match="of 6 elements is ambiguous"):
        bool(Variable(array()) > 0)


def test_length_and_iteration():
    x = Variable(array())
    assert len(x) == 2 and [y.array.tolist() for y in x] == array().tolist()
    first, second = x
    (second * 2).sum().backward()
    assert np.array_equal(x.grad, [[0, 0, 0], [2, 2, 2]])
    assert list(Variable(array((0, 2)))) == []
    with pytest.raises(TypeError, match="len"):
        len(Variable(np.array(1.0)))


def test_equality_is_by_element_and_hash_by_identity():
    x, y = Variable(array()), Variable(array())
    assert (x == y).array.all() and not (x != y).array.any()
    assert len({x, y}) == 2 and {x: 1}[x] == 1 and hash(x) != hash(y)
    assert x in [x] and any(each is x for each in [y, x])
    with pytest.raises(ValueError):
        x in [y, x]
    assert x != "text" and not x == None  # noqa: E711


# ---- text

def test_text_is_that_of_chainer():
    chainer = pytest.importorskip("chainer")
    cases = [np.zeros(0), np.zeros((0, 3)), np.array(1.5), np.arange(3), np.array([True]), array(),
             np.arange(30.).reshape(5, 6), np.zeros(2000), np.array([1, 1e-8], "float16"),
             np.full((2, 2, 2), np.nan, "float32"), np.array([1, -np.inf])]
    for a in cases:
        for name in [None, "w", "long name"]:
            ours, theirs = Variable(a, name=name), chainer.Variable(a, name=name)
            assert repr(ours) == repr(theirs) and str(ours) == str(theirs)
            assert ours.label == theirs.label and ours.node.label == theirs.node.label


def test_text():
    x = Variable(array(), name="x")
    assert repr(x) == "variable x([[1., 2., 3.],\n            [4., 5., 6.]])"
    assert x.label == "(2, 3), float32" and Variable(np.array(1.0)).label == "float64"
    assert x.summary() == "<variable x>"
    assert Variable(array()).summary().startswith("<variable at 0x")
    x.grad = array() * 0
    assert x.debug_print() == (
        "<variable x>\n- device: CPU\n- backend: <class 'numpy.ndarray'>\n- shape: (2, 3)\n"
        "- dtype: float32\n- statistics: mean=3.50000000, std=1.70782513\n- grad: 0")
    x.grad = array()
    assert x.debug_print().endswith("- grad: mean=3.50000000, std=1.70782513")
    assert "shape: None" in Variable().debug_print()
    y = Variable(np.array(1.23456, "float32"))
    assert f"{y:.2f} {y}" == "1.23 variable(1.23456)" and f"{Variable(np.array([7])):3d}" == "  7"
    with pytest.raises(ValueError):
        f"{x:.2f}"
    assert "no elements" in Variable(np.zeros(0)).debug_print()


# ---- shapes

@pytest.mark.parametrize("dtype", FLOATS)
def test_reshape_and_transpose(dtype):
    a = array((2, 3, 4), dtype)
    calls = [("reshape", (6, 4)), ("reshape", ((6, 4),)), ("reshape", ([6, 4],)),
             ("reshape", (-1,)),
             ("reshape", (2, -1)), ("transpose", ()), ("transpose", (None,)),
             ("transpose", (2, 0, 1)),
             ("transpose", ((2, 0, 1),)), ("transpose", ([2, 0, 1],)), ("transpose", (-1, 0, 1))]
    for name, args in calls:
        x = Variable(a)
        y = getattr(x, name)(*args)
        assert np.array_equal(y.array, getattr(a, name)(*args)), (name, args)
        y.grad = g = np.arange(24).reshape(y.shape).astype(dtype)
        y.backward()
        expected = g.reshape(a.shape) if name == "reshape" else g.transpose(inverse(args, 3))
        assert np.array_equal(x.grad, expected), (name, args)
    assert np.array_equal(Variable(a).T.array, a.T)
    assert Variable(np.array(1.0)).reshape(()).shape == ()
    with pytest.raises(ValueError, match="reshape"):
        Variable(a).reshape(5, 5)
    with pytest.raises(ValueError, match="transpose"):
        Variable(a).transpose(0)


def inverse(args, ndim):
    """The axes that undo transpose(*args)."""
    axes = args[0] if len(args) == 1 else args
    axes = range(ndim)[::-1] if not axes else [i % ndim for i in axes]
    return [list(axes).index(i) for i in range(ndim)]


def test_reductions():
    a = array()
    x = Variable(a)
    assert x.sum().array == a.sum() and np.array_equal(x.sum(axis=0).array, a.sum(0))
    assert np.allclose(x.mean(axis=1, keepdims=True).array, a.mean(1, keepdims=True))
    assert np.allclose(x.mean(0, weights=np.array([1, 3], "float32")).array,
                       np.average(a, 0, weights=[1, 3]))
    assert x.max().array == 6 and x.argmax().array == 5 and x.min(axis=1).array.tolist() == [1, 4]
    assert x.flatten().shape == (6,) and x[:1].squeeze().shape == (3,)


# ---- copies

@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy,
                                  *(lambda x, p=p: pickle.loads(pickle.dumps(x, p))
                                    for p in range(2, 6))])
def test_copies(make):
    for dtype in DTYPES:
        for requires_grad in [True, False]:
            a = array((2, 3), dtype)
            x = Variable(a, name="x", requires_grad=requires_grad)
            x.mine = [1]
            if a.dtype.kind == "f":
                x.grad = a * 2
            y = make(x)
            assert type(y) is Variable and y is not x and y.name == "x" and y.mine == [1]
            assert y.dtype == a.dtype and np.array_equal(y.array, a)
            assert y.requires_grad == x.requires_grad
            assert (y.array is a) == np.shares_memory(y.array, a) == (make is copy.copy)
            assert (x.grad is None) == (y.grad is None)
            y.cleargrad()
            assert a.dtype.kind != "f" or np.array_equal(x.grad, a * 2)
    empty = make(Variable(name="n", requires_grad=False))
    assert empty.name == "n" and empty.data is None and not empty.requires_grad
    result = make(Variable(array()) * 2)
    assert result.creator is None and np.array_equal(result.array, array() * 2)


def test_copies_keep_identities():
    x = Variable(array())
    x.me = x
    for make in [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]:
        first, second = make([x, x])
        assert first is second and first.me is first and first is not x


def test_numpy_protocols():
    x = Variable(array())
    assert np.asarray(x) is not None and np.shares_memory(np.asarray(x), x.array)
    assert np.asarray(x, dtype="float64").dtype == "float64"
    assert not np.shares_memory(np.array(x), x.array)
    if hasattr(np, "from_dlpack"):  # since NumPy 1.22
        assert np.shares_memory(np.from_dlpack(x), x.array)
    for function in [np.exp, np.add]:
        with pytest.raises(TypeError):
            function(x, x) if function is np.add else function(x)


def test_array_of_a_variable_of_the_graph():
    y = (Variable(array()) * 2) + 1
    node = y.creator.inputs[0]
    assert node.data is None and node.shape == (2, 3) and node.get_variable_or_none() is None
    middle = node.get_variable()
    assert middle.array is None and middle.shape == (2, 3)
    for use in [middle.item, middle.__dlpack__, lambda: middle._array, lambda: np.asarray(middle)]:
        with pytest.raises(catena.GraphError, match="expected data, got only a shape"):
            use()


def test_grad_var_is_the_same_object():
    x = catena.Variable(np.ones(3, "float32"))
    gradient = np.full(3, 2, "float32")
    grad_var = catena.Variable(gradient)
    x.grad_var = grad_var
    assert x.grad_var is grad_var and x.grad is gradient
    del grad_var
    gc.collect()
    assert x.grad_var is not None and (x.grad_var.array == 2).all()
    x.cleargrad()
    assert x.grad_var is None
    catena.functions.sum(x * x).backward()
    found = x.grad_var
    assert x.grad_var is found
    catena.functions.sum(x * x).backward()
    assert (x.grad_var.array == 4).all()
    x.grad = gradient
    assert x.grad_var is not found and x.grad is gradient


# ---- gradients

def test_backward_starts():
    for loss_scale, expected in [(None, 2), (8.0, 16), (np.float32(4), 8)]:
        x = Variable(np.array(1.0, "float32"))
        y = x * 2
        y.backward(loss_scale=loss_scale)
        assert x.grad == expected and y.grad is None
        assert x.loss_scale == x._loss_scale == loss_scale
        y.backward()  # starts with 1, not with the earlier loss_scale
        assert x.grad == expected + 2 and x.loss_scale is None
    y.backward(retain_grad=True, loss_scale=2)
    assert y.grad == 2 and x.loss_scale == 2
    leaf = Variable(np.array(1.0, "float32"))
    leaf.backward()
    assert leaf.grad == 1
    constant = catena.as_variable(np.array(1.0, "float32"))
    constant.backward()  # as in Chainer, no error
    with catena.no_backprop_mode():
        (leaf * 2).backward()
    assert leaf.grad == 1
    x = Variable(array())
    y = x * 2
    with pytest.raises(catena.GraphError, match="expected one to be set"):
        y.backward()
    y.grad = array()
    y.backward(retain_grad=True)
    y.backward()
    assert np.array_equal(x.grad, 4 * array())
    with pytest.raises(TypeError):
        y.backward(loss_scale="x")
    i = Variable(np.array(3))
    i.backward()
    assert i.grad is None


def test_backward_of_several_variables():
    x = Variable(array())
    y, z = x * 2, x * x
    y.grad = np.ones_like(array())
    catena.backward([y, z], [None, Variable(array())])
    assert np.array_equal(x.grad, 2 * array() * array()) and y.grad is not None
    x.cleargrad()
    s = (x * x).sum()
    s.grad = np.array(1, "float32")
    catena.backward((s, y), enable_double_backprop=True)
    assert x.grad_var.creator is not None and np.array_equal(x.grad, 2 * array() + 2)
    assert y.grad is None
    with pytest.warns(RuntimeWarning, match="expected a gradient"):
        catena.backward([s, s])
    assert np.array_equal(x.grad, 2 * array() + 2)
    assert x.node.grad_var is not None and np.array_equal(x.node.grad, x.grad)
    for wrong, error in [((s,), TypeError), (([1.0],), TypeError), (([s], s), TypeError),
                         (([s], [None, None]), ValueError),
                         (([y], [Variable(array((2,)))]), ValueError)]:
        with pytest.raises(error, match="backward"):
            catena.backward(*wrong)
    for name in ("loss_scale", "retain_grad"):
        with pytest.raises(ValueError, match=f"does not support {name} option"):
            catena.backward([s], **{name: None})
    with pytest.raises(TypeError, match="unexpected keyword argument.*'scale'"):
        catena.backward([s], scale=2)


def test_backward_of_several_variables_with_leaves():
    """A leaf among the outputs keeps its own gradient; None is no gradient, not 1."""
    for n in (2, 1):
        ones = np.ones(n, "float32")
        x = Variable(ones.copy())
        y = x * 2
        catena.backward([x, y], [Variable(ones), Variable(ones * 2)])
        assert (x.grad == 5).all()
        x.cleargrad()
        catena.backward([x, F.tile(x, 1)], [None, Variable(ones * 3)])
        assert (x.grad == 3).all()
        x.cleargrad()
        catena.backward([x * 7, y], [None, Variable(ones)])
        assert (x.grad == 2).all()
        catena.backward([y, x], [None, None])
        assert (x.grad == 2).all()
        x.requires_grad = False
        catena.backward([x], [Variable(ones)])
        assert (x.grad == 2).all()


UNCHANGED = {
    "tile": lambda x: F.tile(x, 1), "squeeze": F.squeeze, "pad": lambda x: F.pad(x, 0, "edge"),
    "repeat": lambda x: F.repeat(x, 1, 0), "moveaxis": lambda x: F.moveaxis(x, 0, 0),
    "swapaxes": lambda x: F.swapaxes(x, 0, 0), "rollaxis": lambda x: F.rollaxis(x, 1, 1),
    "broadcast": lambda x: F.broadcast(x, x)[0], "broadcast one": F.broadcast,
    "roll": lambda x: F.roll(x, 2, 1), "flip": lambda x: F.flip(x, ()),
    "concat": lambda x: F.concat([x]), "get_item": lambda x: x[:], "ellipsis": lambda x: x[...],
    "transpose": lambda x: F.transpose(x, (0, 1)), "T": lambda x: x.transpose(0, 1),
    "identity": F.identity, "hstack": lambda x: F.hstack([x]),
    "split_axis": lambda x: F.split_axis(x, 1, 0)[0],
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_functions_that_change_nothing(name):
    """Their results are variables of their own."""
    x = Variable(np.ones((2, 2), "float32"))
    before = x.array.copy()
    y = UNCHANGED[name](x)
    assert y.creator is not None and y.shape == x.shape
    y.name = "y"
    y.grad = before * 3
    assert x.name is None and x.grad is None
    y.backward()
    assert (x.grad == 3).all() and x.creator is None
    y = UNCHANGED[name](x)
    y.array = before * 7
    assert np.array_equal(x.array, before)
    y.unchain()


def test_gradient_variables_record():
    """As in Chainer, grad_var requires a gradient, so that calls on it are recorded."""
    x = Variable(array())
    (x * 2).sum().backward()
    gradient = x.grad_var
    assert gradient.requires_grad and gradient.creator is None
    (gradient * 3).sum().backward()
    assert (gradient.grad == 3).all()


def test_grad():
    x = Variable(np.array(2.0, "float32"))
    y = x * x
    z = y * x
    assert [g.item() for g in catena.grad([z], [x, y])] == [12, 2] and x.grad is None
    assert catena.grad([z], (x,), [Variable(np.array(2.0, "float32"))])[0].item() == 24
    assert catena.grad([z], [x], loss_scale=4.0)[0].item() == 48
    assert catena.grad([z, y], [x], [None, Variable(np.array(3.0, "float32"))], loss_scale=4.0)[
        0].item() == 60
    assert catena.grad([z], [x], None, [Variable(np.array(100.0, "float32"))])[0].item() == 112
    catena.grad([z], [x], set_grad=True)
    assert x.grad == 12
    g, = catena.grad([z], [x], enable_double_backprop=True)
    assert catena.grad([g], [x])[0].item() == 12
    assert catena.grad([z], [Variable(array())]) == [None] and catena.grad([z], []) == []
    for wrong, error in [((z, [x]), TypeError), (([z], x), TypeError), (([z], [x], z), TypeError),
                         (([z], [x], None, x), TypeError), (([z], [x], [None, None]), ValueError),
                         (([z], [x], [Variable(array())]), ValueError),
                         (([None], [x]), ValueError)]:
        with pytest.raises(error, match=r"\[grad\]"):
            catena.grad(*wrong)
