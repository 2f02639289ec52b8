"""What programs should not do raises exceptions: objects made without their classes' functions,
deleted attributes, huge integers, arguments that change what they are used with."""
import gc
import os
import subprocess
import sys

import catena
import catena.functions as F
import numpy as np
import pytest
from catena import Device, FunctionNode, Parameter, Variable


def ones(*shape):
    return Variable(np.ones(shape, "float32"))


class Scale(FunctionNode):
    def forward(self, inputs):
        return inputs[0] * 2

    def backward(self, indexes, grads):
        return grads[0] * 2


# ---- objects and attributes

def test_objects_of_graphs_are_made_by_graphs_alone():
    y = ones(3) * 2
    for type_ in (type(y.creator), type(y.node), catena._core.Recorded):
        with pytest.raises(TypeError, match="cannot create"):
            type_()
        with pytest.raises(TypeError):
            object.__new__(type_)


FUNCTIONS = """
import catena, inspect, numpy as np
from catena import _core
x = catena.Variable(np.ones((), "float32"))
y = x * 2
class Node(catena.FunctionNode):
    def forward(self, inputs): return inputs[0] * 2
node = Node()
z, = node.apply((x,))
update = _core.Update("catena.sgd_update", ["lr"], [])
methods = [(type(o).__name__, n, getattr(o, n)) for o in
           (x, y.node, y.creator_node, node, _core.Device(-1), x._array, update) for n in dir(o)
           if not n.startswith("__") and inspect.isbuiltin(getattr(o, n, None))]
functions = [("_core", n, f) for n, f in vars(_core).items() if inspect.isbuiltin(f)]
assert len(methods) > 20 and len(functions) > 20, (len(methods), len(functions))
functions = [each for each in methods + functions
             if each[1] not in ("shutdown_gpus", "load_plugin", "load_plugins")]
"""


