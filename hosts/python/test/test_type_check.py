"""utils.type_check: the same texts and values as Chainer's."""
import numpy
import pytest

import catena
from catena.utils import type_check


@pytest.fixture(params=["catena", "chainer"])
def module(request):
    package = pytest.importorskip(request.param)
    if request.param == "catena":
        return type_check
    from chainer.utils import type_check as theirs
    return theirs if package else None


def types_of(module):
    x = numpy.zeros((2, 3), "float32")
    t = numpy.zeros(4, "int32")
    return module.get_types((x, t), "in_types", False)


EXPECTATIONS = [
    (lambda t, m: t.size() == 3, "in_types.size == 3", "2 != 3"),
    (lambda t, m: t[0].shape == t[1].shape, "in_types[0].shape == in_types[1].shape",
     "(2, 3) != (4,)"),
    (lambda t, m: t[0].shape[1:] != (3,), "in_types[0].shape[1:] != (3,)", "(3,) == (3,)"),
    (lambda t, m: t[0].ndim > t[1].ndim + 1, "in_types[0].ndim > in_types[1].ndim + 1", "2 <= 2"),
    (lambda t, m: m.prod(t[0].shape) < 3, "prod(in_types[0].shape) < 3", "6 >= 3"),
    (lambda t, m: -t[0].ndim % 2 >= 1, "-in_types[0].ndim % 2 >= 1", "0 < 1"),
    (lambda t, m: 7 - (t[0].ndim - t[1].ndim) == t[0].shape[-1],
     "7 - (in_types[0].ndim - in_types[1].ndim) == in_types[0].shape[-1]", "6 != 3"),
    (lambda t, m: m.make_variable(3, "n") // 2 == 2, "n // 2 == 2", "1 != 2"),
]

# Chainer writes these as "kind == i" and "<chainer.utils...object at 0x...>", or fails.
OURS = [
    (lambda t, m: t[0].dtype.kind == "i", "in_types[0].dtype.kind == 'i'", "f != i"),
    (lambda t, m: t[0].size * (t[1].ndim + 1) <= 2 ** t[1].ndim,
     "in_types[0].size * (in_types[1].ndim + 1) <= 2 ** in_types[1].ndim", "12 > 2"),
    (lambda t, m: (2 ** t[0].ndim) ** 2 == 2 ** t[0].ndim ** 2 + 1,
     "(2 ** in_types[0].ndim) ** 2 == 2 ** in_types[0].ndim ** 2 + 1", "16 != 17"),
    (lambda t, m: t[0].shape[::2] == (t[1].ndim,), "in_types[0].shape[::2] == (in_types[1].ndim,)",
     "(2,) != (1,)"),
]


def check(module, make, expected, actual):
    with pytest.raises(module.InvalidType) as raised:
        module.expect(make(types_of(module), module))
    assert raised.value.expect == expected
    assert raised.value.actual == actual
    assert str(raised.value) == f"Expect: {expected}\nActual: {actual}"


@pytest.mark.parametrize("case", EXPECTATIONS, ids=[case[1] for case in EXPECTATIONS])
def test_messages(module, case):
    check(module, *case)


@pytest.mark.parametrize("case", OURS, ids=[case[1] for case in OURS])
def test_more_messages(case):
    check(type_check, *case)


def test_true(module):
    t = types_of(module)
    module.expect(t.size() == 2, t[0].dtype == numpy.float32, t[0].shape[0] == 2, t[1].size == 4)
    assert module.eval(t[0].ndim * 2) == 4 and module.eval(t.size()) == 2
    with pytest.raises(RuntimeError, match="cannot be evaluated as bool"):
        if t[0].ndim == 2:
            pass


def test_names(module):
    t = types_of(module)
    module._argname(t, ("x", "t"))
    with pytest.raises(module.InvalidType, match=r"Expect: x.ndim == t.ndim\nActual: 2 != 1"):
        module.expect(t[0].ndim == t[1].ndim)
    with pytest.raises(module.InvalidType, match="Invalid number of arguments"):
        module._argname(t, ("x",))


def test_broadcast(module):
    t = module.get_types(tuple(numpy.zeros(s) for s in [(2, 1), (3,), (2, 3)]), "x", False)
    module.expect_broadcast_shapes(*[each.shape for each in t])
    u = module.get_types((numpy.zeros(4),), "y", False)
    with pytest.raises(module.InvalidType, match=r"(?s)cannot broadcast .*\nx\[1\].shape = \(3,\)\n"):
        module.expect_broadcast_shapes(t[0].shape, t[1].shape, u[0].shape)


def test_same_types(module):
    x = numpy.zeros(1)
    assert module.same_types(x, x) and not module.same_types(x, 3)


def test_is_the_exception_of_functions():
    with pytest.raises(type_check.InvalidType):
        catena.functions.linear(numpy.zeros((2, 3), "float32"), numpy.zeros((2, 4), "float32"))


def test_check():
    class Function(catena.FunctionNode):
        def check_type_forward(self, in_types):
            type_check.expect(in_types.size() == 1)

    type_check.check(Function(), (numpy.zeros(1),))
    with pytest.raises(type_check.InvalidType, match=(
            r"Invalid operation is performed in: Function \(Forward\)\n\nExpect: in_types.size == 1"
            r"\nActual: 2 != 1")):
        type_check.check(Function(), (numpy.zeros(1), numpy.zeros(2)))


@pytest.mark.parametrize("base", ["Function", "FunctionNode"])
@pytest.mark.parametrize("name", ["catena", "chainer"])
def test_functions_check_their_inputs(name, base):
    package = pytest.importorskip(name)
    module = pytest.importorskip(name + ".utils.type_check")
    seen = []

    class Twice(getattr(package, base)):
        def check_type_forward(self, in_types):
            seen.append(type(in_types))
            module.expect(in_types.size() == 1, in_types[0].dtype == numpy.float32,
                          in_types[0].ndim >= 2)

        def forward(self, inputs):
            return inputs[0] * 2,

    def call(*inputs):
        return Twice()(*inputs) if base == "Function" else Twice().apply(inputs)[0]

    x = package.Variable(numpy.ones((2, 3), "float32"))
    assert (call(x).array == 2).all()
    assert seen == [module.LightTypeInfoTuple]
    with pytest.raises(module.InvalidType) as raised:
        call(package.Variable(numpy.ones(2, "float32")))
    assert str(raised.value).strip() == (
        "Invalid operation is performed in: Twice (Forward)\n\nExpect: in_types[0].ndim >= 2\n"
        "Actual: 1 < 2")
    with pytest.raises(module.InvalidType, match=r"in_types\[0\]\.dtype == <class 'numpy.float"):
        call(numpy.ones((2, 3)))
    with pytest.raises(module.InvalidType, match="Actual: 2 != 1"):
        call(x, x)
    with package.using_config("type_check", False):
        call(numpy.ones(2, "float32"))


def test_classes_of_expressions():
    x = type_check.Variable([1, 2], "x")
    for expression, text, value in [
            (type_check.Constant(10), "10", 10), (type_check.GetItem(x, 1), "x[1]", 2),
            (type_check.GetAttr(type_check.Variable(1j, "c"), "imag"), "c.imag", 1),
            (type_check.GetAttr(x, type_check.Constant("count"))(2), "x.count(2)", 1),
            (type_check.Call(type_check.Variable(sum, "sum"), ([1, 2],)), "sum([1, 2])", 3),
            (type_check.UnaryOperator(6, x, "#", len), "#x", 2),
            (type_check.BinaryOperator(7, x, x, "+", lambda a, b: a + b, True), "x + x", [1, 2, 1, 2])]:
        assert isinstance(expression, type_check.Expr)
        assert str(expression) == text and expression.eval() == value
    assert type_check.BinaryOperator(9, x, x, "+", None).__str__() == "(x) + (x)"
    assert isinstance(x == x, type_check.BoolBinaryOperator)
    with pytest.raises(type_check.InvalidType, match="Expect: x == y"):
        type_check.BoolBinaryOperator(x, type_check.Variable(1, "y"), "==", "!=", lambda a, b: a == b).expect()
    assert type_check.get_types((numpy.ones(2),), "in", False).name == "in"
