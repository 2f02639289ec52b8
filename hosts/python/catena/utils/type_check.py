"""Checks of the shapes and dtypes of inputs, with the names of chainer.utils.type_check.

``check_type_forward(self, in_types)`` of a function states what it expects as expressions, of which
the message shows both the text and the values::

    type_check.expect(in_types.size() == 2, in_types[0].shape == in_types[1].shape)
"""
import math
import operator
from typing import Any

from catena import _core
from catena._core import InvalidType

__all__ = ["BinaryOperator", "BoolBinaryOperator", "Call", "Constant", "Expr", "GetAttr", "GetItem",
           "InvalidType", "LightTypeInfoTuple", "TypeInfo", "TypeInfoTuple", "UnaryOperator",
           "Variable", "eval", "expect", "expect_broadcast_shapes", "get_light_types", "get_types",
           "make_variable", "prod", "same_types"]

_ATOM = 8


class Expr:
    """An expression: str() gives its text, eval() its value.

    ``priority`` is that of the outermost operator; operands of a lower priority get parentheses.
    """

    priority = _ATOM

    def eval(self) -> Any:
        raise NotImplementedError

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return GetAttr(self, name)

    def __getitem__(self, key) -> Any:
        return GetItem(self, key)

    def __call__(self, *args) -> Any:
        return Call(self, args)

    def __bool__(self):
        raise RuntimeError("An Expr instance cannot be evaluated as bool. Please use "
                           "type_check.eval() to evaluate an expression.")

    __hash__ = None


class Constant(Expr):
    """A value, whose text is its repr()."""

    def __init__(self, value) -> None:
        self.value = value

    def eval(self) -> Any:
        return self.value

    def __str__(self):
        return _repr(self.value)


class Variable(Constant):
    """A value with a name."""

    def __init__(self, value, name) -> None:
        super().__init__(value)
        self.name = name

    def __str__(self):
        return self.name


make_variable = Variable


class GetAttr(Expr):
    """An attribute of an expression."""

    def __init__(self, obj, name) -> None:
        self.obj, self.name = obj, name

    def eval(self) -> Any:
        return getattr(eval(self.obj), eval(self.name))

    def __str__(self):
        name = self.name.value if type(self.name) is Constant else self.name
        if isinstance(name, str):
            return f"{_repr(self.obj, _ATOM)}.{name}"
        return f"getattr({_repr(self.obj)}, {_repr(name)})"


class GetItem(Expr):
    """An element of an expression."""

    def __init__(self, obj, index) -> None:
        self.obj, self.index = obj, index

    def eval(self) -> Any:
        return eval(self.obj)[eval(self.index)]

    def __str__(self):
        return f"{_repr(self.obj, _ATOM)}[{_subscript(self.index)}]"


class Call(Expr):
    """A call of an expression with a tuple of arguments."""

    def __init__(self, obj, args) -> None:
        self.obj, self.args = obj, args

    def eval(self) -> Any:
        return eval(self.obj)(*map(eval, self.args))

    def __str__(self):
        return f"{_repr(self.obj, _ATOM)}({', '.join(map(_repr, self.args))})"


class UnaryOperator(Expr):
    """An operator before an expression: its text, and a function of the value."""

    def __init__(self, priority, term, exp, func) -> None:
        self.priority, self.term, self.exp, self.func = priority, term, exp, func

    def eval(self) -> Any:
        return self.func(eval(self.term))

    def __str__(self):
        return self.exp + _repr(self.term, self.priority)


class BinaryOperator(Expr):
    """An operator between two expressions: its text, and a function of the values."""

    def __init__(self, priority, lhs, rhs, exp, func, right_associative=False) -> None:
        self.priority = priority
        self.lhs, self.rhs, self.exp, self.func = lhs, rhs, exp, func
        self.right_associative = right_associative

    def eval(self) -> Any:
        return self.func(eval(self.lhs), eval(self.rhs))

    def __str__(self):
        left, right = self.priority, self.priority + 1
        if self.right_associative:
            left, right = right, left
        return f"{_repr(self.lhs, left)} {self.exp} {_repr(self.rhs, right)}"


class BoolBinaryOperator(BinaryOperator):
    """A comparison, with the text of the opposite one (`inv`)."""

    def __init__(self, lhs, rhs, exp, inv, func) -> None:
        super().__init__(-1, lhs, rhs, exp, func)
        self.inv = inv

    def expect(self) -> None:
        """Raises InvalidType, with the values of both sides, if the comparison is false."""
        left, right = eval(self.lhs), eval(self.rhs)
        if not self.func(left, right):
            raise _invalid(str(self), f"{left} {self.inv} {right}")


def eval(exp) -> Any:
    """The value of an expression, also in lists and tuples; other objects as they are."""
    if isinstance(exp, Expr):
        return exp.eval()
    return type(exp)(map(eval, exp)) if type(exp) in (list, tuple) else exp