def run_on_functions(program, folder):
    """Runs a program that may crash. It prints "end" at its end."""
    done = subprocess.run([sys.executable, "-c", FUNCTIONS + program], cwd=folder,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr[-2000:]


def test_arguments_are_counted(tmp_path):
    """No function of the extension module reads beyond its arguments, or ignores some."""
    run_on_functions("""
for kind, name, function in functions:
    for n in (0, 1, 9):
        try:
            function(*[None] * n)
        except Exception:
            continue
        assert n != 9, (kind, name)
for name, n in [("get_flag", 2), ("set_flag", 3), ("grad", 7), ("backward", 3), ("tensors_in", 3),
                ("record", 6)]:
    for wrong in {0, 1, n - 1, n + 1} - {n}:
        try:
            getattr(_core, name)(*["train"] * wrong)
        except TypeError as error:
            assert str(error) == f"expected {n} arguments, got {wrong}", (name, error)
        else:
            raise AssertionError(name)
print("end")
""", tmp_path)


def test_arguments_of_any_type(tmp_path):
    """No call of the extension module crashes or leaves an exception behind."""
    run_on_functions("""
import random, warnings
warnings.simplefilter("ignore")
objects = [
    None, True, -1, 1, 10**30, 1.5, "a", "train", "\\udc80", b"a", (), (1, None), [], [1], [x],
    [x, y], {}, {"a": 1}, {1: x}, {"a": ("float32", (2,))}, set(), float, np.ndarray, len, x,
    y.node, node, y.creator_node, _core.Device(-1), x._array, np.ones(2), np.float32(1), np.dtype("int8"),
    iter(()), object(), update]
chosen = random.Random(0)
for kind, name, function in functions:
    for call in range(100):
        args = chosen.choices(objects, k=call % 5)
        try:
            function(*args)
            len(())  # fails if an exception is left
        except SystemError as error:
            raise AssertionError((kind, name, args)) from error
        except Exception:
            pass
print("end")
""", tmp_path)


@pytest.mark.parametrize("name,args,message", [
    ("keep_gradients", (None,), "parameters: expected a list, got NoneType"),
    ("make_gradients", (1,), r"\[make_gradients\] parameters: expected a list, got int"),
    ("make_gradients", ([1],), "parameters: expected variables, got int"),
    ("gradients_norm", ((),), "parameters: expected a list, got tuple"),
    ("tensors_in", ([], {}, float), "args: expected a tuple, got list"),
    ("tensors_in", ((), (), float), "kwargs: expected a dict, got tuple"),
    ("tensors_in", ((), {}, 1), "type: expected a type, got int"),
    ("record", (len, [], {}, float, (), ()), "args: expected a tuple, got list"),
    ("record", (len, (1.5,), {}, float, [1.5], (False,)), "expected tuples, got list"),
    ("load_safetensors", ("a", {"w": 1}), "w: expected a tuple of a dtype and a shape, got int"),
    ("get_flag", (1, True), "expected a str, got int"),
])
def test_wrong_types_are_told(name, args, message):
    with pytest.raises(TypeError, match=message):
        getattr(catena._core, name)(*args)


@pytest.mark.parametrize("args,message", [
    (((), (1.0,), 1), "parameters: expected a list, got tuple"),
    (([], [1.0], 1), "values: expected a tuple, got list")])
def test_wrong_types_of_updates_are_told(args, message):
    update = catena._core.Update("catena.sgd_update", ["lr"], [])
    with pytest.raises(TypeError, match=message):
        update.run(*args)
    with pytest.raises(TypeError, match="state: expected a list, got tuple"):
        update.setup([], (), 0)


def test_deleted_attributes():
    for name in ("_first_grad", "_first_device", "requires_grad"):
        with pytest.raises(AttributeError, match="cannot delete"):
            delattr(Parameter(), name)
    with pytest.raises(AttributeError, match="cannot delete"):
        del Device(-1).threads


@pytest.mark.parametrize("name", ["w", "weight " * 50])
def test_names_of_parameters_without_a_shape(name):
    p = Parameter(name=name)
    assert [p.name for _ in range(10)] == [name] * 10
    p.initialize((2,))
    assert p.name == name


def test_new_without_init():
    x = Variable.__new__(Variable)
    assert x.array is None and x.grad is None and x.creator is None
    for use in (lambda: x + 1, lambda: F.exp(x), lambda: x[0], lambda: len(x), lambda: x.backward(),
                lambda: Scale().apply((x,)), lambda: bool(x), lambda: x.node):
        with pytest.raises((RuntimeError, AttributeError), match="expected an array, got none"):
            use()
    node = FunctionNode.__new__(Scale)
    assert node.inputs is None and node.outputs is None
    node.unchain()
    y, = node.apply((ones(3),))
    assert y.array.tolist() == [2, 2, 2]


def test_kernels_of_variables_without_an_array():
    double = catena.cuda.elementwise("T x", "T y", "y = 2 * x", "double")
    with pytest.raises(RuntimeError, match="expected an array, got none"):
        double(Parameter())
    assert double(ones(2)).tolist() == [2, 2]


# ---- integers

@pytest.mark.parametrize("huge", [2**32, -2**32 - 1, 2**63, 10**400])
def test_huge_integers(huge):
    x = ones(2, 3)
    with pytest.raises(OverflowError):
        Device(-1).threads = huge
    for use in (lambda: F.swapaxes(x, huge, 1), lambda: F.stack([x, x], huge), lambda: x[huge],
                lambda: F.sum(x, axis=huge), lambda: F.concat([x, x], huge),
                lambda: F.reshape(x, (huge, 6)), lambda: F.softmax(x, axis=huge)):
        with pytest.raises((OverflowError, IndexError, catena.InvalidType)):
            use()
    assert x[:abs(huge)].shape == (2, 3) and x[-abs(huge):].shape == (2, 3)
    if abs(huge) > 10**300:
        with pytest.raises(OverflowError):
            x * huge
    else:
        assert (x * huge).array[0, 0] == np.float32(huge)


# ---- arguments that run Python

def test_errors_of_generators_are_raised():
    def fails(error):
        yield np.ones(3, "float32")
        raise error
    with pytest.raises(KeyError, match="mine"):
        F.concat(fails(KeyError("mine")))
    with pytest.raises(KeyboardInterrupt):
        F.sum(ones(3), axis=fails(KeyboardInterrupt()))
    with pytest.raises(TypeError, match="expected a list of variables or arrays, got int"):
        F.concat(3)


def test_arguments_that_remove_the_array_of_another():
    x = ones(3)

    class Removes:
        @property
        def __array_struct__(self):
            x.array = None
            return np.ones(3, "float32").__array_struct__

        def __index__(self):
            x.array = None
            return 0
    removes = Removes()
    for use in (lambda: x + removes, lambda: removes * x, lambda: x == removes,
                lambda: F.maximum(x, removes), lambda: F.matmul(x, removes), lambda: x[removes],
                lambda: x[removes:2], lambda: F.get_item(x, removes), lambda: x.grad,
                lambda: F.softmax(x, axis=removes), lambda: F.sum(x, axis=removes)):
        x.array = np.ones(3, "float32")
        try:
            assert use() is None or x.array is None
        except catena.Error as error:
            assert "expected a" in str(error)  # an array or a variable
    gc.collect()


def test_messages_with_names_that_are_not_utf8():
    with pytest.raises(catena.PluginError, match="no such file"):
        catena.load_plugin(os.fsencode("/nowhere/\udcff.so"))


# ---- the end

def test_nodes_after_the_end_began():
    """Exit handlers that were registered before the import run last."""
    program = """if True:
        import atexit, gc, weakref
        class Mine:
            pass
        def end():
            alive = [weakref.ref(node.mine) for node in nodes]
            results.clear()
            for node in nodes:
                assert node.inputs is None and node.outputs is None and node.rank == 0
                node.unchain()
            nodes.clear(), gc.collect()
            del node
            assert not any(each() for each in alive)
            catena.functions.sum(Node().apply((x,))[0]).backward()
            print("ended", x.grad)
        atexit.register(end)
        import catena, numpy as np
        class Node(catena.FunctionNode):
            def forward(self, inputs):
                self.mine = Mine()
                return inputs[0] * 2
            def backward(self, indexes, grads):
                return grads[0] * 2
        x = catena.Variable(np.ones(2, "float32"))
        nodes = [Node() for _ in range(50)]
        results = [node.apply((x,))[0] for node in nodes]
        left, = Node().apply((catena.functions.exp(x),))
        """
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (process.returncode, process.stdout) == (0, "ended [2. 2.]\n"), process.stderr


def test_other_interpreters_are_refused():
    program = """if True:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        try:
            print(interpreters.run_string(interpreters.create(), "import catena"))
        except Exception as error:  # before Python 3.13
            print(error)
        """
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert process.returncode == 0 and "ImportError" in process.stdout, process.stdout
    if sys.version_info < (3, 12):  # later ones refuse it themselves
        assert "expected the main interpreter" in process.stdout
