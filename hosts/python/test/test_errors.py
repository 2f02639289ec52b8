"""Exceptions: their classes, what raises them, and what is left after them."""
import pickle
import traceback

import catena
import catena.functions as F
import numpy as np
import pytest
from catena import Variable

BASES = {
    "InvalidType": (Exception,), "ShapeError": (catena.InvalidType, ValueError),
    "DtypeError": (catena.InvalidType, TypeError), "InvalidError": (ValueError,),
    "InvalidValueError": (ValueError,), "NanError": (catena.InvalidValueError, RuntimeError),
    "UnsupportedError": (NotImplementedError,), "OutOfMemoryError": (MemoryError,),
    "DeviceError": (RuntimeError,), "InternalError": (RuntimeError,),
    "NotDifferentiableError": (RuntimeError,), "PluginError": (LookupError,),
    "GraphError": (RuntimeError,), "DataError": (OSError,),
}


def array(shape=(2, 3), dtype="float32"):
    return np.ones(shape, dtype)


@pytest.mark.parametrize("name", BASES)
def test_classes(name):
    error = getattr(catena, name)
    assert error.__name__ == name and error.__module__ == "catena" and error.__doc__
    for base in (catena.Error, *BASES[name]):
        assert issubclass(error, base)
    assert str(error("text")) == "text" and str(pickle.loads(pickle.dumps(error("text")))) == "text"
    with pytest.raises(catena.Error):
        raise error("text")
    assert issubclass(catena._core.InvalidIndexError, (catena.InvalidError, IndexError))


@pytest.mark.parametrize("error, call", [
    (catena.ShapeError, lambda: Variable(array()) + Variable(array((4,)))),
    (catena.ShapeError, lambda: Variable(array()) @ Variable(array())),
    (catena.ShapeError, lambda: Variable(array()).reshape(5)),
    (catena.DtypeError, lambda: Variable(array()) + Variable(array(dtype="float64"))),
    (catena.DtypeError, lambda: ~Variable(array())),
    (catena.GraphError, lambda: (Variable(array()) * 2).backward()),
    (catena.DeviceError, lambda: catena.Device("nothing:0")),
    (catena.PluginError, lambda: catena.plugin_function("org.example.nothing")),
    (catena.PluginError, lambda: catena.load_plugin("/nothing.so")),
    (catena._core.InvalidIndexError, lambda: Variable(array())[5]),
    (catena.InvalidValueError, lambda: F.embed_id(
        np.array([7], "int32"), Variable(array((3, 2))))),
    (catena.OutOfMemoryError, lambda: F.broadcast_to(Variable(array((1,))), (2 ** 45,))),
    (catena.UnsupportedError, lambda: catena.FunctionNode().apply((array(),))),
], ids=lambda value: getattr(value, "__name__", ""))
def test_raised(error, call):
    for _ in range(2):
        with pytest.raises(error) as caught:
            call()
        assert type(caught.value) is error and len(str(caught.value)) > 10
    assert np.array_equal((Variable(array()) + 1).array, array() * 2)


def test_messages_say_what_was_expected():
    for call, message in [
            (lambda: Variable(array()) + Variable(array((4,))), r"\[catena.add\] .*expected .*got"),
            (lambda: Variable([1.0]), r"\[catena.Variable\] array: expected .*, got list"),
            (lambda: Variable(array(dtype="int16")), r"array: expected .*, got int16"),
            (lambda: setattr(Variable(array()), "grad", array((2,))),
             r"\[variable\] grad: expected shape \(2, 3\), got \(2,\)"),
            (lambda: Variable(array()).backward(1, 2, 3, 4), "backward"),
            (lambda: Variable(array()).backward(foo=1), "foo"),
            (lambda: F.relu(), "relu.. lacks the argument 'x'"),
            (lambda: F.relu(array(), foo=1), "relu.. got an unexpected argument 'foo'"),
            (lambda: F.relu("text"), r"\[relu\] x: expected a numpy.ndarray .*, got str"),
            (lambda: F.relu(None), r"\[relu\] x: expected a variable or an array, got None"),
            (lambda: F.relu(Variable()), "expected an array, got none")]:
        with pytest.raises(Exception, match=message):
            call()


def test_messages_of_nan_have_no_places_in_the_interpreter():
    """The debug mode adds where the call was made, which would be functions of the interpreter."""
    class Sqrt(catena.FunctionNode):
        def forward(self, inputs):
            return np.sqrt(inputs[0])

        def backward(self, indexes, grads):
            return F.log(-grads[0])
    with catena.DebugMode(True):
        with pytest.raises(catena.NanError) as caught:
            F.log(Variable(-array()))
        assert str(caught.value) == (
            "[catena.log] forward: y: expected numbers, got NaN in 6 of 6 elements")
        x = Variable(array((1,)) * 0)
        y = F.sqrt(x) * 0
        with pytest.raises(catena.NanError) as caught:
            y.backward()
        assert str(caught.value) == ("[catena.sqrt] backward: gradient of x: expected numbers, got "
                                     "NaN in 1 of 1 elements")
        x = Variable(array((1,)))
        y, = Sqrt().apply((x,))
        with pytest.raises(catena.NanError) as caught:
            y.backward()
        assert str(caught.value) == (
            "[catena.log] forward: y: expected numbers, got NaN in 1 of 1 elements")
        assert "in backward" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_none_is_left_behind():
    """An exception that was handled does not appear again."""
    x = Variable(array())
    for wrong in [lambda: x + Variable(array((4,))), lambda: x[9], lambda: Variable([1]),
                  lambda: x == "text", lambda: hasattr(Variable(), "shape"), lambda: x in [1]]:
        try:
            wrong()
        except (ValueError, TypeError, IndexError):
            pass
        assert (x + 1).shape == (2, 3) and list(map(int, "12")) == [1, 2]


def test_context_and_traceback():
    try:
        try:
            raise KeyError("first")
        except KeyError:
            Variable([1])
    except TypeError as error:
        assert isinstance(error.__context__, KeyError)
        assert "test_context_and_traceback" in "".join(traceback.format_tb(error.__traceback__))


def test_errors_of_arguments_keep_their_type():
    class Broken:
        def __getattribute__(self, name):
            raise ZeroDivisionError(name)

        def __index__(self):
            raise ZeroDivisionError

        __float__ = __bool__ = __len__ = __iter__ = __index__
    x = Variable(array())
    for call in [lambda: Variable(Broken()), lambda: x + Broken(), lambda: x[Broken()],
                 lambda: x.reshape(Broken(), 1), lambda: Variable(array(), requires_grad=Broken()),
                 lambda: x.backward(Broken()), lambda: setattr(x, "requires_grad", Broken())]:
        with pytest.raises(ZeroDivisionError):
            call()


def test_backward_leaves_a_usable_graph():
    class Fails(catena.FunctionNode):
        fails = True

        def forward(self, inputs):
            return inputs[0] * 1

        def backward(self, indexes, grads):
            if Fails.fails:
                raise RuntimeError("once")
            return grads[0]
    x = Variable(array())
    y = F.sum(Fails().apply((x * 2,))[0] + x)
    with pytest.raises(RuntimeError, match="once"):
        y.backward()
    x.cleargrad()
    Fails.fails = False
    y.backward()
    assert (x.grad == 3).all()
