"""Checks of the shapes and dtypes of inputs, with the names of chainer.utils.type_check.

``check_type_forward(self, in_types)`` of a function states what it expects as expressions, of which
the message shows both the text and the values::

    type_check.expect(in_types.size() == 2, in_types[0].shape == in_types[1].shape)
"""
import math
import operator

from catena import _core
from catena._core import InvalidType

__all__ = ["Expr", "InvalidType", "LightTypeInfoTuple", "TypeInfo", "Variable", "eval", "expect",
           "expect_broadcast_shapes", "get_light_types", "get_types", "make_variable", "prod",
           "same_types"]

_ATOM = 8


class Expr:
    """An expression: a text, a function without arguments that gives the value, and a priority."""

    def __init__(self, text, evaluate, priority=_ATOM, negation=None):
        self._text, self._evaluate, self._priority = text, evaluate, priority
        self._negation = negation

    def eval(self):
        return self._evaluate()

    def __str__(self):
        return self._text

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Expr(f"{self}.{name}", lambda: getattr(eval(self), name))

    def __getitem__(self, key):
        return Expr(f"{self}[{_subscript(key)}]", lambda: eval(self)[eval(key)])

    def __call__(self, *args):
        return Expr(f"{self}({', '.join(map(_text, args))})",
                    lambda: eval(self)(*[eval(arg) for arg in args]))

    def __bool__(self):
        raise RuntimeError("An Expr instance cannot be evaluated as bool. Please use "
                           "type_check.eval() to evaluate an expression.")

    __hash__ = None


def Variable(value, name):
    """An expression with a name and a value."""
    return Expr(name, lambda: value)


make_variable = Variable


def eval(exp):
    """The value of an expression, also in lists and tuples; other objects as they are."""
    if isinstance(exp, Expr):
        return exp.eval()
    return type(exp)(map(eval, exp)) if type(exp) in (list, tuple) else exp


def _text(value, priority=-1):
    if isinstance(value, Expr):
        return f"({value})" if value._priority < priority else str(value)
    if type(value) is list:
        return f"[{', '.join(map(_text, value))}]"
    if type(value) is tuple:
        return f"({', '.join(map(_text, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def _subscript(key):
    if key is Ellipsis:
        return "..."
    if isinstance(key, slice):
        ends = [key.start, key.stop] + ([] if key.step is None else [key.step])
        return ":".join("" if end is None else _text(end) for end in ends)
    return ", ".join(map(_subscript, key)) if isinstance(key, tuple) else _text(key)


def _add_operators():
    def binary(symbol, function, priority, negation=None, flipped=False):
        def method(x, y):
            left, right = (y, x) if flipped else (x, y)
            right_priority = priority if symbol == "**" else priority + 1
            left_priority = priority + 1 if symbol == "**" else priority
            return Expr(f"{_text(left, left_priority)} {symbol} {_text(right, right_priority)}",
                        lambda: function(eval(left), eval(right)), priority,
                        negation and (left, negation, right))
        return method

    for name, symbol, negation in (("eq", "==", "!="), ("ne", "!=", "=="), ("lt", "<", ">="),
                                   ("le", "<=", ">"), ("gt", ">", "<="), ("ge", ">=", "<")):
        setattr(Expr, f"__{name}__", binary(symbol, getattr(operator, name), -1, negation))
    for name, symbol, priority in (
            ("add", "+", 4), ("sub", "-", 4), ("mul", "*", 5), ("truediv", "/", 5),
            ("floordiv", "//", 5), ("mod", "%", 5), ("pow", "**", 7), ("lshift", "<<", 3),
            ("rshift", ">>", 3), ("and", "&", 2), ("xor", "^", 1), ("or", "|", 0)):
        function = getattr(operator, name + "_" if name in ("and", "or") else name)
        setattr(Expr, f"__{name}__", binary(symbol, function, priority))
        setattr(Expr, f"__r{name}__", binary(symbol, function, priority, flipped=True))
    for name, symbol in (("neg", "-"), ("pos", "+"), ("invert", "~")):
        def method(x, symbol=symbol, function=getattr(operator, name)):
            return Expr(symbol + _text(x, 6), lambda: function(eval(x)), 6)
        setattr(Expr, f"__{name}__", method)


_add_operators()


class TypeInfo:
    """The shape and dtype of an array."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype, self.ndim = shape, dtype, len(shape)

    @property
    def size(self):
        return math.prod(self.shape)


class _Types(tuple):
    """Expressions of TypeInfos. size() is an expression of their number."""

    def size(self):
        return Expr(f"{self.name}.size", lambda: len(self))


class LightTypeInfoTuple(tuple):
    """TypeInfos themselves, with which comparisons are fast but have no text."""

    def size(self):
        return len(self)


def _info(x):
    return TypeInfo(() if x is None else tuple(x.shape), getattr(x, "dtype", None))


def get_light_types(data):
    """The types of a tuple of arrays."""
    return LightTypeInfoTuple(map(_info, data))


def get_types(data, name, accept_none=False):
    """The types of a tuple of arrays, as expressions "NAME[0]" and so on."""
    types = _Types(
        Variable(_info(x), f"{name}[{i}]") for i, x in enumerate(data))
    types.name = name
    return types


def _argname(in_types, names):
    """Gives the types the names of the arguments."""
    if len(in_types) != len(names):
        raise _invalid(f"{len(names)} argument(s)", f"{len(in_types)} argument(s)",
                       "Invalid number of arguments")
    for in_type, name in zip(in_types, names):
        in_type._text = name


def _invalid(expected, actual, message=None):
    error = InvalidType(message or f"Expect: {expected}\nActual: {actual}")
    error.expect, error.actual = expected, actual
    return error


def expect(*bool_exprs):
    """Raises InvalidType with the first comparison that is false and the values of its sides."""
    for expr in bool_exprs:
        if eval(expr):
            continue
        if not isinstance(expr, Expr):  # check() asks again for the text
            raise _invalid("True", "False")
        left, negation, right = expr._negation
        raise _invalid(str(expr), f"{eval(left)} {negation} {eval(right)}")


def expect_broadcast_shapes(*shape_types):
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


def same_types(*arrays):
    """Whether all are numpy.ndarrays, or all are catena.Arrays."""
    import numpy
    return any(all(isinstance(x, kind) for x in arrays) for kind in (numpy.ndarray, _core.Array))


def check(function, arrays):
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
