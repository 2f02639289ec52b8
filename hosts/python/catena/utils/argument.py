"""Keyword arguments that a function takes as ``**kwargs``."""
import sys
from typing import Any


def check_unexpected_kwargs(kwargs, **unexpected) -> None:
    """Raises ValueError with the message of the first name in `unexpected` that kwargs has."""
    for name, message in unexpected.items():
        if name in kwargs:
            raise ValueError(message)


def _require_empty(kwargs, unexpected, caller):
    if kwargs:
        check_unexpected_kwargs(kwargs, **unexpected)
        raise TypeError(f"{caller}() got unexpected keyword argument(s) "
                        + ", ".join(map(repr, sorted(kwargs))))


def parse_kwargs(kwargs, *name_and_values, **unexpected) -> Any:
    """The values of arguments, a tuple. The caller's kwargs may have no other names.

    Args:
        kwargs: the dictionary of the caller, from which the arguments are removed.
        name_and_values: pairs of a name and its default.
        unexpected: names that were arguments once, with messages for ValueErrors.
    """
    values = tuple(kwargs.pop(name, default) for name, default in name_and_values)
    _require_empty(kwargs, unexpected, sys._getframe(1).f_code.co_name)
    return values


def assert_kwargs_empty(kwargs) -> None:
    """Raises TypeError if the caller's kwargs have names."""
    _require_empty(kwargs, {}, sys._getframe(1).f_code.co_name)