def _repr(value, priority=-1):
    if isinstance(value, Expr):
        return f"({value})" if value.priority < priority else str(value)
    if type(value) is list:
        return f"[{', '.join(map(_repr, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(_repr, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _subscript(key):
    if key is Ellipsis:
        return "..."
    if isinstance(key, slice):
        ends = [key.start, key.stop] + ([] if key.step is None else [key.step])
        return ":".join("" if end is None else _repr(end) for end in ends)
    return ", ".join(map(_subscript, key)) if isinstance(key, tuple) else _repr(key)


def _add_operators():
    for name, symbol, negation in (("eq", "==", "!="), ("ne", "!=", "=="), ("lt", "<", ">="),
                                   ("le", "<=", ">"), ("gt", ">", "<="), ("ge", ">=", "<")):
        def compare(x, y, exp=symbol, inv=negation, func=getattr(operator, name)):
            return BoolBinaryOperator(x, y, exp, inv, func)
        setattr(Expr, f"__{name}__", compare)
    for name, symbol, priority in (
            ("add", "+", 4), ("sub", "-", 4), ("mul", "*", 5), ("truediv", "/", 5),
            ("floordiv", "//", 5), ("mod", "%", 5), ("pow", "**", 7), ("lshift", "<<", 3),
            ("rshift", ">>", 3), ("and", "&", 2), ("xor", "^", 1), ("or", "|", 0)):
        func = getattr(operator, name + "_" if name in ("and", "or") else name)

        def calculate(x, y, rest=(symbol, func, symbol == "**"), priority=priority):
            return BinaryOperator(priority, x, y, *rest)
        setattr(Expr, f"__{name}__", calculate)
        setattr(Expr, f"__r{name}__", lambda y, x, calculate=calculate: calculate(x, y))
    for name, symbol in (("neg", "-"), ("pos", "+"), ("invert", "~")):
        def method(x, symbol=symbol, func=getattr(operator, name)):
            return UnaryOperator(6, x, symbol, func)
        setattr(Expr, f"__{name}__", method)


_add_operators()


class TypeInfo:
    """The shape and dtype of an array."""

    def __init__(self, shape, dtype) -> None:
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)

    @property
    def size(self):
        return math.prod(self.shape)


class TypeInfoTuple(tuple):
    """Expressions of TypeInfos. size() is an expression of their number."""

    def size(self) -> Any:
        return Variable(len(self), f"{self.name}.size")


class LightTypeInfoTuple(tuple):
    """TypeInfos themselves, with which comparisons are fast but have no text."""

    def size(self) -> Any:
        return len(self)


def _info(x):
    return TypeInfo(() if x is None else tuple(x.shape), getattr(x, "dtype", None))


def get_light_types(data) -> Any:
    """The types of a tuple of arrays."""
    return LightTypeInfoTuple(map(_info, data))


def get_types(data, name, accept_none=False) -> Any:
    """The types of a tuple of arrays, as expressions "NAME[0]" and so on."""
    if not isinstance(data, tuple):
        raise AssertionError(f"[get_types] data: expected a tuple of arrays, got {type(data)}")
    types = TypeInfoTuple(
        Variable(_info(x), f"{name}[{i}]") for i, x in enumerate(data))
    types.name = name
    return types


def _argname(in_types, names):
    """Gives the types the names of the arguments."""
    if len(in_types) != len(names):
        raise _invalid(f"{len(names)} argument(s)", f"{len(in_types)} argument(s)",
                       "Invalid number of arguments")
    for in_type, name in zip(in_types, names):
        in_type.name = name


def _invalid(expected, actual, message=None):
    error = InvalidType(message or f"Expect: {expected}\nActual: {actual}")
    error.expect, error.actual = expected, actual
    return error


def expect(*bool_exprs) -> None:
    """Raises InvalidType with the first comparison that is false and the values of its sides."""
    for expr in bool_exprs:
        if isinstance(expr, BoolBinaryOperator):
            expr.expect()
        elif not eval(expr):  # check() asks again for the text
            raise _invalid(_repr(expr) if isinstance(expr, Expr) else "True", "False")


def expect_broadcast_shapes(*shape_types) -> None:
    """Raises InvalidType unless the shapes can be broadcast to one."""
    import numpy
    shapes = [eval(shape) for shape in shape_types]
    try:
        numpy.broadcast_shapes(*shapes)
    except ValueError:
        lines = [f"{text} = {shape}" for text, shape in zip(shape_types, shapes)]
        raise _invalid("", "", "\n".join(
            ["cannot broadcast inputs of the following shapes:"] + lines)) from None


prod = Variable(math.prod, "prod")


def same_types(*arrays) -> Any:
    """Whether all are numpy.ndarrays, or all are catena.Arrays."""
    import numpy
    return any(all(isinstance(x, kind) for x in arrays) for kind in (numpy.ndarray, _core.Array))


def check(function, arrays) -> None:
    """Calls ``function.check_type_forward()`` with the types of a tuple of arrays."""
    try:
        function.check_type_forward(get_light_types(arrays))
    except InvalidType as first:
        error = first
        try:
            function.check_type_forward(get_types(arrays, "in_types"))
        except InvalidType as second:
            error = second
        message = f"Invalid operation is performed in: {function.label} (Forward)\n\n{error}"
        raise _invalid(
            getattr(error, "expect", ""), getattr(error, "actual", ""), message) from None
