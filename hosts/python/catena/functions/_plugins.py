"""Helpers of the modules of functions."""
import itertools
from typing import Any

from catena import _core
from catena.variable import as_variable


class _Functions:
    """Functions that are attributes. ``find`` gives the function with a name."""

    def __init__(self, find) -> None:
        self._find = find

    def __getattr__(self, name):
        function = self._find(name)
        setattr(self, name, function)
        return function


# Functions of plugins without Chainer's forms: plugins.relu is catena.relu.
plugins = _Functions(lambda name: _core.plugin_function("catena." + name))
# The forms of the host SDK, and functions of plugins: all but those of these modules.
F = _Functions(lambda name: getattr(_core.forms, name, None) or getattr(plugins, name))


def suggestion(name, names, functions=None) -> str:
    """Suggests one of the names, or of a module of functions, for an unknown name; "" if none is similar."""
    import difflib

    def by_letters(names):
        return {each.replace("_", "").lower(): each for each in names}

    known, others = by_letters(names), by_letters(() if functions is None else dir(functions))
    letters, = by_letters([name])
    here = _core.name_here(name).replace("_", "")
    if here in known:
        return f"{name} is called {known[here]} here"
    if letters not in known and (here or letters) in others:
        return f"it is a function, catena.functions.{others[here or letters]}"
    found = difflib.get_close_matches(letters, known, 1, 0.7)
    return f"did you mean {known[found[0]]}?" if found else ""


def no_attribute(module, name, names, functions=None) -> AttributeError:
    """The error for an unknown name in a module, which suggests one of the names."""
    hint = "" if name.startswith("_") else suggestion(name, names, functions)
    return AttributeError(f"module {module!r} has no attribute {name!r}" + (hint and "; " + hint))


def variable(x, function, name="x") -> Any:
    """The argument as a variable. TypeError unless it is an array."""
    if x is None:
        raise TypeError(f"[{function}] {name}: expected a variable or an array, got None")
    return as_variable(x)


def variables(function, **arguments) -> Any:
    """The arguments as variables."""
    return [variable(value, function, name) for name, value in arguments.items()]


def split(x, lengths) -> Any:
    """Parts of x along axis 0 with these lengths, a tuple."""
    return F.split_axis(x, list(itertools.accumulate(lengths))[:-1], 0)


def check_choice(function, argument, value, choices) -> None:
    """Raises ValueError unless the value is one of the choices."""
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ValueError(f"[{function}] {argument}: expected one of {known}, got {value!r}")


def in_dtype_of(x, y) -> Any:
    """y in the dtype of x."""
    return y if y.dtype == x.dtype else plugins.cast(y, x.dtype)
